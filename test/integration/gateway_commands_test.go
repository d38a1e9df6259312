// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ovn-uplink/ovn-uplink/test/lab"
)

// explain tells of every link whether it holds, and cleanup leaves nothing of the agent's and all of others'.
func TestGatewayCommands(t *testing.T) {
	t.Parallel()
	c := newGatewayCluster(t, lab.OVNVersions(t)[0])
	s := c.regularSite("worker-a", lab.RegularSpec{})
	c.uplink("tenant-blue", nodeConfig(s.iface, nil))
	agent := s.agents()
	blue, err := c.Network(t.Context(), lab.NetworkSpec{CUDN: "blue"}, s.zone)
	c.must(err)
	before := s.look()
	c.cudn("tenant-blue", blue)
	c.within(programmed, "tenant-blue", s.node, covers("blue"))

	command := func(args ...string) (string, error) {
		return s.ovs.Exec(t.Context(), append([]string{filepath.Join(binaries, "dpu-agent"), "--role", "all", "--node-name", s.node, "--state-dir", filepath.Join(s.ovs.Dir(), "state")}, args...)...)
	}
	out, err := command("explain", "blue")
	c.must(err)
	for _, want := range []string{"uplink", "mapping", "edge router", "localnet port", "gateway router", "attachment", "VRF", "routes", "patch port", "ovn-controller", "flows"} {
		if !strings.Contains(out, want) || strings.Contains(out, "MISSING") {
			t.Errorf("explain does not say that %s is ok:\n%s", want, out)
		}
	}
	out, err = command("explain", "blue", "-o", "json")
	c.must(err)
	var explained struct {
		Uplink string
		Lines  []struct{ OK bool }
	}
	if err := json.Unmarshal([]byte(out), &explained); err != nil || explained.Uplink != "tenant-blue" || len(explained.Lines) != 10 {
		t.Errorf("explain -o json: %v\n%s", err, out)
	}

	c.must(agent.Stop(t.Context()))
	c.vsctl(s.ovs, "set", "Open_vSwitch", ".", "external_ids:ovn-bridge-mappings=physnet:br-ex")
	c.must(lab.Eventually(t.Context(), settled, func(context.Context) error {
		out, err := command("explain", "blue")
		return says(out, err, "has no element for uplink-tenant-blue")
	}))
	out, err = command("explain", "green")
	c.must(says(out, err, "OVN has no rows of ours for network cluster_udn_green"))

	out, err = command("cleanup", "--uplink", "tenant-red")
	c.must(err)
	if !strings.Contains(out, "Uplink tenant-red: nothing of it is here") {
		t.Errorf("cleanup of another Uplink: %s", out)
	}
	out, err = command("cleanup")
	c.must(err)
	if !strings.Contains(out, "Uplink tenant-blue: removed what was programmed for it") {
		t.Errorf("cleanup: %s", out)
	}
	s.gone(before)
}

// says is nil if a command failed and said so.
func says(out string, err error, want string) error {
	if err == nil || !strings.Contains(out+err.Error(), want) {
		return fmt.Errorf("it does not fail with %q: %s, %w", want, out, err)
	}
	return nil
}
