// SPDX-License-Identifier: Apache-2.0

package dist

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/ovn-uplink/ovn-uplink/deploy/release/debian"
	"github.com/ovn-uplink/ovn-uplink/deploy/release/image"
	"github.com/ovn-uplink/ovn-uplink/deploy/release/source"
)

// ReleaseDir is where this program and the pinned packages are, relative to the root of the checkout.
const ReleaseDir = "deploy/release"

// Builder builds the images of what is checked out.
type Builder struct {
	Checkout source.Checkout
	Cache    debian.Cache
	// Progress is told in words what is being done.
	Progress io.Writer
}

// Build builds everything for all architectures into an empty directory. src is what the build is named and dated after: the
// commit that is checked out, or one with the same Tree.
func (b Builder) Build(ctx context.Context, src source.Source, dirty bool, dir string) (Manifest, error) {
	manifest := Manifest{
		Version: src.Version, Commit: src.Commit, Tree: src.Tree, Dirty: dirty, GoVersion: runtime.Version(), Created: src.Time,
	}
	if err := b.make(ctx, src, filepath.Join(dir, "bin")); err != nil {
		return Manifest{}, err
	}
	var contents []map[string]image.Contents
	for _, arch := range Arches {
		perAgent, err := b.contents(ctx, arch)
		if err != nil {
			return Manifest{}, err
		}
		contents = append(contents, perAgent)
	}
	for _, agent := range Agents {
		fmt.Fprintf(b.Progress, "packing the image of %s\n", agent)
		w := &writer{Builder: b, dir: dir, src: src, agent: agent, tag: tag(src, dirty)}
		for i, arch := range Arches {
			if err := w.platform(ctx, arch, contents[i][agent]); err != nil {
				return Manifest{}, err
			}
		}
		if err := w.index(); err != nil {
			return Manifest{}, err
		}
		manifest.Images = append(manifest.Images, w.image)
		manifest.Binaries = append(manifest.Binaries, w.binaries...)
	}
	return manifest, manifest.write(dir)
}

func tag(src source.Source, dirty bool) string {
	if dirty {
		return src.Tag() + "-dirty"
	}
	return src.Tag()
}

// make has the Makefile build the programs, with its flags and none of the caller's.
func (b Builder) make(ctx context.Context, src source.Source, out string) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "make", "--no-print-directory", "-C", b.Checkout.Root, "build",
		"OUT="+out, "VERSION="+src.Version, "COMMIT="+src.Commit, "ARCHES="+strings.Join(Arches, " "))
	cmd.Env = buildEnvironment(os.Environ())
	cmd.Stdout, cmd.Stderr = b.Progress, b.Progress
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("build the programs with make build: %w", err)
	}
	return nil
}

// buildEnvironment is an environment without what would change the programs that are built (go help environment).
func buildEnvironment(environment []string) []string {
	changes := []string{
		"CGO_ENABLED", "GOFLAGS", "GOOS", "GOARCH", "GOAMD64", "GOARM64", "GOEXPERIMENT", "GOWORK", "GOENV", "GODEBUG", "GOFIPS140",
		"MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES",
	}
	kept := slices.DeleteFunc(slices.Clone(environment), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return slices.Contains(changes, name)
	})
	return append(kept, "CGO_ENABLED=0", "GOFLAGS=-trimpath -buildvcs=false", "GOWORK=off", "GOENV=off")
}

// contents are the files beside the program of every agent's image.
func (b Builder) contents(ctx context.Context, arch string) (map[string]image.Contents, error) {
	pins, err := debian.ReadPins(filepath.Join(b.Checkout.Root, ReleaseDir), arch)
	if err != nil {
		return nil, err
	}
	debs, err := b.Cache.Fetch(ctx, pins)
	if err != nil {
		return nil, err
	}
	root, err := debian.Unpack(ctx, pins, debs)
	if err != nil {
		return nil, err
	}
	host, err := image.HostAgentContents(root)
	if err != nil {
		return nil, fmt.Errorf("collect the files for the host-agent's image for %s: %w", arch, err)
	}
	dpu, err := image.DPUAgentContents(root)
	if err != nil {
		return nil, fmt.Errorf("collect the files for the dpu-agent's image for %s: %w", arch, err)
	}
	for _, pin := range pins.List {
		if !slices.Contains(dpu.Packages, pin) {
			return nil, fmt.Errorf("no image has a file of package %s: take it out of %s", pin.Name, debian.PinFile(arch))
		}
	}
	return map[string]image.Contents{"host-agent": host, "dpu-agent": dpu}, nil
}

// labels are the annotations that the OCI image specification defines.
func labels(src source.Source, agent string) map[string]string {
	return map[string]string{
		"org.opencontainers.image.title":    ImageName(agent),
		"org.opencontainers.image.version":  src.Version,
		"org.opencontainers.image.revision": src.Commit,
		"org.opencontainers.image.created":  src.Time.Format(time.RFC3339),
		"org.opencontainers.image.source":   "https://github.com/ovn-uplink/ovn-uplink",
		"org.opencontainers.image.licenses": "Apache-2.0",
	}
}

// writer writes the image of one agent.
type writer struct {
	Builder
	dir, agent, tag string
	src             source.Source
	image           Image
	binaries        []Binary
	built           []v1.Image
}
