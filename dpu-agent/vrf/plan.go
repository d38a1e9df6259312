// SPDX-License-Identifier: Apache-2.0

package vrf

import (
	"cmp"
	"slices"
	"strings"

	"github.com/ovn-uplink/ovn-uplink/shared/kernel"
	"golang.org/x/sys/unix"
)

// kernelProtocol is that of routes that the kernel makes for addresses, and of those that network managers make in
// its stead for addresses that are noprefixroute.
const kernelProtocol = unix.RTPROT_KERNEL

// ownedProtocols are those of whoever watches over his routes himself: redirects and router advertisements, routing
// daemons (linux/rtnetlink.h; FRR's own are in /etc/iproute2/rt_protos.d), keepalived, OVN-Kubernetes' route manager
// and this product.
var ownedProtocols = []byte{
	unix.RTPROT_REDIRECT, unix.RTPROT_RA, unix.RTPROT_GATED, unix.RTPROT_MRT, unix.RTPROT_ZEBRA, unix.RTPROT_BIRD,
	unix.RTPROT_DNROUTED, unix.RTPROT_XORP, unix.RTPROT_NTK, unix.RTPROT_MROUTED, unix.RTPROT_KEEPALIVED, unix.RTPROT_BABEL,
	85, // OVN-Kubernetes
	99, // Open/R
	kernel.ProtocolOwn,
	unix.RTPROT_BGP, unix.RTPROT_ISIS, unix.RTPROT_OSPF, unix.RTPROT_RIP, unix.RTPROT_EIGRP,
	190, 191, 193, 194, 195, 196, 197, 198, // FRR: ldp, nhrp, … sharp, pbr, static, openfabric, srte
}

// taken is what goes with a link: its addresses, and its routes in the tables that they are in while the link belongs
// to no VRF.
type taken struct {
	addresses []address
	routes    []route
}

// take finds what goes with a link that is routed by a VRF's table, or by table main if that is 0.
func take(v *view, link int, table uint32) taken {
	var t taken
	for _, a := range v.addresses {
		if a.link == link && a.carried() {
			t.addresses = append(t.addresses, a)
		}
	}
	for _, r := range v.routes {
		if slices.Contains(r.links, link) && r.carried() {
			t.routes = append(t.routes, r.home(table))
		}
	}
	slices.SortStableFunc(t.routes, func(a, b route) int { return cmp.Compare(a.stage(), b.stage()) })
	return t
}

// carried tells whether nobody but this program would put the route back.
func (r route) carried() bool {
	switch {
	case r.object || r.cloned || r.expires || slices.Contains(ownedProtocols, r.protocol):
		return false
	case r.family == unix.AF_INET6 && (r.dst.Addr().IsLinkLocalUnicast() || r.dst.Addr().IsMulticast()):
		return false
	case r.local() && r.protocol == kernelProtocol:
		return false // the kernel's own, for the link's addresses
	}
	return true
}

// local tells whether the route is of a kind that the kernel keeps in table local, or in a VRF's only one.
func (r route) local() bool {
	switch r.kind {
	case unix.RTN_LOCAL, unix.RTN_BROADCAST, unix.RTN_ANYCAST, unix.RTN_MULTICAST:
		return true
	}
	return false
}

// home is the route where it is while the link belongs to no VRF. Tables that rules lead to are not the VRF's
// business: routes there stay where they are, and so does one that leaves through several links.
func (r route) home(table uint32) route {
	if table == 0 || r.table != table || !r.only(r.links[0]) {
		return r
	}
	if r.local() {
		return r.in(unix.RT_TABLE_LOCAL)
	}
	return r.in(unix.RT_TABLE_MAIN)
}

// away is a route of table main or local where it is while the link belongs to a VRF with a table. One that leaves
// through other links too, which are not in the VRF, stays.
func (r route) away(link int, table uint32) route {
	if (r.table == unix.RT_TABLE_MAIN || r.table == unix.RT_TABLE_LOCAL) && r.only(link) {
		return r.in(table)
	}
	return r
}

// stage is when the route can be made: the routers of a later one are reached through an earlier one.
func (r route) stage() int {
	switch {
	case r.dst.Bits() == 0:
		return 3 // default
	case r.direct():
		return 0 // connected
	case r.dst.IsSingleIP():
		return 1 // host
	}
	return 2 // static
}

// placed is what is to be there, in the tables that the link is routed by: a VRF's, or 0 for none.
func (t taken) placed(link int, table uint32) taken {
	if table == 0 {
		return t
	}
	p := taken{addresses: t.addresses}
	for _, r := range t.routes {
		p.routes = append(p.routes, r.away(link, table))
	}
	return p
}

// lacking is what of it the kernel does not have.
func (t taken) lacking(v *view) taken {
	var l taken
	for _, a := range t.addresses {
		if !slices.ContainsFunc(v.addresses, func(o address) bool { return o.addressKey == a.addressKey }) {
			l.addresses = append(l.addresses, a)
		}
	}
	for _, r := range t.routes {
		if !slices.ContainsFunc(v.routes, r.same) {
			l.routes = append(l.routes, r)
		}
	}
	return l
}

func (t taken) empty() bool { return len(t.addresses)+len(t.routes) == 0 }

// String names what there is.
func (t taken) String() string {
	var names []string
	for _, a := range t.addresses {
		names = append(names, "address "+a.String())
	}
	for _, r := range t.routes {
		names = append(names, "route "+r.String())
	}
	return strings.Join(names, ", ")
}

// with adds what the other has and it has not.
func (t taken) with(o taken) taken {
	return t.plus(o, route.same)
}

// withFree adds what the other has and it has not, but no routes whose place is not free: it was given to another
// route by whoever made that.
func (t taken) withFree(o taken) taken {
	return t.plus(o, func(a, b route) bool { return a.routeKey == b.routeKey })
}

func (t taken) plus(o taken, has func(a, b route) bool) taken {
	sum := taken{slices.Clone(t.addresses), slices.Clone(t.routes)}
	for _, a := range o.addresses {
		if !slices.ContainsFunc(t.addresses, func(b address) bool { return b.addressKey == a.addressKey }) {
			sum.addresses = append(sum.addresses, a)
		}
	}
	for _, r := range o.routes {
		if !slices.ContainsFunc(t.routes, func(b route) bool { return has(b, r) }) {
			sum.routes = append(sum.routes, r)
		}
	}
	slices.SortStableFunc(sum.routes, func(a, b route) int { return cmp.Compare(a.stage(), b.stage()) })
	return sum
}

// due are the routes that belong to a link with certain addresses: not those from an address that is gone, nor the
// kernel's for one.
func (t taken) due(addresses []address) []route {
	return slices.DeleteFunc(slices.Clone(t.routes), func(r route) bool {
		has := func(fits func(address) bool) bool { return slices.ContainsFunc(addresses, fits) }
		if r.source.IsValid() && !has(func(a address) bool { return a.local.Addr() == r.source }) {
			return true
		}
		return r.protocol == kernelProtocol && !has(func(a address) bool {
			return r.dst.Contains(a.local.Addr()) || r.dst.Contains(a.peer)
		})
	})
}

// manner is how a route can be made.
type manner int

const (
	// alone: its place is free, and shall be when the kernel looks.
	alone manner = iota
	// beside: its place is taken by routes of the same link, or it is one of several links that are in one network,
	// each of which has such a route.
	beside
	// notHere: its place is taken by a route through another link.
	notHere
)

// manner decides how a route that is not there is made.
func (r route) manner(v *view, link int) manner {
	m := alone
	for _, o := range v.routes {
		switch {
		case o.routeKey != r.routeKey || o.cloned:
		case r.direct() && o.direct() && r.dst.Bits() > 0 || o.only(link):
			m = beside
		default:
			return notHere
		}
	}
	return m
}

// equal tells whether both are the same, states and lifetimes of addresses aside.
func (t taken) equal(o taken) bool {
	return slices.EqualFunc(t.addresses, o.addresses, func(a, b address) bool { return a.addressKey == b.addressKey }) &&
		slices.EqualFunc(t.routes, o.routes, route.same)
}
