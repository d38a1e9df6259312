// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"fmt"
	"net/netip"
	"slices"
)

// fromWire is the table of an edge router's routes for what comes from the wire: to addresses of services and to
// advertised subnets. What comes from a network does not see it, so that no tenant can draw the traffic of another by
// giving a service an address that others want to reach; and what comes from the wire does not see the default routes.
const fromWire = "wire"

// renderEdge makes the router that is the Uplink in OVN, and the switch that joins it to the bridge. There is no VLAN
// tag: frames between OVN and the bridge have none, the bridge's flows know the VLANs of its ports.
func (r *renderer) renderEdge() {
	ids := r.n.tags("")
	r.edge = r.d.router(&routerRow{Name: r.n.edge(), ExternalIDs: ids, Options: r.routerOptions()})
	r.edge.port(&routerPortRow{
		Name: r.n.edgePort(), MAC: r.g.MAC.String(), Networks: texts(r.g.Addresses), Options: map[string]string{"route_table": fromWire},
	})
	external := r.d.logicalSwitch(&switchRow{Name: r.n.external(), ExternalIDs: ids})
	external.routerSwitchPort(r.n.externalPort(), r.n.edgePort())
	external.switchPort(r.n.localnet(), "localnet", "unknown", map[string]string{"network_name": PhysicalNetwork(r.g.Uplink)})

	for _, gateway := range r.g.DefaultGateways {
		everything := netip.PrefixFrom(netip.IPv4Unspecified(), 0)
		if gateway.Is6() {
			everything = netip.PrefixFrom(netip.IPv6Unspecified(), 0)
		}
		r.edge.route(everything.String(), gateway.WithZone("").String(), r.n.edgePort())
	}
	for _, route := range r.g.Routes {
		r.edge.route(route.Prefix.Masked().String(), route.NextHop.WithZone("").String(), r.n.edgePort())
	}
}

// routerOptions are those of edge routers and network gateways.
func (r *renderer) routerOptions() map[string]string {
	return map[string]string{
		"chassis": r.g.Chassis,
		// Only who is asked for is learned, and forgotten after some minutes: on the wire there is anybody.
		"always_learn_from_arp_request": "false",
		"mac_binding_age_threshold":     "300",
	}
}

// renderNetwork makes a network's gateway and its two links, to the edge router and to the CNI's router.
func (r *renderer) renderNetwork(n *network) {
	p := n.Prefix
	options := r.routerOptions()
	options["lb_force_snat_ip"] = r.serviceAddresses(n)
	gateway := r.d.router(&routerRow{Name: r.n.gateway(p), ExternalIDs: n.ids, Options: options})

	edgePort := &routerPortRow{Name: r.n.edgeGateway(p), MAC: portMAC(r.n.edgeGateway(p)), Peer: pointer(r.n.gatewayEdge(p))}
	outer := &routerPortRow{Name: r.n.gatewayEdge(p), MAC: portMAC(r.n.gatewayEdge(p)), Peer: pointer(r.n.edgeGateway(p))}
	inner := &routerPortRow{Name: r.n.gatewayLink(p), MAC: r.linkMAC(n, r.v.node)}
	for _, is6 := range r.families(n.Network) {
		edge, own := r.v.ranges.transit(n.block, is6)
		edgePort.Networks, outer.Networks = append(edgePort.Networks, edge.String()), append(outer.Networks, own.String())
		inner.Networks = append(inner.Networks, nth(ofFamily(r.v.ranges.Link, is6), 2).String())
	}
	edge := r.edge.of(n.ids)
	edge.port(edgePort)
	gateway.port(outer)
	gateway.port(inner)

	link := r.d.logicalSwitch(&switchRow{Name: r.n.link(p), ExternalIDs: n.ids})
	link.routerSwitchPort(r.n.linkCNI(p), r.n.routerLink(p))
	link.routerSwitchPort(r.n.linkGateway(p), r.n.gatewayLink(p))

	for _, is6 := range r.families(n.Network) {
		r.renderPaths(n, gateway, is6)
	}
	r.renderAttachment(n)
}

// renderPaths makes a gateway's routes and translations of one family.
func (r *renderer) renderPaths(n *network, gateway under, is6 bool) {
	p := n.Prefix
	edge, own := r.v.ranges.transit(n.block, is6)
	everything := "0.0.0.0/0"
	if is6 {
		everything = "::/0"
	}
	gateway.route(everything, edge.Addr().String(), r.n.gatewayEdge(p))
	inside := normalised(slices.Concat(family(n.Subnets, is6), family(n.translated, is6)))
	for _, subnet := range inside {
		gateway.route(subnet.String(), nth(ofFamily(r.v.ranges.Link, is6), 1).Addr().String(), r.n.gatewayLink(p))
	}
	for _, pods := range slices.Concat(family(n.local, is6), family(n.translated, is6)) {
		if !within(n.Advertised, pods) {
			gateway.snat(own.Addr().String(), pods.String())
		}
	}
	for _, subnet := range normalised(family(n.Advertised, is6)) {
		r.edge.of(n.ids).routeFromWire(subnet.String(), own.Addr().String(), r.n.edgeGateway(p))
	}
	// What comes from the edge for nobody here must not go back there by the default route, and so on and on. In two
	// policies: "!=" of several prefixes would become a flow for every combination of their bits.
	from := fmt.Sprintf("inport == %q", r.n.gatewayEdge(p))
	gateway.policy(priorityInside, fmt.Sprintf("%s && %s == %s", from, destination(is6), set(inside)), "allow")
	gateway.policy(priorityStray, fmt.Sprintf("%s && %s", from, protocol(is6)), "drop")
}

// serviceAddresses are what clients of services look like to pods, so that answers come back to this node.
func (r *renderer) serviceAddresses(n *network) string {
	var addresses string
	for _, is6 := range r.families(n.Network) {
		if addresses != "" {
			addresses += " "
		}
		addresses += r.serviceAddress(n.number, is6).String()
	}
	return addresses
}

func (r *renderer) serviceAddress(node uint64, is6 bool) netip.Addr {
	return nth(ofFamily(r.v.ranges.ServiceSNAT, is6), node).Addr()
}

// linkMAC is the MAC of a gateway's port to the link. It is made from what all nodes know, because other nodes have
// to name it.
func (r *renderer) linkMAC(n *network, node string) string {
	return portMAC(names{uplink: r.g.Uplink, node: node}.gatewayLink(n.Prefix))
}

func pointer[T any](v T) *T { return &v }
