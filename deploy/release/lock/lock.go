// SPDX-License-Identifier: Apache-2.0

// Package lock pins a release: the source that it is built from, the toolchain, and the digest of everything that came out. A
// lock is for one architecture, a text file of lines with a key and its values:
//
//	version 0.1.0
//	architecture arm64
//	commit <id>                       of the source
//	tree <id>                         of that commit without deploy/nvke/lock
//	go go1.26.8                       the toolchain
//	binary <agent> sha256:<hex>
//	image <repository> sha256:<hex>   manifest for the architecture
//	index <repository> sha256:<hex>   the multi-platform index, the same in every architecture's lock
//	archive <file> sha256:<hex>       Docker archive
//	sbom <file> sha256:<hex>
//	deb <name> <version> <architecture> <sha256>
//
// Empty lines and those that begin with # say nothing.
package lock

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ovn-uplink/ovn-uplink/deploy/release/debian"
	"github.com/ovn-uplink/ovn-uplink/deploy/release/dist"
	"github.com/ovn-uplink/ovn-uplink/deploy/release/source"
)

// Lock is a lock for one architecture.
type Lock struct {
	Version      string
	Architecture string
	Commit       string
	Tree         string
	// Go is the toolchain, as runtime.Version has it.
	Go string
	// Artifacts are what came out and what went in, with their digests.
	Artifacts []Artifact
}

// Artifact is a line of a lock with a digest.
type Artifact struct {
	// Kind is binary, image, index, archive, sbom or deb.
	Kind string
	Name string
	// Value is the digest, of a Debian package with version and architecture in front.
	Value string
}

const heading = "# SPDX-License-Identifier: Apache-2.0\n# What ovn-uplink %s for %s is built from and what comes out. 'make lock' wrote it; see docs/releasing.md.\n"

// File is where the lock of a version is in a checkout.
func File(checkout source.Checkout, arch, version string) string {
	return filepath.Join(checkout.Root, filepath.FromSlash(source.LockDir), arch, version+".lock")
}

// Of is the lock of what was built.
func Of(built dist.Manifest, pins debian.Pins) Lock {
	l := Lock{Version: built.Version, Architecture: pins.Arch, Commit: built.Commit, Tree: built.Tree, Go: built.GoVersion}
	for _, binary := range built.Binaries {
		if binary.Architecture == pins.Arch {
			l.add("binary", binary.Agent, binary.File.Digest)
		}
	}
	for _, image := range built.Images {
		l.add("index", image.Repository, image.Index.Digest)
		for _, platform := range image.Platforms {
			if platform.Architecture == pins.Arch {
				l.add("image", image.Repository, platform.Digest)
				l.add("archive", platform.Archive.Path, platform.Archive.Digest)
				l.add("sbom", platform.SBOM.Path, platform.SBOM.Digest)
			}
		}
	}
	for _, pin := range pins.List {
		l.add("deb", pin.Name, strings.Join([]string{pin.Version, pin.Architecture, pin.SHA256}, " "))
	}
	l.sort()
	return l
}

func (l *Lock) add(kind, name, value string) {
	l.Artifacts = append(l.Artifacts, Artifact{kind, name, value})
}

// kinds are in the order in which they are written.
var kinds = []string{"binary", "image", "index", "archive", "sbom", "deb"}

func (l *Lock) sort() {
	slices.SortFunc(l.Artifacts, func(a, b Artifact) int {
		if order := slices.Index(kinds, a.Kind) - slices.Index(kinds, b.Kind); order != 0 {
			return order
		}
		return strings.Compare(a.Name, b.Name)
	})
}

// Text is the lock as it is in its file.
func (l Lock) Text() string {
	var text strings.Builder
	fmt.Fprintf(&text, heading, l.Version, l.Architecture)
	fmt.Fprintf(&text, "version %s\narchitecture %s\ncommit %s\ntree %s\ngo %s\n", l.Version, l.Architecture, l.Commit, l.Tree, l.Go)
	for _, artifact := range l.Artifacts {
		fmt.Fprintf(&text, "%s %s %s\n", artifact.Kind, artifact.Name, artifact.Value)
	}
	return text.String()
}

// Read reads the lock of a version. Its absence is fs.ErrNotExist.
func Read(checkout source.Checkout, arch, version string) (Lock, error) {
	path := File(checkout, arch, version)
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Lock{}, fmt.Errorf("there is no lock of %s for %s, 'make lock' writes one: %w", version, arch, err)
	}
	if err != nil {
		return Lock{}, fmt.Errorf("read the lock of %s for %s: %w", version, arch, err)
	}
	defer func() { _ = file.Close() }()
	var l Lock
	scanner := bufio.NewScanner(file)
	for number := 1; scanner.Scan(); number++ {
		if err := l.parse(strings.TrimSpace(scanner.Text())); err != nil {
			return Lock{}, fmt.Errorf("%s:%d: %w", path, number, err)
		}
	}
	if err := scanner.Err(); err != nil {
		return Lock{}, fmt.Errorf("read %s: %w", path, err)
	}
	if l.Version != version || l.Architecture != arch {
		return Lock{}, fmt.Errorf("%s is the lock of version %q for %q", path, l.Version, l.Architecture)
	}
	for _, field := range l.fields() {
		if *field.value == "" {
			return Lock{}, fmt.Errorf("%s does not say the %s", path, field.key)
		}
	}
	if len(l.Commit) != 40 || strings.Trim(l.Commit, "0123456789abcdef") != "" {
		return Lock{}, fmt.Errorf("%s: %q is not the full id of a commit", path, l.Commit)
	}
	l.sort()
	return l, nil
}

type field struct {
	key   string
	value *string
}

func (l *Lock) fields() []field {
	return []field{{"version", &l.Version}, {"architecture", &l.Architecture}, {"commit", &l.Commit}, {"tree", &l.Tree}, {"go", &l.Go}}
}

func (l *Lock) parse(line string) error {
	if line == "" || strings.HasPrefix(line, "#") {
		return nil
	}
	words := strings.Fields(line)
	for _, field := range l.fields() {
		if words[0] != field.key {
			continue
		}
		if len(words) != 2 || *field.value != "" {
			return fmt.Errorf("%q: want one %s with one value", line, field.key)
		}
		*field.value = words[1]
		return nil
	}
	if !slices.Contains(kinds, words[0]) || len(words) < 3 {
		return fmt.Errorf("%q: want a key with its values, see docs/releasing.md", line)
	}
	l.add(words[0], words[1], strings.Join(words[2:], " "))
	return nil
}

// Write writes locks, all or none: first beside their places, then into them.
func Write(checkout source.Checkout, locks ...Lock) error {
	var fresh []string
	defer func() {
		for _, path := range fresh {
			_ = os.Remove(path)
		}
	}()
	for _, l := range locks {
		path := File(checkout, l.Architecture, l.Version)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("write the lock for %s: %w", l.Architecture, err)
		}
		fresh = append(fresh, path+".new")
		if err := os.WriteFile(path+".new", []byte(l.Text()), 0o644); err != nil {
			return fmt.Errorf("write the lock for %s: %w", l.Architecture, err)
		}
	}
	for _, path := range fresh {
		if err := os.Rename(path, strings.TrimSuffix(path, ".new")); err != nil {
			return fmt.Errorf("write the locks: %w", err)
		}
	}
	return nil
}
