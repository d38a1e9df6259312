// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"net/netip"
	"strconv"
	"strings"
)

// Tunnel keys of ports in a Layer2 network, which zones share: of the ports
// between router and switch, and, with what is to be added, of the transit
// router's ports to the gateway routers of nodes, of the switch's ports of
// nodes, and of those of pods. All ports of the switch have one: ovn-northd
// moves a port that has none away from a key that another requests, which
// ovn-controller 23.03 does not follow.
const (
	linkPortKey           = 1
	transitGatewayPortKey = 10 // and the node's id
	managementPortKey     = 10 // and the node's id
	podPortKey            = 1000
)

// layer2 makes a switch that all nodes share and, in front of it, a transit
// router that is peered with the gateway router of each node.
func (b *builder) layer2() {
	n, z := b.n, b.z
	transit := b.router(n.Router(z), map[string]string{
		"always_learn_from_arp_request": "false",
		"requested-tnl-key":             strconv.Itoa(routerTunnelKey + n.Spec.ID),
	}, b.ids("k8s-cluster-router", "yes"))
	gr := b.gateway(joinTexts(n.JoinAddresses(z)))
	pods := b.lswitch(n.Switch(z), transitConfig(n.Switch(z), n.Spec.ID))
	toPods := "trtos-" + n.Switch(z)
	b.routerPort(transit, toPods, offset(n.NodeSubnets(z), 1), columns{
		"gateway_chassis": b.here(toPods),
		"options":         map[string]string{"requested-tnl-key": strconv.Itoa(linkPortKey)},
	})
	b.layer2Ports(pods, "stotr-"+n.Switch(z), toPods)
	b.localTraffic(transit, toPods)
	b.transitLocal(transit, gr)
	for _, other := range n.zones {
		if other != z {
			b.transitPort(transit, other, nil, map[string]string{"requested-chassis": other.Chassis})
		}
	}
	routers, gateways := n.transitLink(z)
	for i, hop := range addresses(gateways) {
		b.route(transit, n.NodeSubnets(z)[i], hop, b.rowIDs(), columns{"policy": []string{"src-ip"}})
		b.route(gr, n.Spec.Subnets[i].Masked(), addresses(routers)[i], b.rowIDs(), nil)
	}
}

// transitLocal peers the transit router with the node's own gateway router.
func (b *builder) transitLocal(transit, gr *datapath) {
	peer := "rtotr-" + b.gatewayName()
	_, gateways := b.n.transitLink(b.z)
	networks := append(b.n.join(b.z.ID), gateways...)
	b.routerPort(gr, peer, networks, columns{
		"mac": addressMAC(gateways[0].Addr()), "peer": []string{b.transitPortName(b.z)},
	})
	b.transitPort(transit, b.z, []string{peer}, map[string]string{})
}

// transitPort is the transit router's port to the gateway router of a node,
// and the route to that one's join address.
func (b *builder) transitPort(transit *datapath, node *Zone, peer []string, options map[string]string) {
	routers, gateways := b.n.transitLink(node)
	options["requested-tnl-key"] = strconv.Itoa(transitGatewayPortKey + node.ID)
	b.routerPort(transit, b.transitPortName(node), routers, columns{
		"peer": peer, "options": options, "external_ids": b.ids(nodeKey, node.Name),
	})
	for i, hop := range addresses(gateways) {
		b.route(transit, b.n.JoinAddresses(node)[i], hop, b.rowIDs(nodeKey, node.Name), nil)
	}
}

func (b *builder) transitPortName(node *Zone) string {
	return "trtor-GR_" + b.n.Prefix + node.Name
}

// layer2Ports are the switch's ports to the router and of the node.
func (b *builder) layer2Ports(s *datapath, port, peer string) {
	b.switchPort(s, port, "router", []string{"router"},
		map[string]string{"router-port": peer, "requested-tnl-key": strconv.Itoa(linkPortKey)})
	b.managementPort(s, map[string]string{"requested-tnl-key": strconv.Itoa(managementPortKey + b.z.ID)})
}

// layer2Old makes what OVN-Kubernetes made before it had transit routers: the
// node's gateway router is the pods' first one.
func (b *builder) layer2Old() {
	n, z := b.n, b.z
	gr := b.gateway(joinTexts(n.JoinAddresses(z)))
	pods := b.lswitch(n.Switch(z), transitConfig(n.Switch(z), n.Spec.ID))
	toPods := "rtos-" + n.Switch(z)
	networks := append(offset(n.NodeSubnets(z), 1), n.join(z.ID)...)
	b.routerPort(gr, toPods, networks, nil)
	b.layer2Ports(pods, "stor-"+n.Switch(z), toPods)
	b.localTraffic(gr, toPods)
}

// joinTexts is a list of addresses in an option's form.
func joinTexts(list []netip.Addr) string { return strings.Join(texts(list), " ") }
