// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"net/netip"
	"strconv"
	"strings"
)

// Tunnel keys of ports in a Layer2 network, which zones share: of a transit
// router's port to the switch, of its port to the gateway router of the node
// with id 0, and of the first pod.
const (
	transitSwitchPortKey  = 1
	transitGatewayPortKey = 10
	podTunnelKey          = 100
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
	b.link(transit, toPods, offset(n.NodeSubnets(z), 1), pods, "stotr-"+n.Switch(z), columns{
		"gateway_chassis": b.here(toPods),
		"options":         map[string]string{"requested-tnl-key": strconv.Itoa(transitSwitchPortKey)},
	})
	b.managementPort(pods)
	b.localTraffic(transit, toPods)
	for _, other := range n.zones {
		b.transitPeer(transit, gr, other)
	}
	routers, gateways := n.transitLink(z)
	for i, hop := range addresses(gateways) {
		b.route(transit, n.NodeSubnets(z)[i], hop, b.rowIDs(), columns{"policy": []string{"src-ip"}})
		b.route(gr, n.Spec.Subnets[i].Masked(), addresses(routers)[i], b.rowIDs(), nil)
	}
}

// transitPeer is the transit router's port to a node's gateway router: peered
// with it on the node itself, of the other chassis elsewhere.
func (b *builder) transitPeer(transit, gr *datapath, node *Zone) {
	n := b.n
	gateway := "GR_" + n.Prefix + node.Name
	port := "trtor-" + gateway
	routers, gateways := n.transitLink(node)
	more := columns{"options": map[string]string{"requested-tnl-key": strconv.Itoa(transitGatewayPortKey + node.ID)}}
	if node == b.z {
		peer := "rtotr-" + gateway
		more["peer"] = []string{peer}
		networks := append(n.join(node.ID), gateways...)
		b.routerPort(gr, peer, networks, columns{"mac": addressMAC(gateways[0].Addr()), "peer": []string{port}})
	} else {
		more["options"].(map[string]string)["requested-chassis"] = node.Chassis
	}
	b.routerPort(transit, port, routers, more)
	for i, hop := range addresses(gateways) {
		b.route(transit, n.JoinAddresses(node)[i], hop, b.rowIDs(nodeKey, node.Name), nil)
	}
}

// layer2Old makes what OVN-Kubernetes made before it had transit routers: the
// node's gateway router is the pods' first one.
func (b *builder) layer2Old() {
	n, z := b.n, b.z
	gr := b.gateway(joinTexts(n.JoinAddresses(z)))
	pods := b.lswitch(n.Switch(z), transitConfig(n.Switch(z), n.Spec.ID))
	toPods := "rtos-" + n.Switch(z)
	networks := append(offset(n.NodeSubnets(z), 1), n.join(z.ID)...)
	b.link(gr, toPods, networks, pods, "stor-"+n.Switch(z), nil)
	b.managementPort(pods)
	b.localTraffic(gr, toPods)
}

// joinTexts is a list of addresses in an option's form.
func joinTexts(list []netip.Addr) string { return strings.Join(texts(list), " ") }
