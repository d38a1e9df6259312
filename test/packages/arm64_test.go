// SPDX-License-Identifier: Apache-2.0

package packages

import (
	"strings"
	"testing"
)

// The packages for arm64 on an arm64 system, run by emulation, from the index that has both architectures.
func TestArm64(t *testing.T) {
	t.Parallel()
	r := idleRoot(t, arm64Base)
	k := newSigner(t)
	release := first
	release.bin = binary(t, "arm64")
	binary(t, "amd64")
	k.repository(r, "apt", release.build(t))
	before := r.files()
	_, err := r.source("apt")
	must(t, err)
	out := r.must("apt-get", "install", "-y", "ovn-uplink-dpu-agent", first.images(), first.charts())
	for _, want := range []string{"there is no /etc/ovn-uplink/kubeconfig", "containerd is not installed, so the images are not imported"} {
		if !strings.Contains(out, want) {
			t.Errorf("the installation does not say %q: %s", want, tail(out))
		}
	}
	if out := r.must("dpu-agent", "version"); !strings.Contains(out, "linux/arm64") {
		t.Errorf("version: %s", out)
	}
	if out := r.must("systemctl", "is-enabled", agentUnit); strings.TrimSpace(out) != "enabled" {
		t.Errorf("the service is %s", out)
	}
	if out := r.must("systemd-analyze", "verify", "--man=no", agentUnit, timerUnit); strings.Contains(out, "ovn-uplink") {
		t.Errorf("systemd-analyze verify: %s", out)
	}
	r.fails([]string{"does not match system"}, "dpkg", "--install", "/srv/apt/"+first.images()+"_"+first.debVersion()+"_amd64.deb")
	r.must("dpkg", "--purge", first.images())
	r.must("apt-get", "purge", "-y", "ovn-uplink-dpu-agent", first.charts())
	r.sameFiles(before)
}
