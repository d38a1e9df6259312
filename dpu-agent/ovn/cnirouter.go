// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Priorities of policies. Those on the CNI's routers are below all of the CNI's that matter here: EgressIP has 95 to
// 103, host addresses 99, node addresses 1003 to 1005.
const (
	priorityReroute = 90
	priorityAllow   = 91

	// On routers of this package.
	priorityStray  = 10
	priorityInside = 11
	priorityShared = 100
)

// renderAttachment makes what a network's router of the CNI gets: a port to the link, a policy that sends what local
// pods send out there, one above it that leaves alone what the CNI has better ways for, and routes for answers to
// this package's own service addresses.
func (r *renderer) renderAttachment(n *network) {
	router := r.d.foreign(n.router.UUID, n.ids)
	r.d.guard(n.Name, routerTable, n.router.UUID, "name", n.router.Name)
	r.guardNetworks(n, n.nodePort)
	r.guardNetworks(n, n.joinPort)

	port := &routerPortRow{Name: r.n.routerLink(n.Prefix), MAC: portMAC(r.n.routerLink(n.Prefix))}
	if n.kind == transitKind {
		port.Options = map[string]string{tunnelKey: strconv.FormatUint(linkKeyBase+n.number, 10)}
	}
	for _, is6 := range r.families(n.Network) {
		link := ofFamily(r.v.ranges.Link, is6)
		port.Networks = append(port.Networks, nth(link, 1).String())
		gateway := nth(link, 2).Addr().String()
		if local := family(n.local, is6); len(local) > 0 {
			from := fmt.Sprintf("inport == %q && %s == %s", n.nodePort.Name, source(is6), set(local))
			router.policy(priorityReroute, from, "reroute", gateway)
			router.policy(priorityAllow, fmt.Sprintf("%s && %s == %s", from, destination(is6), set(r.stays(n, is6))), "allow")
		}
		router.route(host(r.serviceAddress(n.number, is6)).String(), gateway, port.Name)
	}
	router.port(port)
	r.renderRemotes(n, router)
}

// guardNetworks: the policies follow from the addresses of the CNI's ports.
func (r *renderer) guardNetworks(n *network, port *routerPortRow) {
	r.d.guard(n.Name, routerPortTable, port.UUID, "networks", cell(port.Networks))
}

// stays is where local pods send what is not for the Uplink. Answers to the CNI's own node ports go to the join
// subnet.
func (r *renderer) stays(n *network, is6 bool) []netip.Prefix {
	return normalised(family(slices.Concat(
		n.Subnets, n.join, r.v.ranges.ServiceSNAT, r.v.ranges.ServiceCIDRs, r.v.ranges.Bypass), is6))
}

// renderRemotes makes the ways to other nodes' service addresses, by which their answers come back to them.
func (r *renderer) renderRemotes(n *network, router under) {
	for _, is6 := range r.families(n.Network) {
		if n.kind != clusterKind {
			continue
		}
		for _, other := range r.remotes(n, is6) {
			router.add(routeTable, "static_routes", &routeRow{
				Prefix: host(r.serviceAddress(other.number, is6)).String(), NextHop: other.nextHop.String(), ExternalIDs: n.ids,
			})
		}
	}
	if n.kind == transitKind {
		r.renderRemotePorts(n, router)
	}
}

// renderRemotePorts: the transit router is one router in all zones. A port of it that is another node's, known by its
// tunnel key, leads to the link of the network's gateway there, whose MAC nobody could ask for.
func (r *renderer) renderRemotePorts(n *network, router under) {
	for _, other := range r.remotes(n, false) {
		there := names{uplink: r.g.Uplink, node: other.node}
		port := &routerPortRow{
			Name: there.routerLink(n.Prefix), MAC: portMAC(there.routerLink(n.Prefix)),
			Options: map[string]string{
				tunnelKey: strconv.FormatUint(linkKeyBase+other.number, 10), chassisOption: other.chassis,
			},
		}
		for _, is6 := range r.families(n.Network) {
			service := ofFamily(r.v.ranges.ServiceSNAT, is6)
			port.Networks = append(port.Networks, host(nth(service, size(service)/2+other.number).Addr()).String())
			gateway := nth(ofFamily(r.v.ranges.Link, is6), 2).Addr().String()
			router.route(host(r.serviceAddress(other.number, is6)).String(), gateway, port.Name)
			router.staticMAC(port.Name, gateway, r.linkMAC(n, other.node))
		}
		router.port(port)
	}
}

// remotes are the other nodes that have a service address.
func (r *renderer) remotes(n *network, is6 bool) []remote {
	others := r.v.remotes(n.attachment, n.Network, is6)
	return slices.DeleteFunc(others, func(o remote) bool {
		return o.number >= size(ofFamily(r.v.ranges.ServiceSNAT, false))/2 || o.number >= size(ofFamily(r.v.ranges.ServiceSNAT, true))/2
	})
}

func protocol(is6 bool) string {
	if is6 {
		return "ip6"
	}
	return "ip4"
}

func source(is6 bool) string {
	if is6 {
		return "ip6.src"
	}
	return "ip4.src"
}

func destination(is6 bool) string {
	if is6 {
		return "ip6.dst"
	}
	return "ip4.dst"
}

// set is a set of prefixes in OVN's language of matches.
func set(prefixes []netip.Prefix) string {
	if len(prefixes) == 1 {
		return prefixes[0].String()
	}
	return "{" + strings.Join(texts(prefixes), ", ") + "}"
}
