// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/ovn-uplink/ovn-uplink/deploy/release/debian"
	"github.com/ovn-uplink/ovn-uplink/deploy/release/dist"
	"github.com/ovn-uplink/ovn-uplink/shared/agent"
	"github.com/spf13/cobra"
)

func imagesCommand(f *flags) *cobra.Command {
	var out string
	var allowDirty bool
	command := &cobra.Command{
		Use:   "images",
		Short: "Build the images of both agents for all platforms",
		Long: `Builds the programs with 'make build', and an image of each for linux/amd64 and linux/arm64, into a
directory: an OCI layout with the multi-platform index, a Docker archive and a bill of materials (SPDX)
per platform, and manifest.json with the digests. Needs neither Docker nor a base image; the dpu-agent's
image has ovs-ofctl from Debian packages that are pinned by digest.

The same commit gives the same digests. The images are named after it, by its first 12 characters; where
deploy/nvke/lock has locks of the same source, after the commit in them, and what is built must be what is locked.

The directory is replaced when all is built, and not before.`,
		Example: `  # into dist/images
  release images

  # somewhere else; changes that are not committed are in, the tag says so
  release images --allow-dirty --out /tmp/images`,
		Args: agent.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			checkout, err := f.checkout(cmd)
			if err != nil {
				return err
			}
			changes, err := checkout.Dirty(cmd.Context())
			if err != nil {
				return err
			}
			head, err := checkout.Head(cmd.Context())
			if err != nil {
				return err
			}
			if len(changes) > 0 && !allowDirty {
				return dirtyError(head.Commit, changes)
			}
			out := cmp.Or(out, imagesDir(checkout))
			manifest, err := buildImages(cmd, checkout, head, len(changes) > 0, out)
			if err != nil {
				return err
			}
			printImages(cmd.OutOrStdout(), out, manifest)
			return nil
		},
	}
	command.Flags().StringVar(&out, "out", "", "`directory` that is replaced; default: dist/images in the checkout")
	command.Flags().BoolVar(&allowDirty, "allow-dirty", false, "build what is not committed, too; the tag ends in -dirty")
	return command
}

func printImages(w io.Writer, dir string, manifest dist.Manifest) {
	fmt.Fprintf(w, "%s, source commit %s, %s\n", manifest.Version, manifest.Commit, manifest.GoVersion)
	for _, image := range manifest.Images {
		fmt.Fprintf(w, "%s\n  index %s  %s\n", image.Reference(), image.Index.Digest, filepath.Join(dir, image.Index.Path))
		for _, platform := range image.Platforms {
			fmt.Fprintf(w, "  %s %s  %.1f MB\n", platform.Architecture, platform.Digest, float64(platform.Size)/1e6)
		}
	}
}

func dirtyError(commit string, changes []string) error {
	const most = 5
	shown := changes
	if len(changes) > most {
		shown = append(changes[:most:most], fmt.Sprintf("and %d more", len(changes)-most))
	}
	return fmt.Errorf("the checkout is commit %s with changes, and not what would be said of it; commit or stash them:\n  %s",
		commit, strings.Join(shown, "\n  "))
}

func pinsCommand(f *flags) *cobra.Command {
	return &cobra.Command{
		Use:   "pins",
		Short: "Pin the newest versions of the Debian packages in the images",
		Long: `Looks up the newest version of every Debian package in debian-<arch>.lock and writes it there with the
digest of its .deb. Commit the result; the next lock is about it.`,
		Example: `  release pins && git diff deploy/release`,
		Args:    agent.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			checkout, err := f.checkout(cmd)
			if err != nil {
				return err
			}
			packages, err := cache(cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			dir := filepath.Join(checkout.Root, dist.ReleaseDir)
			for _, arch := range dist.Arches {
				pins, err := packages.Refresh(cmd.Context(), dir, arch)
				if err != nil {
					return err
				}
				if err := pins.Write(dir); err != nil {
					return err
				}
				fmt.Fprintf(cmd.OutOrStdout(), "%s: %d packages\n", debian.PinFile(arch), len(pins.List))
			}
			return nil
		},
	}
}
