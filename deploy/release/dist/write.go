// SPDX-License-Identifier: Apache-2.0

package dist

import (
	"bytes"
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/ovn-uplink/ovn-uplink/deploy/release/image"
)

// refName is the annotation of an OCI layout that names what is in it.
const refName = "org.opencontainers.image.ref.name"

// platform builds the image for one architecture and writes its archive and its bill of materials.
func (w *writer) platform(ctx context.Context, arch string, contents image.Contents) error {
	program := filepath.Join("bin", "linux-"+arch, w.agent)
	binary, err := os.ReadFile(filepath.Join(w.dir, program))
	if err != nil {
		return fmt.Errorf("read the program for the image of %s: %w", w.agent, err)
	}
	info, err := buildinfo.Read(bytes.NewReader(binary))
	if err != nil {
		return fmt.Errorf("read how %s was built: %w", program, err)
	}
	if info.GoVersion != runtime.Version() {
		return fmt.Errorf("%s was built with %s, this program with %s: run it with the same toolchain, as the Makefile does",
			program, info.GoVersion, runtime.Version())
	}
	notices, err := w.notices(ctx, info.Deps)
	if err != nil {
		return err
	}
	spec := image.Spec{
		Program: w.agent, Arch: arch, Base: contents.Files, Binary: binary, Notices: notices,
		Labels: labels(w.src, w.agent), Created: w.src.Time,
	}
	if w.agent == "host-agent" {
		spec.User = image.NobodyID
	}
	built, err := image.Build(spec)
	if err != nil {
		return err
	}
	result := Platform{Architecture: arch}
	digest, err := built.Digest()
	if err != nil {
		return fmt.Errorf("compute the digest of %s for %s: %w", w.agent, arch, err)
	}
	config, err := built.ConfigName()
	if err != nil {
		return fmt.Errorf("compute the digest of %s for %s: %w", w.agent, arch, err)
	}
	result.Digest, result.ConfigDigest = digest.String(), config.String()
	if result.Size, err = image.Size(built); err != nil {
		return err
	}
	tag, err := name.NewTag(Repository(w.agent) + ":" + w.tag)
	if err != nil {
		return fmt.Errorf("name the image of %s: %w", w.agent, err)
	}
	base := ImageName(w.agent) + "-linux-" + arch
	if err := tarball.WriteToFile(filepath.Join(w.dir, base+".tar"), tag, built); err != nil {
		return fmt.Errorf("write the archive of %s for %s: %w", w.agent, arch, err)
	}
	bill, err := image.Bill(spec, base, w.src.Version, result.Digest, contents.Packages)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(w.dir, base+".spdx.json"), bill, 0o644); err != nil {
		return fmt.Errorf("write the bill of materials of %s for %s: %w", w.agent, arch, err)
	}
	if result.Archive, err = artifact(w.dir, base+".tar"); err != nil {
		return err
	}
	if result.SBOM, err = artifact(w.dir, base+".spdx.json"); err != nil {
		return err
	}
	file, err := artifact(w.dir, program)
	if err != nil {
		return err
	}
	w.binaries = append(w.binaries, Binary{Agent: w.agent, Architecture: arch, File: file})
	w.image.Platforms = append(w.image.Platforms, result)
	w.built = append(w.built, built)
	return nil
}

// index writes the OCI layout with the images of all platforms.
func (w *writer) index() error {
	index, err := image.Index(w.built, labels(w.src, w.agent))
	if err != nil {
		return err
	}
	path := filepath.Join(w.dir, ImageName(w.agent))
	oci, err := layout.Write(path, empty.Index)
	if err != nil {
		return fmt.Errorf("write the OCI layout of %s: %w", w.agent, err)
	}
	w.image.Agent, w.image.Repository, w.image.Tag = w.agent, Repository(w.agent), w.tag
	if err := oci.AppendIndex(index, layout.WithAnnotations(map[string]string{refName: w.image.Reference()})); err != nil {
		return fmt.Errorf("write the OCI layout of %s: %w", w.agent, err)
	}
	digest, err := index.Digest()
	if err != nil {
		return fmt.Errorf("compute the digest of %s: %w", w.agent, err)
	}
	size, err := index.Size()
	if err != nil {
		return fmt.Errorf("compute the size of %s: %w", w.agent, err)
	}
	w.image.Index = Artifact{Path: ImageName(w.agent), Digest: digest.String(), Size: size}
	return nil
}

func artifact(dir, path string) (Artifact, error) {
	file, err := os.Open(filepath.Join(dir, path))
	if err != nil {
		return Artifact{}, fmt.Errorf("compute the digest of %s: %w", path, err)
	}
	defer func() { _ = file.Close() }()
	hash := sha256.New()
	size, err := io.Copy(hash, file)
	if err != nil {
		return Artifact{}, fmt.Errorf("compute the digest of %s: %w", path, err)
	}
	return Artifact{Path: path, Digest: "sha256:" + hex.EncodeToString(hash.Sum(nil)), Size: size}, nil
}
