// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"runtime"

	"github.com/ovn-uplink/ovn-uplink/deploy/release/dist"
	"github.com/ovn-uplink/ovn-uplink/deploy/release/lock"
	"github.com/ovn-uplink/ovn-uplink/deploy/release/source"
	"github.com/ovn-uplink/ovn-uplink/shared/agent"
	"github.com/spf13/cobra"
)

func lockCommand(f *flags) *cobra.Command {
	return &cobra.Command{
		Use:   "lock",
		Short: "Build what is checked out and write the locks of its version",
		Long: `Builds the images for all platforms and writes deploy/nvke/lock/<arch>/<version>.lock: the source commit, its
tree, the toolchain, and the digests of programs, images and Debian packages. The tree is that of git without
deploy/nvke/lock, so that the locks can be committed without being wrong from then on.`,
		Example: `  release lock && git add deploy/nvke/lock && git commit -m 'lock 0.1.0'`,
		Args:    agent.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			checkout, head, err := f.clean(cmd)
			if err != nil {
				return err
			}
			set, err := buildAway(cmd, checkout, head)
			if err != nil {
				return err
			}
			if err := lock.Write(checkout, set...); err != nil {
				return err
			}
			for _, l := range set {
				fmt.Fprintln(cmd.OutOrStdout(), lock.File(checkout, l.Architecture, l.Version))
			}
			return nil
		},
	}
}

func verifyLockCommand(f *flags) *cobra.Command {
	return &cobra.Command{
		Use:   "verify-lock",
		Short: "Compare the checkout with the locks of its version, build it, and compare what comes out",
		Long: `Compares commit, tree and toolchain with the locks of the version that is checked out, builds everything
somewhere else and compares the digests. Any difference is an error that names both values.`,
		Example: `  release verify-lock`,
		Args:    agent.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			checkout, head, err := f.clean(cmd)
			if err != nil {
				return err
			}
			set, err := lock.ReadSet(checkout, head.Version)
			if err != nil {
				return err
			}
			locked, err := set.Verify(cmd.Context(), checkout, runtime.Version())
			if err != nil {
				return err
			}
			built, err := buildAway(cmd, checkout, locked)
			if err != nil {
				return err
			}
			if err := set.Compare(built); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s: what commit %s builds with %s is what is locked\n", locked.Version, locked.Commit, runtime.Version())
			return nil
		},
	}
}

// clean opens the checkout, which must not differ from its commit.
func (f *flags) clean(cmd *cobra.Command) (source.Checkout, source.Source, error) {
	checkout, err := f.checkout(cmd)
	if err != nil {
		return checkout, source.Source{}, err
	}
	changes, err := checkout.Dirty(cmd.Context())
	if err != nil {
		return checkout, source.Source{}, err
	}
	head, err := checkout.Head(cmd.Context())
	if err == nil && len(changes) > 0 {
		err = dirtyError(head.Commit, changes)
	}
	return checkout, head, err
}

// buildAway builds into a directory that is gone afterwards, and returns the locks of what came out.
func buildAway(cmd *cobra.Command, checkout source.Checkout, src source.Source) (lock.Set, error) {
	build, err := builder(checkout, cmd.ErrOrStderr())
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "ovn-uplink-images-")
	if err != nil {
		return nil, fmt.Errorf("build: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	built, err := build.Build(cmd.Context(), src, false, dir)
	if err != nil {
		return nil, err
	}
	return lock.OfBuild(checkout, built)
}

// lockedSource is what is built when nothing differs from the commit that is checked out: where the locks of its version are
// of its tree, they have to hold, and the source is the locked one; otherwise it is that commit, and there is no set.
func lockedSource(cmd *cobra.Command, checkout source.Checkout, head source.Source) (source.Source, lock.Set, error) {
	set, fits, err := lock.Find(checkout, head)
	if err != nil || set == nil {
		return head, nil, err
	}
	if !fits {
		fmt.Fprintf(cmd.ErrOrStderr(), "the locks of %s are of commit %s, tree %s; this is commit %s, tree %s, which has none\n",
			head.Version, set[0].Commit, set[0].Tree, head.Commit, head.Tree)
		return head, nil, nil
	}
	locked, err := set.Verify(cmd.Context(), checkout, runtime.Version())
	return locked, set, err
}

// buildImages builds what is checked out into a directory, which is replaced.
func buildImages(cmd *cobra.Command, checkout source.Checkout, head source.Source, dirty bool, out string) (dist.Manifest, error) {
	build, err := builder(checkout, cmd.ErrOrStderr())
	if err != nil {
		return dist.Manifest{}, err
	}
	src, set := head, lock.Set(nil)
	if !dirty {
		if src, set, err = lockedSource(cmd, checkout, head); err != nil {
			return dist.Manifest{}, err
		}
	}
	var manifest dist.Manifest
	err = dist.Replace(out, func(fresh string) error {
		var err error
		if manifest, err = build.Build(cmd.Context(), src, dirty, fresh); err != nil || set == nil {
			return err
		}
		built, err := lock.OfBuild(checkout, manifest)
		if err != nil {
			return err
		}
		return set.Compare(built)
	})
	return manifest, err
}

func sourceCommand(f *flags) *cobra.Command {
	return &cobra.Command{
		Use:   "source",
		Short: "Print the commit that what is built is named after",
		Long: `Prints the full id of the source commit: that in the locks where they are of what is checked out, otherwise the
commit that is checked out. Images are tagged with its first 12 characters; chart and packages name it, too.`,
		Example: `  deploy/deb/build.sh --commit "$(release source)"`,
		Args:    agent.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			checkout, err := f.checkout(cmd)
			if err != nil {
				return err
			}
			head, err := checkout.Head(cmd.Context())
			if err != nil {
				return err
			}
			src, _, err := lockedSource(cmd, checkout, head)
			if err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), src.Commit)
			return nil
		},
	}
}
