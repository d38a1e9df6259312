// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/ovn-uplink/ovn-uplink/deploy/release/dist"
	"github.com/ovn-uplink/ovn-uplink/deploy/release/push"
	"github.com/ovn-uplink/ovn-uplink/deploy/release/source/sourcetest"
)

func TestReference(t *testing.T) {
	image := dist.Image{Agent: "dpu-agent", Repository: "nvke/ovn-uplink-dpu-agent", Tag: "8af51273d52d"}
	for _, test := range []struct{ registry, want, problem string }{
		{"registry.example.com", "registry.example.com/nvke/ovn-uplink-dpu-agent:8af51273d52d", ""},
		{"registry:5000", "registry:5000/nvke/ovn-uplink-dpu-agent:8af51273d52d", ""},
		{"registry.example.com/mirror", "registry.example.com/mirror/nvke/ovn-uplink-dpu-agent:8af51273d52d", ""},
		{"registry", "", `"registry" is no registry`}, // it would be Docker Hub's
		{"https://registry.example.com", "", "without https://"},
	} {
		tag, err := push.Pusher{Registry: test.registry}.Reference(image)
		switch {
		case test.problem == "" && (err != nil || tag.Name() != test.want):
			t.Errorf("%s: got %s, %v", test.registry, tag, err)
		case test.problem != "" && (err == nil || !strings.Contains(err.Error(), test.problem)):
			t.Errorf("%s: error is %v, want %q", test.registry, err, test.problem)
		}
	}
}

// checkPush pushes to a registry and runs what it serves for each platform, in a root of its own.
func checkPush(t *testing.T, program string, repository *sourcetest.Repository, dir string, manifest dist.Manifest) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "http://")

	out, err := release(t, program, repository, "push", "--registry", host)
	if err == nil || !strings.Contains(out, "--insecure") {
		t.Errorf("push without TLS: %v: %s", err, out)
	}
	out, err = release(t, program, repository, "push", "--registry", host, "--insecure", "--images", dir)
	if err != nil {
		t.Fatalf("push: %v: %s", err, out)
	}
	for _, image := range manifest.Images {
		reference, err := name.ParseReference(host + "/" + image.Reference())
		if err != nil {
			t.Fatal(err)
		}
		if line := "pushed " + reference.String() + "@" + image.Index.Digest; !strings.Contains(out, line) {
			t.Errorf("push prints\n%s\nwant %q", out, line)
		}
		for _, built := range image.Platforms {
			pulled, err := remote.Image(reference, remote.WithPlatform(platform(built.Architecture)))
			if err != nil {
				t.Fatal(err)
			}
			if digest, err := pulled.Digest(); err != nil || digest.String() != built.Digest {
				t.Errorf("%s for %s is %s (%v), built was %s", reference, built.Architecture, digest, err, built.Digest)
			}
			runs(t, pulled, image.Agent, built.Architecture, manifest)
		}
	}
}

// runs unpacks an image and runs its programs with the unpacked root as theirs, so that nothing of the machine's helps.
func runs(t *testing.T, image v1.Image, agent, arch string, manifest dist.Manifest) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Log("not root: what is in the images is not run")
		return
	}
	stream := mutate.Extract(image)
	files, err := io.ReadAll(stream)
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Close(); err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	untar(t, files, root)
	run := func(args ...string) string {
		t.Helper()
		if arch != runtime.GOARCH {
			args = append([]string{emulator(t, root, arch)}, args...)
		}
		cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
		cmd.Dir, cmd.Env = "/", []string{"PATH=/usr/bin"}
		cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%s for %s: %s: %v: %s", agent, arch, strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	want := agent + " " + manifest.Version + " (commit " + manifest.Commit + ", linux/" + arch
	if out := run("/usr/bin/"+agent, "version"); !strings.HasPrefix(out, want) {
		t.Errorf("%s for %s says %q, want %q", agent, arch, out, want)
	}
	for _, path := range []string{"LICENSE", "third-party/go/LICENSE", "third-party/k8s.io/client-go/LICENSE"} {
		if _, err := os.Stat(filepath.Join(root, "usr/share/doc/ovn-uplink", path)); err != nil {
			t.Errorf("%s for %s: a license is missing: %v", agent, arch, err)
		}
	}
	if agent != "dpu-agent" {
		return
	}
	if out := run("/usr/bin/ovs-ofctl", "--version"); !strings.Contains(out, "Open vSwitch") {
		t.Errorf("ovs-ofctl for %s says %q", arch, out)
	}
	if out := run("/usr/bin/ovs-ofctl", "parse-flow", "ip,nw_dst=192.0.2.1,actions=ct(commit,nat(src=192.0.2.2)),output:1"); !strings.Contains(out, "nat(src=192.0.2.2)") {
		t.Errorf("ovs-ofctl for %s reads a flow as %q", arch, out)
	}
}

// emulator puts a static emulator of an architecture into a root and returns its path there.
func emulator(t *testing.T, root, arch string) string {
	t.Helper()
	program := map[string]string{"arm64": "qemu-aarch64-static", "amd64": "qemu-x86_64-static"}[arch]
	path, err := exec.LookPath(program)
	if err != nil {
		t.Fatalf("run a program for %s: %v; it is in the Debian package qemu-user-static", arch, err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, program), text, 0o755); err != nil {
		t.Fatal(err)
	}
	return "/" + program
}
