// SPDX-License-Identifier: Apache-2.0

package packages

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

const (
	agentUnit = "ovn-uplink-dpu-agent.service"
	timerUnit = "ovn-uplink-rotate.timer"
)

// The agent's package on a machine that runs: nothing starts without a kubeconfig, an upgrade keeps what an administrator
// decided, a purge leaves nothing.
func TestDPUAgentFromInstallToPurge(t *testing.T) {
	t.Parallel()
	r := bootRoot(t, surroundings{})
	k := newSigner(t)
	old := first
	old.archs = "amd64"
	k.repository(r, "first", old.build(t, "dpu-agent"))
	newer := second
	newer.archs, newer.bin = "amd64", binary(t, "amd64")
	k.repository(r, "second", newer.build(t, "dpu-agent"))
	r.must("mkdir", "-p", "/var/lib/systemd/timers") // systemd's, at the first timer that is persistent
	before := r.files()

	_, err := r.source("first")
	must(t, err)
	out := r.must("apt-get", "install", "-y", "ovn-uplink-dpu-agent")
	if !strings.Contains(out, "not started, there is no /etc/ovn-uplink/kubeconfig") {
		t.Errorf("the installation does not say what is missing: %s", tail(out))
	}
	r.unit("enabled", "inactive")
	if out := r.must("systemctl", "is-enabled", timerUnit); strings.TrimSpace(out) != "enabled" {
		t.Errorf("%s is %s", timerUnit, out)
	}
	if out := r.must("stat", "-c", "%a %U", "/etc/ovn-uplink"); strings.TrimSpace(out) != "700 root" {
		t.Errorf("/etc/ovn-uplink is %s", out)
	}
	r.write("/etc/ovn-uplink/kubeconfig", "600", "anything")
	r.must("systemctl", "start", agentUnit)
	r.unit("enabled", "active")

	// An administrator's own options and decision.
	r.must("sh", "-c", "echo '# mine' >>/etc/default/ovn-uplink-dpu-agent")
	r.must("systemctl", "disable", agentUnit)
	_, err = r.source("second")
	must(t, err)
	r.must("apt-get", "upgrade", "-y")
	if out := r.must("dpkg-query", "-W", "-f", "${Version}", "ovn-uplink-dpu-agent"); out != newer.debVersion() {
		t.Errorf("version %s after the upgrade", out)
	}
	if out := r.must("tail", "-1", "/etc/default/ovn-uplink-dpu-agent"); out != "# mine\n" {
		t.Errorf("the options were overwritten: %s", out)
	}
	if out, err := r.run("systemctl", "is-enabled", agentUnit); err == nil {
		t.Errorf("the upgrade enabled the service again: %s", out)
	}
	if out := r.must("dpu-agent", "version"); !strings.Contains(out, "linux/amd64") {
		t.Errorf("version: %s", out)
	}
	if out := r.must("sh", "-c", "ovn-uplink-check-card --help && ovn-uplink-enroll-dpu --help"); out == "" {
		t.Error("no help")
	}

	// The same package again changes nothing.
	r.must("apt-get", "install", "-y", "--reinstall", "ovn-uplink-dpu-agent")
	r.must("dpkg-reconfigure", "ovn-uplink-dpu-agent")
	r.must("apt-get", "remove", "-y", "ovn-uplink-dpu-agent")
	if out, err := r.run("systemctl", "is-active", agentUnit); err == nil {
		t.Errorf("the service is %s after the removal", out)
	}
	r.must("test", "-e", "/etc/ovn-uplink/kubeconfig")
	r.must("apt-get", "purge", "-y", "ovn-uplink-dpu-agent")
	r.sameFiles(before)
}

// unit waits until the service is in a state.
func (r *root) unit(enabled, active string) {
	r.t.Helper()
	r.eventually(10*time.Second, func() error {
		a, _ := r.run("systemctl", "is-active", agentUnit)
		e, _ := r.run("systemctl", "is-enabled", agentUnit)
		if strings.TrimSpace(a) != active || strings.TrimSpace(e) != enabled {
			status, _ := r.run("systemctl", "status", "--no-pager", agentUnit)
			return fmt.Errorf("the service is %s and %s: %s", strings.TrimSpace(e), strings.TrimSpace(a), status)
		}
		return nil
	})
}
