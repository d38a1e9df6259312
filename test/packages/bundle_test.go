// SPDX-License-Identifier: Apache-2.0

package packages

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ovn-uplink/ovn-uplink/test/lab"
)

// tree is a file tree of an operating system, on an overlay that ends with the test.
func tree(t *testing.T, b base) string {
	t.Helper()
	lab.NeedRoot(t)
	if b.arch != "amd64" {
		emulate(t)
	}
	dir := t.TempDir()
	for _, sub := range []string{"upper", "work", "root"} {
		must(t, os.Mkdir(filepath.Join(dir, sub), 0o755))
	}
	mount := filepath.Join(dir, "root")
	command(t, "mount", "-t", "overlay", "-o", "lowerdir="+b.path(t)+",upperdir="+filepath.Join(dir, "upper")+",workdir="+filepath.Join(dir, "work"), "tree", mount)
	t.Cleanup(func() { command(t, "umount", mount) })
	return mount
}

// says runs a script that has to end so and to say something.
func says(t *testing.T, ok bool, want, path string, args ...string) string {
	t.Helper()
	notShort(t)
	out, err := script(path, args...)
	if (err == nil) != ok || !strings.Contains(out, want) {
		t.Fatalf("%s %s: %v, want %q: %s", path, strings.Join(args, " "), err, want, out)
	}
	return out
}

const addToRootfs = "hack/bluefield/add-to-rootfs.sh"

// The package goes into the tree of a card's system, by emulation; what is for another architecture does not.
func TestPackageIntoRootfs(t *testing.T) {
	t.Parallel()
	root := tree(t, arm64Base)
	release := first
	release.archs, release.bin = "arm64", binary(t, "arm64")
	arm64 := deb(t, release.build(t, "dpu-agent"), "ovn-uplink-dpu-agent", "arm64")
	amd64 := deb(t, first.build(t, "dpu-agent"), "ovn-uplink-dpu-agent", "amd64")
	says(t, false, "is for amd64, "+root+" is arm64", addToRootfs, "--root", root, "--deb", amd64)
	says(t, false, "running system", addToRootfs, "--root", "/", "--deb", arm64)
	says(t, false, "is no Debian", addToRootfs, "--root", t.TempDir(), "--deb", arm64)
	says(t, true, "would install", addToRootfs, "--root", root, "--deb", arm64, "--dry-run")
	absent(t, root, "usr/bin/dpu-agent")
	says(t, true, "is in "+root, addToRootfs, "--root", root, "--deb", arm64)
	says(t, true, "already", addToRootfs, "--root", root, "--deb", arm64)
	absent(t, root, "usr/sbin/policy-rc.d", "tmp/ovn-uplink-dpu-agent.deb")
	if _, err := os.Lstat(filepath.Join(root, "etc/systemd/system/multi-user.target.wants", agentUnit)); err != nil {
		t.Errorf("the service is not enabled: %v", err)
	}
	if out := command(t, "chroot", root, "dpu-agent", "version"); !strings.Contains(out, "linux/arm64") {
		t.Errorf("version: %s", out)
	}
}

func TestImageIntoRootfs(t *testing.T) {
	t.Parallel()
	root := tree(t, amd64Base)
	dir := t.TempDir()
	image, foreign := filepath.Join(dir, "amd64.tar"), filepath.Join(dir, "arm64.tar")
	must(t, os.WriteFile(image, []byte(dockerArchive(first.image("dpu-agent"), "amd64", "x")), 0o644))
	must(t, os.WriteFile(foreign, []byte(dockerArchive(first.image("dpu-agent"), "arm64", "x")), 0o644))
	says(t, false, "is for arm64", addToRootfs, "--root", root, "--image", foreign)
	says(t, true, "would put", addToRootfs, "--root", root, "--image", image, "--dry-run")
	absent(t, root, "etc/kubelet.d")
	says(t, true, "starts once there is", addToRootfs, "--root", root, "--image", image)
	says(t, true, "already", addToRootfs, "--root", root, "--image", image)
	pod, err := os.ReadFile(filepath.Join(root, "etc/kubelet.d/ovn-uplink-dpu-agent.yaml"))
	must(t, err)
	if !strings.Contains(string(pod), "image: "+first.image("dpu-agent")+"\n") {
		t.Errorf("the manifest: %s", pod)
	}
	command(t, "chroot", root, "systemctl", "is-enabled", "ovn-uplink-preload.service")
	if out := command(t, "chroot", root, "systemd-analyze", "verify", "--man=no", "/etc/systemd/system/ovn-uplink-preload.service"); strings.Contains(out, "preload") {
		t.Errorf("systemd-analyze verify: %s", out)
	}
}

// The hook that bf.cfg gets is run as the installer of a BFB runs it: it takes the package that was named and no other, and
// keeps a hook that was there.
func TestBFConfig(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	debs := first.build(t, "dpu-agent")
	package64 := deb(t, debs, "ovn-uplink-dpu-agent", "arm64")
	const makeConfig = "hack/bluefield/bfb/make-bf-cfg.sh"
	says(t, false, "cards are arm64", makeConfig, "--deb", deb(t, debs, "ovn-uplink-dpu-agent", "amd64"), "--url", "http://a/b.deb")
	says(t, false, "neither a http URL nor a path", makeConfig, "--deb", package64, "--url", "$(reboot)")
	existing, out := filepath.Join(dir, "site.cfg"), filepath.Join(dir, "bf.cfg")
	must(t, os.WriteFile(existing, []byte("ubuntu_PASSWORD='x'\nbfb_modify_os()\n{\n\techo the site was here\n}\n"), 0o600))
	if text := says(t, true, "bfb_modify_os", makeConfig, "--deb", package64, "--url", package64, "--out", out, "--dry-run"); text == "" {
		t.Error("nothing printed")
	}
	absent(t, dir, "bf.cfg")
	says(t, true, "installs ovn-uplink-dpu-agent "+first.debVersion(), makeConfig, "--deb", package64, "--url", package64, "--bf-cfg", existing, "--out", out)
	once, err := os.ReadFile(out)
	must(t, err)
	says(t, true, "installs", makeConfig, "--deb", package64, "--url", package64, "--bf-cfg", out, "--out", out)
	twice, err := os.ReadFile(out)
	must(t, err)
	if string(once) != string(twice) {
		t.Errorf("the second time it is\n%s", twice)
	}
	command(t, "shellcheck", "--shell=bash", "--exclude=SC2034,SC2317", out)

	// The installer's dpkg runs in the card's root; here a stand-in shows what it is given.
	root := filepath.Join(dir, "mnt")
	must(t, os.MkdirAll(filepath.Join(root, "tmp"), 0o755))
	bin := filepath.Join(dir, "bin")
	must(t, os.Mkdir(bin, 0o755))
	must(t, os.WriteFile(filepath.Join(bin, "chroot"), []byte("#!/bin/sh\nsha256sum \"$1$4\" | cut -c1-64\necho \"$2 $3 $4 in $1\"\n"), 0o755))
	hook := `PATH=$1:$PATH; . "$2"; ovn_uplink_others; ovn_uplink_install "$3"; echo "result $?"`
	text := command(t, "bash", "-c", hook, "bash", bin, out, root)
	for _, want := range []string{"the site was here", "dpkg --install /tmp/ovn-uplink-dpu-agent.deb in " + root, "result 0"} {
		if !strings.Contains(text, want) {
			t.Errorf("the hook does not say %q: %s", want, text)
		}
	}
	raw, err := os.ReadFile(package64)
	must(t, err)
	raw[100] ^= 1
	must(t, os.WriteFile(package64, raw, 0o644))
	text = command(t, "bash", "-c", hook, "bash", bin, out, root)
	if !strings.Contains(text, "is not the package with sha256") || !strings.Contains(text, "result 1") {
		t.Errorf("another package: %s", text)
	}
}

func TestSimulatedCardDryRun(t *testing.T) {
	t.Parallel()
	says(t, true, "demo", "hack/bluefield/simulated-card.sh", "up", "--dry-run")
	says(t, true, "check-card.sh --simulated", "hack/bluefield/simulated-card.sh", "check", "--dry-run")
}

// Every script says how it is used, with examples, and takes no option that it does not know.
func TestHelp(t *testing.T) {
	t.Parallel()
	for _, path := range []string{
		"deploy/deb/build.sh", "deploy/deb/apt.sh", "hack/bluefield/check-card.sh", "hack/bluefield/enroll-dpu.sh",
		"hack/bluefield/add-to-rootfs.sh", "hack/bluefield/simulated-card.sh", "hack/bluefield/bfb/make-bf-cfg.sh",
	} {
		out := says(t, true, "examples:", path, "--help")
		if strings.Contains(out, "set -euo") || !strings.Contains(out, "usage: ") {
			t.Errorf("%s --help: %s", path, out)
		}
		says(t, false, "--help", path, "--no-such-option")
	}
}

func absent(t *testing.T, dir string, paths ...string) {
	t.Helper()
	for _, path := range paths {
		if _, err := os.Lstat(filepath.Join(dir, path)); err == nil {
			t.Errorf("there is a %s", path)
		}
	}
}
