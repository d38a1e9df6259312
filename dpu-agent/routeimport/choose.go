// SPDX-License-Identifier: Apache-2.0

package routeimport

import (
	"cmp"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"
)

// content is what there is in one routing table at one time.
type content struct {
	// routes are those of BGP, in the order in which the kernel lists them.
	routes []route
	hops   []hop
	// own are the prefixes and addresses of the links that are routed by the table.
	own map[netip.Prefix]bool
	// torn is set when it is known not to be of one piece.
	torn bool
}

// standIn is what routing daemons give a kernel, or a version of themselves, that cannot have IPv6 next hops in IPv4
// routes: an address that nobody has, with a neighbour entry (ipv4_ll in zebra/rt_netlink.c of FRR).
var standIn = netip.AddrFrom4([4]byte{169, 254, 0, 1})

// choose picks what of a table is imported for a domain whose interface has an index, sorted by prefix: of each prefix
// the next hops that the kernel would use, that leave through the interface, and that can be used elsewhere too.
func (c *content) choose(d *Domain, link int) (seen []entry, ignored Ignored) {
	order := make([]int32, len(c.routes))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(a, b int32) int {
		x, y := &c.routes[a], &c.routes[b]
		return cmp.Or(comparePrefixes(x.dst, y.dst), cmp.Compare(x.metric, y.metric))
	})
	// All next hops are parts of one array, which never grows.
	all := make([]netip.Addr, 0, len(c.hops))
	for len(order) > 0 {
		dst, n := c.routes[order[0]].dst, 1
		for n < len(order) && c.routes[order[n]].dst == dst {
			n++
		}
		used := c.used(order[:n])
		order = order[n:]
		first, through := len(all), false
		var missed Ignored
		for _, i := range used {
			for _, h := range c.hops[c.routes[i].first:c.routes[i].end] {
				if h.dead || h.link != link {
					continue
				}
				through = true
				switch {
				case !h.gateway.IsValid():
					missed.NoGateway = 1
				case dst.Addr().Is4() && (h.gateway.Is6() && !d.IPv4ViaIPv6 || h.gateway == standIn):
					missed.ViaIPv6 = 1
				default:
					all = append(all, h.gateway)
				}
			}
		}
		switch {
		case !through:
		case c.own[dst] || d.skips(dst):
			ignored.Skipped++
			all = all[:first]
		default:
			ignored.NoGateway += missed.NoGateway
			ignored.ViaIPv6 += missed.ViaIPv6
			if hops := all[first:]; len(hops) > 0 {
				slices.SortFunc(hops, netip.Addr.Compare)
				hops = slices.Compact(hops)
				all = all[:first+len(hops)]
				seen = append(seen, entry{prefix: dst, hops: slices.Clip(hops)})
			}
		}
	}
	return seen, ignored
}

// used are those routes of one prefix, sorted by metric, that packets take: the ones of the lowest metric that have a
// way out at all. Of IPv4 routes with the same metric only the first is used (fib_table_lookup), IPv6 ones share. It
// reorders what it is given.
func (c *content) used(order []int32) []int32 {
	for from := 0; from < len(order); from++ {
		r := &c.routes[order[from]]
		if r.special || r.kind == unix.RTN_UNICAST && !c.alive(r) {
			continue
		}
		to := from + 1
		for r.dst.Addr().Is6() && to < len(order) && c.routes[order[to]].metric == r.metric {
			to++
		}
		return slices.DeleteFunc(order[from:to], func(i int32) bool {
			return c.routes[i].special || c.routes[i].kind != unix.RTN_UNICAST
		})
	}
	return nil
}

// alive tells whether a route has a next hop that works.
func (c *content) alive(r *route) bool {
	return slices.ContainsFunc(c.hops[r.first:r.end], func(h hop) bool { return !h.dead })
}

// comparePrefixes sorts IPv4 before IPv6, then by address and length.
func comparePrefixes(a, b netip.Prefix) int {
	return cmp.Or(a.Addr().Compare(b.Addr()), cmp.Compare(a.Bits(), b.Bits()))
}
