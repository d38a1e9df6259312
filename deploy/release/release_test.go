// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/ovn-uplink/ovn-uplink/deploy/release/dist"
	"github.com/ovn-uplink/ovn-uplink/deploy/release/lock"
	"github.com/ovn-uplink/ovn-uplink/deploy/release/source"
	"github.com/ovn-uplink/ovn-uplink/deploy/release/source/sourcetest"
)

// most is what the image of an agent may take to transfer, in bytes.
var most = map[string]int64{"host-agent": 15e6, "dpu-agent": 25e6}

// TestRelease locks a commit in one clone and builds it in another, at another path; what the second builds has to be what
// the first has locked. All that is said of images is said of those.
func TestRelease(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the images, with Debian packages")
	}
	program := buildProgram(t)
	first := sourcetest.Head(t, filepath.Join("..", "..")).Clone(filepath.Join(t.TempDir(), "first"))
	commit := first.Git("rev-parse", "HEAD")
	if out, err := release(t, program, first, "lock"); err != nil {
		t.Fatalf("lock: %v: %s", err, out)
	}
	lockCommit := first.Commit("lock")
	second := first.Clone(filepath.Join(t.TempDir(), "somewhere", "else"))
	out, err := release(t, program, second, "images")
	if err != nil {
		t.Fatalf("images of another clone: %v: %s", err, out)
	}
	dir := filepath.Join(second.Root, "dist", "images")
	manifest, err := dist.ReadManifest(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Run("what is built is named after the locked commit", func(t *testing.T) {
		if manifest.Commit != commit || manifest.Images[0].Tag != commit[:12] {
			t.Errorf("built is commit %s, tag %s; locked is %s, checked out is %s", manifest.Commit, manifest.Images[0].Tag, commit, lockCommit)
		}
		if out, err := release(t, program, second, "source"); err != nil || out != commit+"\n" {
			t.Errorf("source says %q, %v", out, err)
		}
		for _, problem := range manifest.Verify(dir) {
			t.Error(problem)
		}
	})
	t.Run("images", func(t *testing.T) { checkImages(t, dir, manifest) })
	t.Run("push", func(t *testing.T) { checkPush(t, program, second, dir, manifest) })
	t.Run("another digest is refused", func(t *testing.T) {
		path := lock.File(source.Checkout{Root: second.Root}, "arm64", manifest.Version)
		var built string
		for _, binary := range manifest.Binaries {
			if binary.Agent == "dpu-agent" && binary.Architecture == "arm64" {
				built = binary.File.Digest
			}
		}
		wrong := "sha256:" + strings.Repeat("ab", 32)
		edit(t, path, regexp.QuoteMeta(built), wrong)
		out, err := release(t, program, second, "verify-lock")
		want := "arm64: binary dpu-agent is locked as " + wrong + ", built is " + built
		if err == nil || !strings.Contains(out, want) {
			t.Errorf("verify-lock: %v: %s\nwant %q", err, out, want)
		}
		second.Git("checkout", "--", source.LockDir)
	})
	t.Run("another toolchain is refused", func(t *testing.T) {
		for _, arch := range dist.Arches {
			edit(t, lock.File(source.Checkout{Root: second.Root}, arch, manifest.Version), `(?m)^go .*$`, "go go1.1.1")
		}
		for _, command := range []string{"verify-lock", "images"} {
			out, err := release(t, program, second, command)
			if err == nil || !strings.Contains(out, "made with go1.1.1, this is "+manifest.GoVersion) {
				t.Errorf("%s: %v: %s", command, err, out)
			}
		}
		second.Git("checkout", "--", source.LockDir)
	})
	t.Run("a changed source is refused", func(t *testing.T) {
		second.Write("main.go", "package other\n")
		for _, command := range []string{"lock", "verify-lock", "images"} {
			out, err := release(t, program, second, command)
			if err == nil || !strings.Contains(out, "commit "+lockCommit+" with changes") || !strings.Contains(out, "?? main.go") {
				t.Errorf("%s: %v: %s", command, err, out)
			}
		}
		changed := second.Commit("change")
		if out, err := release(t, program, second, "source"); err != nil || !strings.HasSuffix(out, changed+"\n") {
			t.Errorf("source says %q, %v", out, err)
		}
		out, err := release(t, program, second, "verify-lock")
		if err == nil || !strings.Contains(out, "commit "+commit) || !strings.Contains(out, "commit "+changed) {
			t.Errorf("verify-lock: %v: %s", err, out)
		}
		if after, err := dist.ReadManifest(dir); err != nil || after.Commit != commit {
			t.Errorf("refusing left images of commit %s (%v), they were of %s", after.Commit, err, commit)
		}
		if status := second.Git("status", "--porcelain", "--ignored"); status != "!! dist/" {
			t.Errorf("left behind: %s", status)
		}
	})
}

// checkImages checks what is the same for all images.
func checkImages(t *testing.T, dir string, manifest dist.Manifest) {
	for _, image := range manifest.Images {
		index, err := dist.OpenIndex(dir, image)
		if err != nil {
			t.Fatal(err)
		}
		content, err := index.IndexManifest()
		if err != nil {
			t.Fatal(err)
		}
		if len(content.Manifests) != len(dist.Arches) {
			t.Errorf("%s has %d platforms, want %d", image.Reference(), len(content.Manifests), len(dist.Arches))
		}
		for i, platform := range image.Platforms {
			described := content.Manifests[i]
			if described.Digest.String() != platform.Digest || described.Platform.String() != "linux/"+platform.Architecture {
				t.Errorf("%s has %s for %s, want %s for linux/%s",
					image.Reference(), described.Digest, described.Platform, platform.Digest, platform.Architecture)
			}
			if platform.Size > most[image.Agent] {
				t.Errorf("%s for %s takes %d bytes, more than %d", image.Reference(), platform.Architecture, platform.Size, most[image.Agent])
			}
			t.Logf("%s for %s: %.1f MB", image.Reference(), platform.Architecture, float64(platform.Size)/1e6)
			checkArchive(t, filepath.Join(dir, platform.Archive.Path), image, platform, manifest)
			checkBill(t, filepath.Join(dir, platform.SBOM.Path), image.Agent)
		}
	}
}

// checkArchive checks what Docker and containerd read: the name of the image and its configuration.
func checkArchive(t *testing.T, path string, image dist.Image, platform dist.Platform, manifest dist.Manifest) {
	t.Helper()
	tag, err := name.NewTag(image.Reference())
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := tarball.ImageFromPath(path, &tag)
	if err != nil {
		t.Fatalf("%s has no image %s: %v", path, image.Reference(), err)
	}
	config, err := loaded.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	user := map[string]string{"host-agent": "65532:65532", "dpu-agent": ""}[image.Agent]
	if config.Architecture != platform.Architecture || config.OS != "linux" || config.Config.User != user ||
		config.Config.Entrypoint[0] != "/usr/bin/"+image.Agent || !config.Created.Equal(manifest.Created) {
		t.Errorf("%s: configuration is %+v", path, config)
	}
	for key, want := range map[string]string{
		"revision": manifest.Commit, "version": manifest.Version, "licenses": "Apache-2.0",
		"source": "https://github.com/ovn-uplink/ovn-uplink", "created": manifest.Created.Format("2006-01-02T15:04:05Z"),
	} {
		if got := config.Config.Labels["org.opencontainers.image."+key]; got != want {
			t.Errorf("%s: label %s is %q, want %q", path, key, got, want)
		}
	}
	if id, err := loaded.ConfigName(); err != nil || id.String() != platform.ConfigDigest {
		t.Errorf("%s: id is %s (%v), want %s", path, id, err, platform.ConfigDigest)
	}
}

// checkBill checks that a bill of materials names what is known to be in the image.
func checkBill(t *testing.T, path, agent string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var bill struct {
		SPDXVersion string
		Packages    []struct {
			Name, VersionInfo string
			ExternalRefs      []struct{ ReferenceLocator string }
		}
		Relationships []struct{ RelationshipType string }
	}
	if err := json.Unmarshal(text, &bill); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	if bill.SPDXVersion != "SPDX-2.3" || len(bill.Relationships) != len(bill.Packages) {
		t.Errorf("%s is %s with %d packages and %d relationships", path, bill.SPDXVersion, len(bill.Packages), len(bill.Relationships))
	}
	has := map[string]bool{}
	for _, p := range bill.Packages {
		for _, reference := range p.ExternalRefs {
			has[strings.Split(reference.ReferenceLocator, "@")[0]] = true
		}
	}
	for locator, want := range map[string]bool{
		"pkg:golang/k8s.io/client-go": true, "pkg:golang/stdlib": true, "pkg:deb/debian/ca-certificates": true,
		"pkg:deb/debian/openvswitch-common": agent == "dpu-agent",
	} {
		if has[locator] != want {
			t.Errorf("%s has %s: %v, want %v", path, locator, has[locator], want)
		}
	}
}

// buildProgram builds this program as the Makefile runs it, whatever the tests are built with.
func buildProgram(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "release")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-trimpath -buildvcs=false")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build the program: %v: %s", err, out)
	}
	return program
}

func untar(t *testing.T, files []byte, dir string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "tar", "-x", "-C", dir)
	cmd.Stdin = bytes.NewReader(files)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("unpack: %v: %s", err, out)
	}
}

// release runs the program on a checkout and returns all that it prints.
func release(t *testing.T, program string, repository *sourcetest.Repository, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, append(args, "--source", repository.Root)...)
	// What would change the programs if it were let through.
	cmd.Env = append(os.Environ(), "CGO_ENABLED=1", "GOFLAGS=-tags=other", "GOAMD64=v3")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func edit(t *testing.T, path, pattern, replacement string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	edited := regexp.MustCompile(pattern).ReplaceAll(text, []byte(replacement))
	if bytes.Equal(edited, text) {
		t.Fatalf("%s has no %s", path, pattern)
	}
	if err := os.WriteFile(path, edited, 0o644); err != nil {
		t.Fatal(err)
	}
}

func platform(arch string) v1.Platform { return v1.Platform{OS: "linux", Architecture: arch} }
