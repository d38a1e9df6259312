// SPDX-License-Identifier: Apache-2.0

package packages

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// containerd starts the root's own containerd, with the plugin for kubelets, which gives every image a second name.
func (r *root) containerd() {
	r.t.Helper()
	r.must("systemctl", "start", "containerd")
	r.eventually(20*time.Second, func() error {
		_, err := r.run("ctr", "version")
		return err
	})
}

// stored lists the images of the kubelet's namespace, a line "name digest" each.
func (r *root) stored() string {
	r.t.Helper()
	return r.must("sh", "-c", "ctr -n k8s.io images ls | awk 'NR > 1 {print $1, $3}'")
}

// Installing imports both images under the names of the release. What is in containerd under one of these names but is
// another image survives the purge, everything else of ours is gone.
func TestImagesFromInstallToPurge(t *testing.T) {
	t.Parallel()
	r := bootRoot(t, surroundings{})
	r.containerd() // it makes some directories the first time
	r.must("systemctl", "stop", "containerd")
	k := newSigner(t)
	both := filepath.Join(t.TempDir(), "both")
	must(t, os.Mkdir(both, 0o755))
	for _, release := range []release{first, third} {
		release.archs = "amd64"
		debs := release.build(t, "images")
		path := deb(t, debs, release.images(), "amd64")
		must(t, os.Rename(path, filepath.Join(both, filepath.Base(path))))
	}
	k.repository(r, "apt", both)
	before := r.files()
	_, err := r.source("apt")
	must(t, err)

	// containerd does not run yet: said, and no failure.
	out := r.must("apt-get", "install", "-y", first.images())
	if !strings.Contains(out, "containerd does not answer at /run/containerd/containerd.sock, so the images are not imported. When it runs: ovn-uplink-images import") {
		t.Errorf("the installation does not say what is missing: %s", tail(out))
	}
	r.fails([]string{"does not answer"}, "ovn-uplink-images", "status")
	r.containerd()
	r.fails([]string{"is not in containerd"}, "ovn-uplink-images", "status")
	r.must("dpkg-reconfigure", first.images())
	for _, agent := range []string{"host-agent", "dpu-agent"} {
		if name := "docker.io/" + first.image(agent) + " sha256:"; !strings.Contains(r.stored(), name) {
			t.Errorf("containerd has no %s:\n%s", name, r.stored())
		}
	}
	atFirst := r.stored()
	r.must("ovn-uplink-images", "status")
	r.must("ovn-uplink-images", "import")
	if got := r.stored(); got != atFirst {
		t.Errorf("the second import changed something:\n%s", got)
	}

	// The next release takes the place of the first, whose images stay for the pods that run.
	r.must("apt-get", "install", "-y", third.images())
	r.must("ovn-uplink-images", "status")
	if got := r.stored(); !strings.Contains(got, first.tag()) || !strings.Contains(got, third.tag()) {
		t.Errorf("after the upgrade containerd has\n%s", got)
	}
	// Purging the first is about the first.
	r.must("apt-get", "purge", "-y", first.images())
	if got := r.stored(); strings.Contains(got, first.tag()) || strings.Count(got, third.tag()) != 2 {
		t.Errorf("after the purge of the first containerd has\n%s", got)
	}
	// Somebody gives one of our names to an image of his.
	r.file("other.tar", dockerArchive(third.image("host-agent"), "amd64", "something else"))
	r.must("ctr", "-n", "k8s.io", "images", "import", "/srv/other.tar")
	r.must("apt-get", "remove", "-y", third.images())
	if got := r.stored(); strings.Count(got, third.tag()) != 2 {
		t.Errorf("after the removal containerd has\n%s", got)
	}
	out = r.must("apt-get", "purge", "-y", third.images())
	if !strings.Contains(out, "it stays") {
		t.Errorf("the purge does not say what stays: %s", tail(out))
	}
	if got := r.stored(); strings.TrimSpace(got) == "" || strings.Contains(got, third.image("dpu-agent")) || !strings.Contains(got, third.image("host-agent")) {
		t.Errorf("after the purge containerd has\n%s", got)
	}
	r.must("systemctl", "stop", "containerd")
	r.sameFiles(before)
}

// What is not what was packaged, or not for this machine, fails the installation before anything is imported.
func TestImagesRefused(t *testing.T) {
	t.Parallel()
	r := bootRoot(t, surroundings{})
	r.containerd()
	name := first.images()
	// repack changes what is in a package and leaves the rest of it as it is.
	repack := func(arch string, change func(dir string)) string {
		release := first
		release.archs = arch
		path := deb(t, release.build(t, "images"), name, arch)
		dir := filepath.Join(t.TempDir(), "unpacked")
		command(t, "dpkg-deb", "--raw-extract", path, dir)
		change(dir)
		command(t, "dpkg-deb", "--root-owner-group", "--build", dir, filepath.Join(r.share, "changed.deb"))
		return "/srv/changed.deb"
	}
	const images = "usr/share/ovn-uplink/images"
	for _, test := range []struct {
		name, arch string
		change     func(dir string)
		says       []string
	}{
		{"tampered", "amd64", func(dir string) {
			path := filepath.Join(dir, images, "ovn-uplink-host-agent-linux-amd64.tar")
			raw, err := os.ReadFile(path)
			must(t, err)
			raw[len(raw)/2] ^= 1
			must(t, os.WriteFile(path, raw, 0o644))
		}, []string{"not those that were packaged, nothing is imported", "ovn-uplink-host-agent-linux-amd64.tar: FAILED"}},
		{"another architecture in the archive", "amd64", func(dir string) {
			path := filepath.Join(dir, images, "ovn-uplink-host-agent-linux-amd64.tar")
			must(t, os.WriteFile(path, []byte(dockerArchive(first.image("host-agent"), "arm64", "x")), 0o644))
			command(t, "sh", "-c", `cd "$1" && sha256sum -- *.tar names >SHA256SUMS`, "sh", filepath.Join(dir, images))
		}, []string{"is for arm64, not amd64; nothing is imported"}},
		{"the package of another architecture", "arm64", func(string) {}, []string{"package architecture (arm64) does not match system (amd64)"}},
		{"the second archive is none", "amd64", func(dir string) {
			// The order of import is that of the names: the host's is first, and is taken back.
			config := dockerArchive(first.image("dpu-agent"), "amd64", "x")
			broken := strings.Replace(config, `"Layers":["layer.tar"]`, `"Layers":["nayer.tar"]`, 1)
			must(t, os.WriteFile(filepath.Join(dir, images, "ovn-uplink-dpu-agent-linux-amd64.tar"), []byte(broken), 0o644))
			command(t, "sh", "-c", `cd "$1" && sha256sum -- *.tar names >SHA256SUMS`, "sh", filepath.Join(dir, images))
		}, []string{"containerd could not import ovn-uplink-dpu-agent-linux-amd64.tar; nothing of it is left in containerd"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			r.t = t
			r.fails(test.says, "dpkg", "--install", repack(test.arch, test.change))
			if got := r.stored(); got != "" {
				t.Errorf("containerd has\n%s", got)
			}
			if _, err := r.run("dpkg", "--purge", name); err != nil {
				t.Error(err)
			}
			if _, err := r.run("test", "!", "-e", "/var/lib/ovn-uplink-images"); err != nil {
				t.Error("the purge left its record")
			}
		})
	}
}
