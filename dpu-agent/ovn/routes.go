// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"cmp"
	"net/netip"
	"slices"
)

// Serves tells whether a network has rows of an Uplink on this node.
func (v *View) Serves(uplink, network string) bool {
	_, served := v.blockOf[user{uplink: uplink, network: network}]
	return served
}

// Routes are those of an Uplink's edge router that are for all networks, default routes among them, sorted.
func (v *View) Routes(uplink string) []Route {
	var routes []Route
	v.edgeRoutes(uplink, "", "", func(prefix netip.Prefix, nextHop netip.Addr) {
		routes = append(routes, Route{Prefix: prefix, NextHop: nextHop})
	})
	slices.SortFunc(routes, func(a, b Route) int {
		return cmp.Or(a.Prefix.Addr().Compare(b.Prefix.Addr()), cmp.Compare(a.Prefix.Bits(), b.Prefix.Bits()), a.NextHop.Compare(b.NextHop))
	})
	return routes
}

// advertised are the subnets of a network that have a route from the wire.
func (v *View) advertised(uplink string, n *Network) []netip.Prefix {
	var subnets []netip.Prefix
	v.edgeRoutes(uplink, n.Name, fromWire, func(prefix netip.Prefix, _ netip.Addr) {
		if within(n.Subnets, prefix) { // not that of a service
			subnets = append(subnets, prefix)
		}
	})
	slices.SortFunc(subnets, netip.Prefix.Compare)
	return subnets
}

// edgeRoutes goes through the routes of an edge router for a network, or all of them, in a route table.
func (v *View) edgeRoutes(uplink, network, table string, each func(netip.Prefix, netip.Addr)) {
	own := v.own[uplink]
	if own == nil {
		return
	}
	edge := own.routers[names{uplink: uplink, node: v.node}.edge()]
	if edge == nil {
		return
	}
	for _, uuid := range edge.StaticRoutes {
		route := v.routes[uuid]
		if route == nil || !mine(v, route) || route.ExternalIDs[networkKey] != network || route.RouteTable != table {
			continue
		}
		prefix, err := netip.ParsePrefix(route.Prefix)
		nextHop, wrong := netip.ParseAddr(route.NextHop)
		if err == nil && wrong == nil {
			each(prefix, nextHop)
		}
	}
}
