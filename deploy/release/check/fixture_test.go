// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/ovn-uplink/ovn-uplink/deploy/release/check"
	"github.com/ovn-uplink/ovn-uplink/deploy/release/debian"
	"github.com/ovn-uplink/ovn-uplink/deploy/release/dist"
	"github.com/ovn-uplink/ovn-uplink/deploy/release/image"
	"github.com/ovn-uplink/ovn-uplink/deploy/release/lock"
	"github.com/ovn-uplink/ovn-uplink/deploy/release/source"
	"github.com/ovn-uplink/ovn-uplink/deploy/release/source/sourcetest"
)

// fixture is a small release 1.2.3, with everything that there has to be.
type fixture struct {
	t          *testing.T
	repository *sourcetest.Repository
	source     source.Source
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	if testing.Short() {
		t.Skip("makes Debian packages")
	}
	pin := "libc6 2.36 %s " + hex.EncodeToString(make([]byte, 32)) + " http://x/y.deb\n"
	f := &fixture{t: t, repository: sourcetest.New(t, map[string]string{
		"VERSION": "1.2.3\n", ".gitignore": "/dist/\n", "main.go": "package main\n",
		"deploy/release/" + debian.PinFile("amd64"): fmt.Sprintf(pin, "amd64"),
		"deploy/release/" + debian.PinFile("arm64"): fmt.Sprintf(pin, "arm64"),
	})}
	f.chart("deploy/host/chart", "1.2.3", "")
	f.commit()
	checkout := source.Checkout{Root: f.repository.Root}
	var err error
	if f.source, err = checkout.Head(t.Context()); err != nil {
		t.Fatal(err)
	}
	set, err := lock.OfBuild(checkout, f.images(t, f.source.Commit))
	if err != nil {
		t.Fatal(err)
	}
	if err := lock.Write(checkout, set...); err != nil {
		t.Fatal(err)
	}
	f.commit()
	f.chart("dist/chart", "1.2.3", f.source.Tag())
	f.chartDeb(f.source.Tag())
	for _, arch := range dist.Arches {
		archives := map[string]string{}
		for _, agent := range dist.Agents {
			archives["usr/share/images/ovn-uplink-"+agent+"-linux-"+arch+".tar"] = "archive of " + agent + " for " + arch
		}
		f.deb("nvke-cni-ovn-uplink-images-1.2.3", "1.2.3+git1", arch, f.source.Commit, archives)
		f.deb("ovn-uplink-dpu-agent", "1.2.3", arch, f.source.Commit, map[string]string{"usr/bin/dpu-agent": "dpu-agent for " + arch})
	}
	return f
}

func (f *fixture) check(t *testing.T) check.Report {
	t.Helper()
	report, err := check.Check(t.Context(), source.Checkout{Root: f.repository.Root})
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func (f *fixture) commit() { f.repository.Commit("change") }

func (f *fixture) remove(name string) {
	if err := os.RemoveAll(filepath.Join(f.repository.Root, name)); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) chart(dir, version, tag string) {
	for name, text := range chart(version, tag) {
		f.repository.Write(filepath.Join(dir, name), text)
	}
}

func chart(version, tag string) map[string]string {
	return map[string]string{
		"Chart.yaml":  fmt.Sprintf("apiVersion: v2\nname: ovn-uplink\nversion: %[1]s\nappVersion: %[1]s\n", version),
		"values.yaml": fmt.Sprintf("image:\n  tag: %q\nhostAgent:\n  image: {repository: nvke/ovn-uplink-host-agent}\n", tag),
	}
}

func (f *fixture) chartDeb(tag string) {
	files := map[string]string{}
	for name, text := range chart("1.2.3", tag) {
		files["etc/dgx/ovn-uplink/"+name] = text
	}
	f.deb("nvke-cni-ovn-uplink-charts-1.2.3", "1.2.3", "all", f.source.Commit, files)
}

// deb makes a package in dist/debs; without a commit, it has no field for it.
func (f *fixture) deb(name, version, arch, commit string, files map[string]string) {
	f.t.Helper()
	root := f.t.TempDir()
	content := map[string]string{"DEBIAN/control": fmt.Sprintf(
		"Package: %s\nVersion: %s\nArchitecture: %s\nMaintainer: test <test@example.com>\nDescription: test\n", name, version, arch)}
	if commit != "" {
		content["DEBIAN/control"] += "X-OVN-Uplink-Commit: " + commit + "\n"
	}
	for path, text := range files {
		content[path] = text
	}
	for path, text := range content {
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			f.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			f.t.Fatal(err)
		}
	}
	if err := os.Chmod(root, 0o755); err != nil {
		f.t.Fatal(err)
	}
	debs := filepath.Join(f.repository.Root, "dist/debs")
	if err := os.MkdirAll(debs, 0o755); err != nil {
		f.t.Fatal(err)
	}
	target := filepath.Join(debs, fmt.Sprintf("%s_1.2.3_%s.deb", name, arch))
	out, err := exec.CommandContext(f.t.Context(), "dpkg-deb", "--root-owner-group", "-Znone", "--build", root, target).CombinedOutput()
	if err != nil {
		f.t.Fatalf("dpkg-deb: %v: %s", err, out)
	}
}

// images writes dist/images as if they had been built from a commit.
func (f *fixture) images(t *testing.T, commit string) dist.Manifest {
	t.Helper()
	f.remove("dist/images")
	manifest := dist.Manifest{Version: "1.2.3", Commit: commit, GoVersion: "go1.26.8"}
	head, err := source.Checkout{Root: f.repository.Root}.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	manifest.Tree = head.Tree
	write := func(path, text string) dist.Artifact {
		f.repository.Write("dist/images/"+path, text)
		sum := sha256.Sum256([]byte(text))
		return dist.Artifact{Path: path, Digest: "sha256:" + hex.EncodeToString(sum[:]), Size: int64(len(text))}
	}
	for _, agent := range dist.Agents {
		name := dist.ImageName(agent)
		shipped := dist.Image{Agent: agent, Repository: dist.Repository(agent), Tag: commit[:12], Index: dist.Artifact{Path: name}}
		var built []v1.Image
		for _, arch := range dist.Arches {
			one, err := image.Build(image.Spec{Program: agent, Arch: arch, Binary: []byte(agent + commit)})
			if err != nil {
				t.Fatal(err)
			}
			built = append(built, one)
			manifest.Binaries = append(manifest.Binaries, dist.Binary{
				Agent: agent, Architecture: arch, File: write("bin/linux-"+arch+"/"+agent, agent+" for "+arch)})
			digest, err := one.Digest()
			if err != nil {
				t.Fatal(err)
			}
			shipped.Platforms = append(shipped.Platforms, dist.Platform{
				Architecture: arch, Digest: digest.String(),
				Archive: write(name+"-linux-"+arch+".tar", "archive of "+agent+" for "+arch),
				SBOM:    write(name+"-linux-"+arch+".spdx.json", "{}"),
			})
		}
		index, err := image.Index(built, nil)
		if err != nil {
			t.Fatal(err)
		}
		oci, err := layout.Write(filepath.Join(f.repository.Root, "dist/images", name), empty.Index)
		if err != nil {
			t.Fatal(err)
		}
		if err := oci.AppendIndex(index); err != nil {
			t.Fatal(err)
		}
		digest, err := index.Digest()
		if err != nil {
			t.Fatal(err)
		}
		shipped.Index.Digest = digest.String()
		manifest.Images = append(manifest.Images, shipped)
	}
	text, err := json.Marshal(manifest)
	if err != nil {
		t.Fatal(err)
	}
	f.repository.Write("dist/images/manifest.json", string(text))
	return manifest
}
