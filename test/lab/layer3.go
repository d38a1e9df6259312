// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"strconv"
	"strings"
)

// layer3 makes a routed network: a switch per node and a cluster router, a join
// switch to the node's gateway router, and a transit switch to other zones.
func (b *builder) layer3() {
	n, z := b.n, b.z
	p, node := n.Prefix, z.Name
	cluster := b.router(n.Router(z), map[string]string{"always_learn_from_arp_request": "false"}, b.ids("k8s-cluster-router", "yes"))
	gr := b.gateway("router_ip")

	config := map[string]string{}
	for _, s := range n.NodeSubnets(z) {
		if s.Addr().Is4() {
			config["subnet"] = s.String()
		} else {
			config["ipv6_prefix"] = s.Addr().String()
		}
	}
	pods := b.lswitch(n.Switch(z), config)
	toPods := "rtos-" + p + node
	b.link(cluster, toPods, offset(n.NodeSubnets(z), 1), pods, "stor-"+p+node, columns{"gateway_chassis": b.here(toPods)})
	b.managementPort(pods, nil)

	join := b.lswitch(p+"join", nil)
	b.link(cluster, "rtoj-"+n.Router(z), n.join(1), join, "jtor-"+n.Router(z), nil)
	b.link(gr, "rtoj-"+b.gatewayName(), n.join(z.ID), join, "jtor-"+b.gatewayName(), nil)

	b.localTraffic(cluster, toPods)
	for i, address := range n.JoinAddresses(z) {
		b.route(cluster, address, address, b.rowIDs(), nil)
		b.route(cluster, n.NodeSubnets(z)[i], address, b.rowIDs(), columns{"policy": []string{"src-ip"}})
		b.route(gr, n.Spec.Subnets[i].Masked(), addresses(n.join(1))[i], b.rowIDs(), nil)
	}
	b.transitSwitch(cluster)
}

// transitSwitch is the part of a Layer3 network that zones share, with the
// same tunnel keys everywhere.
func (b *builder) transitSwitch(cluster *datapath) {
	n, z, p := b.n, b.z, b.n.Prefix
	name := p + "transit_switch"
	transit := b.lswitch(name, transitConfig(name, n.Spec.ID))
	port := p + "rtots-" + z.Name
	b.routerPort(cluster, port, n.transit(z), columns{"options": map[string]string{"mcast_flood": "true"}})
	b.switchPort(transit, p+"tstor-"+z.Name, "router", []string{"router"},
		map[string]string{"router-port": port, "requested-tnl-key": strconv.Itoa(z.ID)}, "node", z.Name)
	for _, other := range n.zones {
		if other != z {
			b.transitRemote(cluster, transit, other)
		}
	}
}

// transitRemote is another node: a port of type remote, and the routes to what
// is there.
func (b *builder) transitRemote(cluster, transit *datapath, node *Zone) {
	n := b.n
	port, networks := n.Prefix+"tstor-"+node.Name, n.transit(node)
	b.switchPort(transit, port, "remote",
		[]string{addressMAC(networks[0].Addr()) + " " + strings.Join(texts(networks), " ")},
		map[string]string{"requested-chassis": node.Chassis, "requested-tnl-key": strconv.Itoa(node.ID)}, "node", node.Name)
	b.remotes[port] = node
	ids := map[string]string{zoneNodeKey: node.Name, networkKey: n.Name}
	for i, hop := range addresses(networks) {
		b.route(cluster, n.NodeSubnets(node)[i], hop, ids, nil)
		b.route(cluster, hostPrefix(n.JoinAddresses(node)[i]), hop, ids, nil)
	}
}
