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

	pods := b.lswitch(n.Switch(z), map[string]string{"subnet": n.NodeSubnets(z)[0].String()})
	toPods := "rtos-" + p + node
	b.link(cluster, toPods, offset(n.NodeSubnets(z), 1), pods, "stor-"+p+node, columns{"gateway_chassis": b.here(toPods)})
	b.managementPort(pods)

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

// transitSwitch is the part of a Layer3 network that zones share: the same
// tunnel keys everywhere, the other nodes as ports of type remote.
func (b *builder) transitSwitch(cluster *datapath) {
	n, p := b.n, b.n.Prefix
	name := p + "transit_switch"
	transit := b.lswitch(name, transitConfig(name, n.Spec.ID))
	for _, z := range n.zones {
		port, networks := p+"tstor-"+z.Name, n.transit(z)
		options := map[string]string{"requested-tnl-key": strconv.Itoa(z.ID)}
		if z == b.z {
			options["router-port"] = p + "rtots-" + z.Name
			b.routerPort(cluster, options["router-port"], networks, columns{"options": map[string]string{"mcast_flood": "true"}})
			b.switchPort(transit, port, "router", []string{"router"}, options, "node", z.Name)
			continue
		}
		options["requested-chassis"] = z.Chassis
		b.remotes[port] = z
		b.switchPort(transit, port, "remote",
			[]string{addressMAC(networks[0].Addr()) + " " + strings.Join(texts(networks), " ")}, options, "node", z.Name)
		ids := map[string]string{zoneNodeKey: z.Name, networkKey: n.Name}
		for i, hop := range addresses(networks) {
			b.route(cluster, n.NodeSubnets(z)[i], hop, ids, nil)
			b.route(cluster, hostPrefix(n.JoinAddresses(z)[i]), hop, ids, nil)
		}
	}
}
