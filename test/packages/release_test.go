// SPDX-License-Identifier: Apache-2.0

package packages

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

const repository = "../.."

// buildTime bounds one run of a script of deploy/deb.
const buildTime = 3 * time.Minute

// A release is what packages are made from. Images, chart and binaries are made for the test, but for binaries that bin names.
type release struct {
	version string
	commit  string
	epoch   int64
	archs   string
	bin     string // directory of binaries; empty for stand-ins
}

var (
	first  = release{version: "0.1.0", commit: strings.Repeat("1a", 20), epoch: 1_780_000_000, archs: "amd64 arm64"}
	second = release{version: "0.1.0", commit: strings.Repeat("2b", 20), epoch: 1_780_000_100, archs: "amd64 arm64"}
	third  = release{version: "0.2.0", commit: strings.Repeat("3c", 20), epoch: 1_780_000_200, archs: "amd64 arm64"}
)

// tag is the images' of the release.
func (r release) tag() string { return r.commit[:12] }

// debVersion is what the packages of the release have as their version.
func (r release) debVersion() string {
	return fmt.Sprintf("%s+git%s.%s", r.version, time.Unix(r.epoch, 0).UTC().Format("20060102150405"), r.tag())
}

func (r release) charts() string { return "nvke-cni-ovn-uplink-charts-" + r.version }
func (r release) images() string { return "nvke-cni-ovn-uplink-images-" + r.version }

// inputs lays out what a build needs and returns the options that name it.
func (r release) inputs(t *testing.T) []string {
	t.Helper()
	notShort(t)
	dir := t.TempDir()
	write := func(path, content string, mode os.FileMode) {
		path = filepath.Join(dir, path)
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(t, os.WriteFile(path, []byte(content), mode))
	}
	write("chart/Chart.yaml", "name: ovn-uplink\nversion: "+r.version+"\n", 0o600)
	write("chart/templates/a.yaml", "# empty\n", 0o644)
	write("chart/values.yaml", fmt.Sprintf("image:\n  tag: %q\n", r.tag()), 0o644)
	write("values.yaml", "gatewayMode: shared\n", 0o644)
	bin := r.bin
	if bin == "" {
		bin = filepath.Join(dir, "bin")
	}
	for _, arch := range strings.Fields(r.archs) {
		for _, agent := range []string{"host-agent", "dpu-agent"} {
			write(fmt.Sprintf("images/ovn-uplink-%s-linux-%s.tar", agent, arch), dockerArchive(r.image(agent), arch, agent), 0o644)
		}
		if r.bin == "" {
			write("bin/linux-"+arch+"/dpu-agent", "#!/bin/sh\nexec sleep infinity\n", 0o755)
		}
	}
	return []string{
		"--version", r.version, "--commit", r.commit, "--epoch", strconv.FormatInt(r.epoch, 10), "--archs", r.archs,
		"--chart", filepath.Join(dir, "chart"), "--values", filepath.Join(dir, "values.yaml"),
		"--images", filepath.Join(dir, "images"), "--bin", bin,
	}
}

func (r release) image(agent string) string { return "nvke/ovn-uplink-" + agent + ":" + r.tag() }

// build makes packages and returns the directory with them.
func (r release) build(t *testing.T, packages ...string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "debs")
	if text, err := script("deploy/deb/build.sh", append(append(r.inputs(t), "--out", out), packages...)...); err != nil {
		t.Fatalf("build packages: %v: %s", err, text)
	}
	return out
}

// deb is the path of a package in a directory of packages.
func deb(t *testing.T, dir, name, arch string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, name+"_*_"+arch+".deb"))
	must(t, err)
	if len(found) != 1 {
		t.Fatalf("%d packages %s for %s in %s", len(found), name, arch, dir)
	}
	return found[0]
}

// script runs one of the repository's and returns what it printed.
func script(path string, args ...string) (string, error) {
	return scriptWith(nil, path, args...)
}

func scriptWith(env []string, path string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), buildTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(repository, path), args...)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// dockerArchive is an image of one small file, as docker save writes it.
func dockerArchive(name, arch, content string) string {
	layer := tarball(map[string]string{"content": content + " for " + arch})
	sum := sha256.Sum256([]byte(layer))
	config := fmt.Sprintf(`{"architecture":"%s","os":"linux","config":{"Entrypoint":["/content"]},"rootfs":{"type":"layers","diff_ids":["sha256:%s"]}}`,
		arch, hex.EncodeToString(sum[:]))
	return tarball(map[string]string{
		"config.json":   config,
		"layer.tar":     layer,
		"manifest.json": fmt.Sprintf(`[{"Config":"config.json","RepoTags":[%q],"Layers":["layer.tar"]}]`, name),
	})
}

func tarball(files map[string]string) string {
	names := make([]string, 0, len(files))
	for name := range files {
		names = append(names, name)
	}
	sort.Strings(names)
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, name := range names {
		header := &tar.Header{Name: name, Mode: 0o644, Size: int64(len(files[name])), Format: tar.FormatUSTAR}
		if err := w.WriteHeader(header); err != nil {
			panic(err) // into memory
		}
		_, _ = w.Write([]byte(files[name]))
	}
	_ = w.Close()
	return out.String()
}

var binaries struct {
	sync.Mutex
	dir string
}

// binary builds the dpu-agent of an architecture as make build does, once, and returns the directory for --bin.
func binary(t *testing.T, arch string) string {
	t.Helper()
	return filepath.Dir(filepath.Dir(program(t, arch, "dpu-agent")))
}

// program builds an agent for an architecture, once, and returns its path.
func program(t *testing.T, arch, agent string) string {
	t.Helper()
	binaries.Lock()
	defer binaries.Unlock()
	out := filepath.Join(binaries.dir, "linux-"+arch, agent)
	if _, err := os.Stat(out); err == nil {
		return out
	}
	cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", out, "./"+agent)
	cmd.Dir = repository
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch)
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build %s for %s: %v: %s", agent, arch, err, text)
	}
	return out
}

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "ovn-uplink-packages-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	binaries.dir = dir
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// notShort skips a test that needs programs that not every machine has.
func notShort(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("skipped: -short; the test makes Debian packages")
	}
}

// command runs a program that has to succeed.
func command(t *testing.T, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), buildTime)
	defer cancel()
	out, err := exec.CommandContext(ctx, args[0], args[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", strings.Join(args, " "), err, out)
	}
	return string(out)
}
