// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"net/netip"
	"testing"
	"time"

	"github.com/ovn-uplink/ovn-uplink/shared/api/v1alpha1"
	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
	"github.com/ovn-uplink/ovn-uplink/test/lab"
)

// Reasons of GatewayReady=False that a component or a person has in their hands: each is there because something real
// is broken, says what, leaves alone what works, and goes by itself.
func TestGatewayReasons(t *testing.T) {
	t.Parallel()
	c := newGatewayCluster(t, version(t, "installed"))
	s := c.regularSite("worker-a", lab.RegularSpec{})
	s.foreigners()
	s.addBridge(s.ovs, "ovsbr2", "198.51.100.2/24")
	s.addWire(s.ovs, "up2")
	s.vsctl(s.ovs, "add-port", "ovsbr2", "up2")
	c.uplink("tenant-blue", nodeConfig(s.iface, nil))
	s.dpuAgent()
	before := s.look()

	// Open vSwitch refuses the flows: its table is full.
	s.vsctl(s.ovs, "--", "--id=@full", "create", "Flow_Table", "flow_limit=3", "overflow_policy=refuse",
		"--", "set", "Bridge", s.bridge, "flow_tables:0=@full")
	blue := c.tenantNetwork("tenant-blue", lab.NetworkSpec{CUDN: "blue"}, s)
	c.broken("tenant-blue", s.node, uplinkstate.ReasonUplinkGatewayProgrammingFailed, "blue", "program the flows", s.bridge, "TABLE_FULL")
	s.vsctl(s.ovs, "clear", "Bridge", s.bridge, "flow_tables")
	c.within(programmed, "tenant-blue", s.node, covers("blue"))
	pod := s.pod(blue, "a")

	t.Run("database down", func(t *testing.T) { s.on(t).databaseDown(pod) })
	t.Run("foreign mapping", func(t *testing.T) { s.on(t).foreignMapping(pod) })
	t.Run("conflict", func(t *testing.T) { s.on(t).conflict(pod) })
	t.Run("awaited router", func(t *testing.T) { s.on(t).awaitedRouter(pod) })
	t.Run("overlap", func(t *testing.T) { s.on(t).overlap(pod) })

	c.must(c.DeleteCUDN(t.Context(), "blue"))
	c.within(programmed, "tenant-blue", s.node, covers())
	s.must(lab.Eventually(t.Context(), settled, s.noFlows))
	before.NB = s.look().NB // there are networks that were not
	s.untouched(before, "all reasons")
}

// on is the site in a subtest.
func (s *site) on(t *testing.T) *site {
	sub := *s
	sub.cluster = &cluster{Lab: s.Lab, t: t, client: s.client}
	return &sub
}

func (s *site) databaseDown(pod *lab.Pod) {
	s.lossless(pod.Node, "the northbound database is down", func() {
		s.must(s.zone.StopNB(s.t.Context()))
		s.broken("tenant-blue", s.node, uplinkstate.ReasonUplinkGatewayProgrammingFailed, "blue", "northbound database", "OVN_Northbound", "ovnnb_db.sock")
		s.must(s.zone.StartNB(s.t.Context()))
		s.within(programmed, "tenant-blue", s.node, covers("blue"))
	})
}

// foreignMapping: somebody else has mapped the physical network already, and who was first is not ours to judge.
func (s *site) foreignMapping(pod *lab.Pod) {
	s.uplink("tenant-red", nodeConfig("ovsbr2", nil))
	s.vsctl(s.ovs, "set", "Open_vSwitch", ".",
		`external_ids:ovn-bridge-mappings="physnet:br-ex,other:br-other,uplink-tenant-blue:`+s.bridge+`,uplink-tenant-red:br-theirs"`)
	s.lossless(pod.Node, "a foreign mapping on another Uplink", func() {
		s.tenantNetwork("tenant-red", lab.NetworkSpec{CUDN: "red"}, s)
		s.broken("tenant-red", s.node, uplinkstate.ReasonUplinkBridgeMappingFailed,
			"red", "external_ids:ovn-bridge-mappings", `"uplink-tenant-red:br-theirs"`, "uplink-tenant-red:ovsbr2", "remove it")
		s.within(settled, "tenant-blue", s.node, covers("blue"))
		s.vsctl(s.ovs, "set", "Open_vSwitch", ".",
			`external_ids:ovn-bridge-mappings="physnet:br-ex,other:br-other,uplink-tenant-blue:`+s.bridge+`"`)
		s.within(programmed, "tenant-red", s.node, covers("red"))
	})
}

// conflict moves the second Uplink to the bridge of the first.
func (s *site) conflict(pod *lab.Pod) {
	words := []string{"tenant-blue", "tenant-red", s.bridge, "its own bridge"}
	s.lossless(pod.Node, "two Uplinks on one bridge", func() {
		s.uplink("tenant-red", nodeConfig(s.iface, nil))
		s.broken("tenant-red", s.node, uplinkstate.ReasonUplinkConfigurationConflict, words...)
		s.broken("tenant-blue", s.node, uplinkstate.ReasonUplinkConfigurationConflict, words...)
		pause(s.t, 2*time.Second)
		s.dropUplink("tenant-red")
		s.within(programmed, "tenant-blue", s.node, covers("blue"))
		s.must(s.DeleteCUDN(s.t.Context(), "red"))
	})
}

// awaitedRouter makes the CUDN before the CNI has made the network.
func (s *site) awaitedRouter(pod *lab.Pod) {
	subnets := []netip.Prefix{netip.MustParsePrefix("10.201.0.0/16")}
	s.lossless(pod.Node, "a network that is not there yet", func() {
		s.must(s.CreateCUDN(s.t.Context(), lab.NetworkSpec{CUDN: "green", Subnets: subnets}, "tenant-blue"))
		s.broken("tenant-blue", s.node, uplinkstate.ReasonGatewayConfigurationPending, "green", "Logical_Router", "cluster_udn_green")
		s.within(settled, "tenant-blue", s.node, phase("blue", v1alpha1.NetworkReady))
		_, err := s.Network(s.t.Context(), lab.NetworkSpec{CUDN: "green", Subnets: subnets}, s.zone)
		s.must(err)
		s.within(programmed, "tenant-blue", s.node, covers("blue", "green"))
		s.must(s.DeleteCUDN(s.t.Context(), "green"))
	})
}

// overlap makes a network that can have no gateway.
func (s *site) overlap(pod *lab.Pod) {
	s.lossless(pod.Node, "an impossible network", func() {
		s.tenantNetwork("tenant-blue", lab.NetworkSpec{CUDN: "wrong", Subnets: []netip.Prefix{netip.MustParsePrefix("100.91.0.0/16")}}, s)
		s.broken("tenant-blue", s.node, uplinkstate.ReasonUplinkGatewayProgrammingFailed, "1 of 2 networks: wrong:", "transit", "100.91.0.0/16", "choose another range")
		s.within(settled, "tenant-blue", s.node, phase("blue", v1alpha1.NetworkReady))
		s.must(s.DeleteCUDN(s.t.Context(), "wrong"))
		s.within(programmed, "tenant-blue", s.node, covers("blue"))
	})
}
