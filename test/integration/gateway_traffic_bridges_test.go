// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/ovn-uplink/ovn-uplink/test/lab"
)

// Real packets through bridges that are not plain: an Uplink in a VLAN, a bond, and one that forwards by flows alone;
// of a Layer3 and of a Layer2 network.
func TestGatewayTrafficBridges(t *testing.T) {
	t.Parallel()
	for _, version := range lab.OVNVersions(t) {
		t.Run(version.Name, func(t *testing.T) {
			f := newBridgesField(t, version)
			f.serve(f.client, clientAddresses)
			networks := []*lab.NetworkSpec{
				{CUDN: "blue", Subnets: podSubnets},
				{CUDN: "flat", Subnets: podSubnets, Topology: lab.Layer2},
			}
			pods := f.islands(networks...)
			f.covered("blue", "flat")
			f.each(t, "packets", func(f *field, p *post) {
				f.through(p, pods[p])
				if p.node == bondNode {
					_, err := p.ovs.IP(t.Context(), "link", "set", p.wire, "down")
					f.must(err)
					p.wire = "up1"
					var captured error
					p.onWire, captured = p.ovs.Capture(p.wire)
					f.must(captured)
					f.through(p, pods[p])
				}
			})
			f.clean()
		})
	}
}

const (
	vlanNode, bondNode, secureNode = "worker-v", "worker-b", "worker-s"
	// bridgesVLAN is the VLAN of the Uplink that is in one.
	bridgesVLAN = "100"
)

// newBridgesField makes three nodes, each with another kind of bridge, that have no network in common but the wire.
func newBridgesField(t *testing.T, version lab.Version) *field {
	t.Helper()
	f := emptyField(t, version)
	for i, kind := range []struct {
		node, wire string
		change     func(*site)
	}{
		{vlanNode, "wire0", f.intoVLAN},
		{bondNode, "up0", f.intoBond},
		{secureNode, "up0", func(s *site) { f.vsctl(s.ovs, "set-fail-mode", s.bridge, "secure") }},
	} {
		number := 10 + i
		four, six := fmt.Sprintf("172.28.0.%d", number), fmt.Sprintf("fd00:28::%d", number)
		s := f.regularSite(kind.node, lab.RegularSpec{
			MAC: fmt.Sprintf("02:42:ac:1c:00:%d", number), Gateways: wireGateways,
			Addresses: prefixes(four+"/16", six+"/64"),
		})
		kind.change(s)
		f.add(s, kind.wire, addrs(four, six))
	}
	f.outside(f.posts[0].external)
	f.start()
	return f
}

// intoVLAN puts a switch between the bridge and the wire, to which all that the bridge sends is tagged.
func (f *field) intoVLAN(s *site) {
	f.must(f.Wire(f.t.Context(), s.ovs, "wire0", s.ovs, "switch0"))
	f.vsctl(s.ovs, "--", "del-port", s.bridge, "up0", "--", "add-port", s.bridge, "wire0",
		"--", "set", "Port", s.bridge, "tag="+bridgesVLAN,
		"--", "add-br", "switch", "--", "set", "Bridge", "switch", "datapath_type=netdev",
		"--", "add-port", "switch", "up0", "tag="+bridgesVLAN, "--", "add-port", "switch", "switch0", "trunks="+bridgesVLAN)
}

// intoBond makes the uplink the first of two members of a bond.
func (f *field) intoBond(s *site) {
	const far = "second"
	ctx := f.t.Context()
	f.must(f.Wire(ctx, s.ovs, "up1", s.external.Node, far))
	_, err := s.external.IP(ctx, "link", "set", far, "master", "ext0")
	f.must(err)
	f.vsctl(s.ovs, "--", "del-port", s.bridge, "up0", "--", "add-bond", s.bridge, "bond0", "up0", "up1",
		"bond_mode=active-backup", "other_config:bond-primary=up0")
}

// islands makes the networks on every post alone, with a pod of each.
func (f *field) islands(specs ...*lab.NetworkSpec) map[*post][]*lab.Pod {
	f.t.Helper()
	pods := map[*post][]*lab.Pod{}
	for i, spec := range specs {
		spec.ID = 1 + i
		for j, p := range f.posts {
			n, err := f.Network(f.t.Context(), *spec, p.zone)
			f.must(err)
			if j == 0 {
				f.cudn(fieldUplink, n)
			}
			pod := f.pod(n, p, "a-"+p.node)
			f.serve(pod.Node, pod.Addresses)
			pods[p] = append(pods[p], pod)
		}
	}
	return pods
}

// through checks egress, a node port and the host's own connections.
func (f *field) through(p *post, pods []*lab.Pod) {
	f.t.Helper()
	for i, pod := range pods {
		f.egress(p, pod)
		if pod.Network.Spec.Topology == lab.Layer2 && !f.version.TransitRouters {
			f.t.Log("no node port of the Layer2 network: this CNI's gateway router translates what pods answer; see docs/limits.md")
			continue
		}
		http, echo := int32(30080+i), int32(30090+i)
		f.service(twoPorts(pod.Network.Spec.Namespace, "web", http, echo), pod.Network, pod)
		for _, a := range p.addresses {
			f.answers(netip.AddrPortFrom(a, uint16(http)), pod.Name)
			f.fragments(f.client, netip.AddrPortFrom(a, uint16(echo)))
		}
	}
	for i, to := range clientAddresses {
		f.http(p.host, netip.AddrPortFrom(to, podHTTP), f.client.Name, p.addresses[i])
		f.pings(f.client, p.addresses[i])
	}
}
