// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"testing"

	"github.com/ovn-uplink/ovn-uplink/shared/api/v1alpha1"
	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
	"github.com/ovn-uplink/ovn-uplink/test/lab"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// addBridge makes a bridge whose internal interface is up and has an address.
func (c *cluster) addBridge(n *lab.Node, name, address string) {
	c.t.Helper()
	c.vsctl(n, "--", "add-br", name, "--", "set", "Bridge", name, "datapath_type=netdev")
	c.ip(n, "addr", "add", address, "dev", name)
	c.ip(n, "link", "set", name, "up")
}

// addWire makes an interface whose other end is up, with a carrier.
func (c *cluster) addWire(n *lab.Node, name string) {
	c.t.Helper()
	c.ip(n, "link", "add", name, "type", "veth", "peer", "name", name+"-far")
	c.ip(n, "link", "set", name, "up")
	c.ip(n, "link", "set", name+"-far", "up")
}

// Every reason of Resolved=False that a wrong setup can have, from real components, and the way out of each.
func TestReasons(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	n := c.regular("worker-a", lab.RegularSpec{})
	c.addBridge(n.Node, "br-int", "198.51.100.1/24")
	c.addBridge(n.Node, "br-ex", "198.51.100.2/24")
	c.addBridge(n.Node, "br-lonely", "198.51.100.3/24")
	c.addBridge(n.Node, "br-two", "198.51.100.4/24")
	for _, port := range []string{"t0", "t1", "loose0", "wire0"} {
		c.addWire(n.Node, port)
	}
	c.vsctl(n.Node, "add-port", "br-two", "t0", "--", "add-port", "br-two", "t1")
	c.ip(n.Node, "addr", "add", "198.51.100.5/24", "dev", "loose0")
	c.ip(n.Node, "addr", "add", "198.51.100.6/24", "dev", "up0")
	c.allRoles(n)

	for _, tc := range []struct {
		uplink, iface, reason string
		repair                func()
	}{
		{"missing", "eth9", uplinkstate.ReasonHostInterfaceNotFound, func() {
			c.ip(n.Node, "link", "property", "add", "dev", "ovsbr1", "altname", "eth9")
			c.ip(n.Node, "link", "set", "ovsbr1", "up") // the kernel tells nobody of a new alternative name
		}},
		{"no-address", "wire0", uplinkstate.ReasonGatewayInfoUnavailable, nil},
		{"not-in-ovs", "loose0", uplinkstate.ReasonBridgeNotFound, func() { c.uplink("not-in-ovs", nodeConfig("ovsbr1", nil)) }},
		{"integration", "br-int", uplinkstate.ReasonBridgeInvalid, func() { c.uplink("integration", nodeConfig("ovsbr1", nil)) }},
		{"default-gateway", "br-ex", uplinkstate.ReasonDefaultGatewayBridgeUnsupported, func() { c.uplink("default-gateway", nodeConfig("ovsbr1", nil)) }},
		{"lonely", "br-lonely", uplinkstate.ReasonBridgeUplinkNotFound, func() { c.vsctl(n.Node, "add-port", "br-lonely", "wire0") }},
		{"ambiguous", "br-two", uplinkstate.ReasonBridgeUplinkNotFound, func() {
			c.vsctl(n.Node, "set", "Bridge", "br-two", "external_ids:bridge-uplink=t1")
		}},
		{"physical", "up0", uplinkstate.ReasonInvalidHostInterface, func() { c.uplink("physical", nodeConfig("ovsbr1", nil)) }},
	} {
		t.Run(tc.uplink, func(t *testing.T) {
			c := &cluster{Lab: c.Lab, t: t, client: c.client}
			c.uplink(tc.uplink, nodeConfig(tc.iface, nil))
			state := c.within(settled, tc.uplink, n.Name, unresolved(tc.reason))
			message := meta.FindStatusCondition(state.Status.Conditions, uplinkstate.Resolved).Message
			t.Log(message)
			if len(message) < 20 {
				t.Errorf("the message does not explain anything: %q", message)
			}
			if state.Status.OVSBridge != nil {
				t.Errorf("a bridge is published although it is not fit: %+v", state.Status.OVSBridge)
			}
			if tc.repair != nil {
				tc.repair()
				c.within(settled, tc.uplink, n.Name, resolved)
			}
		})
	}
}

// Until the cluster's own gateway bridge is known any bridge might be it, so none is taken (B9).
func TestDefaultGatewayBridgeMustBeKnown(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	n, err := c.RegularNode(t.Context(), "worker-a", lab.RegularSpec{})
	c.must(err)
	c.node("worker-a", nil)
	c.uplink("blue", nodeConfig("ovsbr1", nil))
	c.allRoles(n)
	c.within(settled, "blue", n.Name, unresolved(uplinkstate.ReasonGatewayInfoUnavailable))
	c.vsctl(n.Node, "set", "Open_vSwitch", ".", "external_ids:ovn-bridge-mappings=physnet:ovsbr1")
	c.within(settled, "blue", n.Name, unresolved(uplinkstate.ReasonDefaultGatewayBridgeUnsupported))
	c.vsctl(n.Node, "set", "Open_vSwitch", ".", "external_ids:ovn-bridge-mappings=physnet:br-ex")
	c.within(settled, "blue", n.Name, resolved)
	// What ovn-controller really reads goes before: the chassis' own key.
	c.vsctl(n.Node, "set", "Open_vSwitch", ".", "external_ids:system-id=ch1", "external_ids:ovn-bridge-mappings-ch1=physnet:ovsbr1")
	c.within(settled, "blue", n.Name, unresolved(uplinkstate.ReasonDefaultGatewayBridgeUnsupported))
}

// A state that has no host half yet says that it waits for it.
func TestWaitingForTheHost(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	p := c.pair("worker-b")
	c.uplink("blue", nodeConfig("ens1f0", nil))
	_, err := c.client.K8sV1alpha1().UplinkStates().Create(t.Context(), &v1alpha1.UplinkState{
		ObjectMeta: metav1.ObjectMeta{Name: uplinkstate.Name("blue", "worker-b")},
		Spec:       v1alpha1.UplinkStateSpec{UplinkName: "blue", NodeName: "worker-b"},
	}, metav1.CreateOptions{})
	c.must(err)
	c.cardAgent(p)
	c.within(settled, "blue", "worker-b", unresolved(uplinkstate.ReasonWaitingForDPUHost))
	c.hostAgent(p.Host)
	c.within(settled, "blue", "worker-b", resolved)
}

// Two representors that fit are named both, whatever the order they are found in (A20); the operator's map decides.
func TestAmbiguousRepresentorAndMap(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	p := c.pair("worker-b")
	ports, err := p.Card.Devlink()
	c.must(err)
	c.addWire(p.Card, "pf1hpf")
	ports["pci/0000:03:00.1/196609"] = lab.HostPFPort("pf1hpf", 1, p.Spec.MAC)
	c.must(p.Card.SetDevlink(ports))
	c.must(p.Host.SetSysfs(nil, nil)) // the host cannot tell its function: the MAC is all there is
	c.uplink("blue", nodeConfig("ens1f0", nil))
	c.hostAgent(p.Host)
	mapFile := c.mapFile("- {representor: other0, mac: \"02:00:5e:00:53:77\"}\n")
	c.cardAgent(p, "--representor-map", mapFile)
	c.within(settled, "blue", "worker-b", unresolved(uplinkstate.ReasonBridgeNotFound))
	c.writeMap(mapFile, "- representor: pf0hpf\n  mac: "+p.Spec.MAC+"\n")
	c.within(settled+3*settled, "blue", "worker-b", resolved)
}
