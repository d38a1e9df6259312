// SPDX-License-Identifier: Apache-2.0

// Package dist builds the images of a release from a checkout and writes them with a manifest that says what was built.
package dist

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// ManifestFile is the name of the manifest in the directory of what was built.
const ManifestFile = "manifest.json"

// Agents are the programs that get an image each.
var Agents = []string{"host-agent", "dpu-agent"}

// Arches are the architectures that are built, as Go and Debian name them.
var Arches = []string{"amd64", "arm64"}

// ImageName is the last part of an agent's repository, and of the files of its image.
func ImageName(agent string) string { return "ovn-uplink-" + agent }

// Repository is where an agent's image is in a registry.
func Repository(agent string) string { return "nvke/" + ImageName(agent) }

// Manifest says what was built from which source. Paths are relative to the manifest's directory.
type Manifest struct {
	Version string `json:"version"`
	// Commit is the full id of the source commit, Tree that of its tree without deploy/nvke/lock.
	Commit string `json:"commit"`
	Tree   string `json:"tree"`
	// Dirty is true when the checkout had changes beside the commit: nothing to be shipped.
	Dirty bool `json:"dirty,omitempty"`
	// GoVersion is the toolchain, such as go1.26.8.
	GoVersion string `json:"goVersion"`
	// Created is the time of the commit.
	Created  time.Time `json:"created"`
	Images   []Image   `json:"images"`
	Binaries []Binary  `json:"binaries"`
}

// Image is the image of an agent for all platforms.
type Image struct {
	Agent      string `json:"agent"`
	Repository string `json:"repository"`
	Tag        string `json:"tag"`
	// Index is the OCI layout of the multi-platform index, with the index's digest and size.
	Index     Artifact   `json:"index"`
	Platforms []Platform `json:"platforms"`
}

// Reference is the image's name in a cluster.
func (i Image) Reference() string { return i.Repository + ":" + i.Tag }

// Platform is the image of an agent for one platform.
type Platform struct {
	Architecture string `json:"architecture"`
	// Digest is that of the image's manifest, ConfigDigest what Docker and crictl show as its id.
	Digest       string `json:"digest"`
	ConfigDigest string `json:"configDigest"`
	// Size is what is transferred: the compressed layers, in bytes.
	Size    int64    `json:"size"`
	Archive Artifact `json:"archive"`
	SBOM    Artifact `json:"sbom"`
}

// Binary is a program as it is in its image.
type Binary struct {
	Agent        string   `json:"agent"`
	Architecture string   `json:"architecture"`
	File         Artifact `json:"file"`
}

// Artifact is a file, or an OCI layout.
type Artifact struct {
	Path string `json:"path"`
	// Digest is sha256:<hex> of the file, or of the index in the layout.
	Digest string `json:"digest"`
	// Size is in bytes.
	Size int64 `json:"size"`
}

// ReadManifest reads the manifest in a directory that `images` wrote.
func ReadManifest(dir string) (Manifest, error) {
	path := filepath.Join(dir, ManifestFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Manifest{}, fmt.Errorf("no images in %s, 'make images' builds them: %w", dir, err)
	}
	if err != nil {
		return Manifest{}, fmt.Errorf("read what was built: %w", err)
	}
	var manifest Manifest
	if err := json.Unmarshal(text, &manifest); err != nil {
		return Manifest{}, fmt.Errorf("read %s: %w", path, err)
	}
	return manifest, nil
}

func (m Manifest) write(dir string) error {
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return fmt.Errorf("write what was built: %w", err)
	}
	return os.WriteFile(filepath.Join(dir, ManifestFile), append(text, '\n'), 0o644)
}

// Replace has build fill an empty directory beside dir, and puts that in the place of dir when build has succeeded. Otherwise
// dir stays as it was.
func Replace(dir string, build func(fresh string) error) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return fmt.Errorf("write %s: %w", dir, err)
	}
	work, err := os.MkdirTemp(filepath.Dir(dir), "."+filepath.Base(dir)+"-")
	if err != nil {
		return fmt.Errorf("write %s: %w", dir, err)
	}
	defer func() { _ = os.RemoveAll(work) }()
	fresh, old := filepath.Join(work, "new"), filepath.Join(work, "old")
	if err := os.Mkdir(fresh, 0o755); err != nil {
		return fmt.Errorf("write %s: %w", dir, err)
	}
	if err := build(fresh); err != nil {
		return err
	}
	if err := os.Rename(dir, old); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("replace %s: %w", dir, err)
	}
	if err := os.Rename(fresh, dir); err != nil {
		return fmt.Errorf("write %s: %w", dir, err)
	}
	return nil
}
