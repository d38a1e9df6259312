// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/ovn-uplink/ovn-uplink/shared/api/v1alpha1"
	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
	"github.com/ovn-uplink/ovn-uplink/test/lab"
)

// Where ovn-controller does not do its part, GatewayReady says within 30 seconds what is missing and where to look
// (B12, B16).
func TestB12GatewayReasonsOfOVNController(t *testing.T) {
	t.Parallel()
	c := newGatewayCluster(t, version(t, "newer"))
	s := c.regularSite("worker-a", lab.RegularSpec{})
	c.uplink("tenant-blue", nodeConfig(s.iface, nil))
	s.args = append(s.args, "--chassis-file", "/nowhere")
	s.dpuAgent()
	controller := s.zone.ControllerProcess()
	blue, err := c.Network(t.Context(), lab.NetworkSpec{CUDN: "blue"}, s.zone)
	c.must(err)

	// It does not answer: there is no patch port for the first network.
	c.must(controller.Signal(syscall.SIGSTOP))
	c.cudn("tenant-blue", blue)
	c.broken("tenant-blue", s.node, uplinkstate.ReasonUplinkBridgeMappingFailed,
		"blue", "no patch port within 30s", "uplink_tenant-blue_phys_worker-a", s.bridge, "external_ids:ovn-bridge-mappings maps it", "is ovn-controller running")
	c.must(controller.Signal(syscall.SIGCONT))
	c.within(programmed, "tenant-blue", s.node, covers("blue"))
	pod := s.pod(blue, "a")

	// Nor is the router of a second network carried out. The first is not concerned.
	c.must(controller.Signal(syscall.SIGSTOP))
	c.lossless(pod.Node, "ovn-controller does not answer", func() {
		red := c.tenantNetwork("tenant-blue", lab.NetworkSpec{CUDN: "red"}, s)
		c.broken("tenant-blue", s.node, uplinkstate.ReasonUplinkGatewayProgrammingFailed,
			"1 of 2 networks: red", "ovn-controller has not carried out", "uplink_tenant-blue_gw_cluster_udn_red_worker-a", `"worker-a"`)
		c.within(settled, "tenant-blue", s.node, phase("blue", v1alpha1.NetworkReady))
		c.must(controller.Signal(syscall.SIGCONT))
		c.within(programmed, "tenant-blue", s.node, covers("blue", "red"))
		s.pod(red, "a")
	})

	// It is another chassis than the agent was told, and reads another key.
	override := filepath.Join(s.ovs.Dir(), "etc", "system-id-override")
	s.leaveZone()
	c.must(os.WriteFile(override, []byte("elsewhere\n"), 0o644))
	s.vsctl(s.ovs, "set", "Open_vSwitch", ".", "external_ids:ovn-bridge-mappings-elsewhere=physnet:br-ex")
	s.zone.Chassis = "elsewhere"
	c.must(s.zone.StartController(t.Context()))
	c.broken("tenant-blue", s.node, uplinkstate.ReasonUplinkBridgeMappingFailed,
		"2 of 2 networks", "external_ids:ovn-bridge-mappings-elsewhere", "--chassis", `"worker-a"`)
	s.leaveZone()
	c.must(os.Remove(override))
	s.vsctl(s.ovs, "remove", "Open_vSwitch", ".", "external_ids", "ovn-bridge-mappings-elsewhere")
	s.zone.Chassis = "worker-a"
	c.must(s.zone.StartController(t.Context()))
	c.within(programmed, "tenant-blue", s.node, covers("blue", "red"))
	c.pings(pod.Node, lab.InternetAddress)
}

// leaveZone ends ovn-controller and takes the chassis away, which may not have the same address as another.
func (s *site) leaveZone() {
	s.t.Helper()
	s.must(s.zone.StopController(s.t.Context()))
	_, err := s.zone.Sbctl(s.t.Context(), "--if-exists", "chassis-del", s.zone.Chassis)
	s.must(err)
}
