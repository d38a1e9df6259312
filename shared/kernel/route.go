// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"cmp"
	"net"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// MainTable is the routing table of links that belong to no VRF.
const MainTable uint32 = unix.RT_TABLE_MAIN

// ProtocolOwn is the route protocol (rtm_protocol) of the routes that this product installs. 117 is given to
// nobody in linux/rtnetlink.h, nor in the rt_protos of iproute2 and FRR.
const ProtocolOwn = 117

// Route is one default route.
type Route struct {
	Table uint32
	// Dst is 0.0.0.0/0 or ::/0, which also tells the family.
	Dst netip.Prefix
	// Type is RTN_UNICAST for a route that forwards, else RTN_BLACKHOLE, RTN_UNREACHABLE and the like.
	Type int
	// Protocol is who installed it: RTPROT_STATIC, RTPROT_DHCP, RTPROT_BGP and the like.
	Protocol int
	// Metric is the priority; the lowest is used.
	Metric uint32
	// NextHops holds one entry for a plain route, several for a multipath one.
	NextHops []NextHop
	// NextHopObject is the id of the next-hop object (ip-nexthop(8)) of the route, or 0. The kernel spells
	// its next hops out in the route unless net.ipv4.nexthop_compat_mode is 0.
	NextHopObject uint32
}

// NextHop is one way out of a Route.
type NextHop struct {
	// Gateway is the router's address without zone; not valid for an on-link route. It is IPv6 in an IPv4
	// route that was given RTA_VIA.
	Gateway   netip.Addr
	LinkIndex int
	// Weight is at least 1 (rtnh_hops + 1).
	Weight int
	// Dead is RTNH_F_DEAD: the link is down. LinkDown is RTNH_F_LINKDOWN: it has no carrier.
	Dead, LinkDown bool
}

// defaultRoute converts a default route; ok is false for any other. Releases of the netlink library before
// March 2023 gave a default route no Dst, later ones give it a prefix of length 0.
func defaultRoute(r netlink.Route) (route Route, ok bool) {
	if r.MPLSDst != nil {
		return Route{}, false
	}
	if r.Dst != nil {
		if ones, bits := r.Dst.Mask.Size(); ones != 0 || bits == 0 {
			return Route{}, false
		}
	}
	route = Route{
		Table:         uint32(r.Table),
		Type:          r.Type,
		Protocol:      int(r.Protocol),
		Metric:        uint32(r.Priority),
		NextHopObject: r.NHID,
	}
	switch r.Family {
	case unix.AF_INET:
		route.Dst = netip.PrefixFrom(netip.IPv4Unspecified(), 0)
	case unix.AF_INET6:
		route.Dst = netip.PrefixFrom(netip.IPv6Unspecified(), 0)
	default:
		return Route{}, false
	}
	for _, hop := range r.MultiPath {
		route.NextHops = append(route.NextHops, nextHop(hop.Gw, hop.Via, hop.LinkIndex, hop.Hops, hop.Flags))
	}
	if len(r.MultiPath) == 0 {
		// A plain route is its own next hop, flags included.
		route.NextHops = []NextHop{nextHop(r.Gw, r.Via, r.LinkIndex, 0, r.Flags)}
	}
	slices.SortFunc(route.NextHops, compareNextHops)
	return route, true
}

func nextHop(gateway net.IP, via netlink.Destination, link, hops, flags int) NextHop {
	if v, ok := via.(*netlink.Via); ok && v != nil {
		gateway = v.Addr
	}
	addr, _ := netip.AddrFromSlice(gateway)
	return NextHop{
		Gateway:   addr.Unmap(),
		LinkIndex: link,
		Weight:    hops + 1,
		Dead:      flags&unix.RTNH_F_DEAD != 0,
		LinkDown:  flags&unix.RTNH_F_LINKDOWN != 0,
	}
}

// Forwards tells whether the route leads somewhere, rather than dropping packets as blackhole, unreachable and
// prohibit routes do.
func (r Route) Forwards() bool { return r.Type == unix.RTN_UNICAST }

// Equal compares two routes by value.
func (r Route) Equal(o Route) bool { return compareRoutes(r, o) == 0 }

func compareRoutes(a, b Route) int {
	return cmp.Or(cmp.Compare(a.Table, b.Table), a.Dst.Addr().Compare(b.Dst.Addr()), cmp.Compare(a.Metric, b.Metric),
		cmp.Compare(a.Type, b.Type), cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.NextHopObject, b.NextHopObject),
		slices.CompareFunc(a.NextHops, b.NextHops, compareNextHops))
}

func compareNextHops(a, b NextHop) int {
	return cmp.Or(a.Gateway.Compare(b.Gateway), cmp.Compare(a.LinkIndex, b.LinkIndex), cmp.Compare(a.Weight, b.Weight),
		compareBool(a.Dead, b.Dead), compareBool(a.LinkDown, b.LinkDown))
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}
