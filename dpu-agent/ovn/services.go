// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

// maxAffinity is the longest affinity that OVN knows.
const maxAffinity = 65535 * time.Second

// renderServices makes the load balancers of all networks and the ways to them. One that is reachable by the transit
// address needs none. One with an address of its own does: a route to the first network that has the address, and for
// each other network a policy for its ports, so that networks may share an address.
func (r *renderer) renderServices() {
	routed := r.keptRoutes()
	for i := range r.networks {
		n := &r.networks[i]
		gateway := under{d: r.d, table: routerTable, name: r.n.gateway(n.Prefix), ids: n.ids}
		edge := r.edge.of(n.ids)
		shared := map[vip][]uint16{}
		for j := range n.LoadBalancers {
			lb := &n.LoadBalancers[j]
			address, ok := r.addressOf(n, lb)
			if !ok {
				continue
			}
			gateway.balancer(balancer(lb, address))
			if !lb.Address.IsValid() {
				continue
			}
			by, known := routed[address]
			if !known {
				by, routed[address] = n.Name, n.Name
				_, own := r.v.ranges.transit(n.block, address.Is6())
				edge.routeFromWire(host(address).String(), own.Addr().String(), r.n.edgeGateway(n.Prefix))
			}
			if by != n.Name {
				key := vip{address, lb.Protocol}
				shared[key] = append(shared[key], lb.Port)
			}
		}
		for _, key := range sortedVIPs(shared) {
			_, own := r.v.ranges.transit(n.block, key.address.Is6())
			edge.policy(priorityShared, key.match(r.n.edgePort(), shared[key]), "reroute", own.Addr().String())
		}
	}
}

// keptRoutes are the addresses that networks have whose rows stay as they are.
func (r *renderer) keptRoutes() map[netip.Addr]string {
	routed := map[netip.Addr]string{}
	own := r.v.own[r.g.Uplink]
	if own == nil || len(r.d.kept) == 0 {
		return routed
	}
	for _, o := range own.rows {
		route, isRoute := o.row.(*routeRow)
		if !isRoute || !r.d.kept[route.ExternalIDs[networkKey]] {
			continue
		}
		edge := own.routers[r.n.edge()]
		if p, ok := parsePrefix(route.Prefix); ok && p.IsSingleIP() && edge != nil && o.parent.uuid == edge.UUID {
			routed[p.Addr()] = route.ExternalIDs[networkKey]
		}
	}
	return routed
}

// addressOf is where a load balancer is reachable; false if the network's gateway does not have the family.
func (r *renderer) addressOf(n *network, lb *LoadBalancer) (netip.Addr, bool) {
	if !slices.Contains(r.families(n.Network), lb.is6()) {
		return netip.Addr{}, false
	}
	if lb.Address.IsValid() {
		return lb.Address, true
	}
	_, own := r.v.ranges.transit(n.block, lb.is6())
	return own.Addr(), true
}

func balancer(lb *LoadBalancer, address netip.Addr) *balancerRow {
	backends := make([]string, len(lb.Backends))
	for i, b := range lb.Backends {
		backends[i] = b.String()
	}
	slices.Sort(backends)
	row := &balancerRow{
		Name: lb.Name, Protocol: &lb.Protocol,
		VIPs:    map[string]string{netip.AddrPortFrom(address, lb.Port).String(): strings.Join(slices.Compact(backends), ",")},
		Options: map[string]string{"reject": "true"},
	}
	if lb.Affinity > 0 {
		seconds := int(max(time.Second, min(lb.Affinity, maxAffinity)) / time.Second)
		row.Options["affinity_timeout"] = strconv.Itoa(seconds)
	}
	// Where there is no backend OVN answers itself, and would translate the answer's source too.
	if lb.Local || len(lb.Backends) == 0 {
		row.Options["skip_snat"] = "true"
	}
	return row
}

// vip is an address and a protocol.
type vip struct {
	address  netip.Addr
	protocol string
}

func sortedVIPs(ports map[vip][]uint16) []vip {
	keys := make([]vip, 0, len(ports))
	for key := range ports {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b vip) int { return cmp.Or(a.address.Compare(b.address), cmp.Compare(a.protocol, b.protocol)) })
	return keys
}

// match is what comes in by a router port for some ports of an address.
func (k vip) match(inport string, ports []uint16) string {
	slices.Sort(ports)
	ports = slices.Compact(ports)
	numbers := make([]string, len(ports))
	for i, p := range ports {
		numbers[i] = strconv.Itoa(int(p))
	}
	return fmt.Sprintf("inport == %q && %s == %s && %s.dst == {%s}", inport, destination(k.address.Is6()), k.address, k.protocol, strings.Join(numbers, ", "))
}
