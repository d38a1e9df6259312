// SPDX-License-Identifier: Apache-2.0

package hostlink

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/ovn-uplink/ovn-uplink/shared/kernel"
	"golang.org/x/sys/unix"
)

// Links of the tests: the interface in question, and another.
const (
	ens3  = 3
	other = 4
)

// via makes a default route by static configuration through ens3, of the family of the first gateway.
func via(metric uint32, gateways ...string) kernel.Route {
	r := kernel.Route{
		Table: kernel.MainTable, Type: unix.RTN_UNICAST, Protocol: unix.RTPROT_STATIC, Metric: metric,
		Dst: netip.MustParsePrefix("0.0.0.0/0"),
	}
	if netip.MustParseAddr(gateways[0]).Is6() {
		r.Dst = netip.MustParsePrefix("::/0")
	}
	for _, g := range gateways {
		r.NextHops = append(r.NextHops, kernel.NextHop{Gateway: netip.MustParseAddr(g), LinkIndex: ens3, Weight: 1})
	}
	return r
}

// with changes a route.
func with(r kernel.Route, change func(*kernel.Route)) kernel.Route {
	change(&r)
	return r
}

// hop is a default route with its only next hop changed.
func hop(change func(*kernel.NextHop)) kernel.Route {
	return with(via(0, "192.0.2.1"), func(r *kernel.Route) { change(&r.NextHops[0]) })
}

func protocol(p int, r kernel.Route) kernel.Route {
	return with(r, func(r *kernel.Route) { r.Protocol = p })
}

func drops(kind int) kernel.Route {
	return kernel.Route{
		Table: kernel.MainTable, Type: kind, Protocol: unix.RTPROT_STATIC, Metric: 1,
		Dst: netip.MustParsePrefix("0.0.0.0/0"), NextHops: []kernel.NextHop{{Weight: 1}},
	}
}

func TestGateways(t *testing.T) {
	tests := map[string]struct {
		routes []kernel.Route
		want   []string
		why    []string // of each verdict, in order of preference; nil is not compared
	}{
		"none is fine":  {},
		"a plain route": {routes: []kernel.Route{via(100, "192.0.2.1")}, want: []string{"192.0.2.1"}},
		"C1: multipath": {routes: []kernel.Route{via(0, "192.0.2.2", "192.0.2.1")}, want: []string{"192.0.2.1", "192.0.2.2"}},
		"C2: IPv6 multipath of one next hop": {
			routes: []kernel.Route{protocol(unix.RTPROT_RA, via(1024, "fe80::1"))}, want: []string{"fe80::1"},
		},
		"C2: one next hop on another link": {
			routes: []kernel.Route{with(via(0, "192.0.2.1", "198.51.100.1"), func(r *kernel.Route) { r.NextHops[1].LinkIndex = other })},
			want:   []string{"192.0.2.1"},
			why:    []string{"", "it is on another interface"},
		},
		"another link's lower metric does not count": {
			routes: []kernel.Route{with(via(50, "198.51.100.1"), func(r *kernel.Route) { r.NextHops[0].LinkIndex = other }), via(100, "192.0.2.1")},
			want:   []string{"192.0.2.1"},
		},
		"C5: the lowest metric per family": {
			routes: []kernel.Route{via(200, "192.0.2.2"), via(100, "192.0.2.1"), protocol(unix.RTPROT_RA, via(1024, "fe80::1"))},
			want:   []string{"192.0.2.1", "fe80::1"},
			why:    []string{"", "its metric is higher than the 100 of 192.0.2.1", ""},
		},
		"C5: never more than two": {
			routes: []kernel.Route{via(0, "192.0.2.1", "192.0.2.2", "192.0.2.3")},
			want:   []string{"192.0.2.1", "192.0.2.2"},
			why:    []string{"", "", "only 2 gateways can be published"},
		},
		"C5: each family before a second one of either": {
			routes: []kernel.Route{via(0, "192.0.2.1", "192.0.2.2"), via(1024, "fe80::1", "fe80::2")},
			want:   []string{"192.0.2.1", "fe80::1"},
			why:    []string{"", "only 2 gateways can be published", "", "only 2 gateways can be published"},
		},
		"C6: by number, not as text": {routes: []kernel.Route{via(0, "192.0.2.10", "192.0.2.9")}, want: []string{"192.0.2.9", "192.0.2.10"}},
		"C7: only the heaviest": {
			routes: []kernel.Route{with(via(0, "192.0.2.1", "192.0.2.2"), func(r *kernel.Route) { r.NextHops[1].Weight = 3 })},
			want:   []string{"192.0.2.2"},
			why:    []string{"", "its weight is lower than the 3 of 192.0.2.2, and weights cannot be published"},
		},
		"C8: the same one twice": {
			routes: []kernel.Route{via(0, "192.0.2.1"), protocol(unix.RTPROT_DHCP, via(0, "192.0.2.1", "192.0.2.2"))},
			want:   []string{"192.0.2.1", "192.0.2.2"},
			why:    []string{"", "another default route names it too", ""},
		},
		"C9: of a BGP daemon, though preferred": {
			routes: []kernel.Route{protocol(unix.RTPROT_BGP, via(20, "192.0.2.9")), via(100, "192.0.2.1")},
			want:   []string{"192.0.2.1"},
			why:    []string{"the route is by a BGP daemon", ""},
		},
		"C11: blackhole":   {routes: []kernel.Route{drops(unix.RTN_BLACKHOLE)}, why: []string{"the route drops packets"}},
		"C11: unreachable": {routes: []kernel.Route{drops(unix.RTN_UNREACHABLE), via(100, "192.0.2.1")}, want: []string{"192.0.2.1"}},
		"C11: prohibit":    {routes: []kernel.Route{drops(unix.RTN_PROHIBIT)}},
		"C11: IPv6 shows unreachable on a link": {
			routes: []kernel.Route{with(via(1, "fe80::9"), func(r *kernel.Route) { r.Type = unix.RTN_UNREACHABLE })}, why: []string{"the route drops packets"},
		},
		"C13: link-local, from a router advertisement": {
			routes: []kernel.Route{protocol(unix.RTPROT_RA, via(1024, "fe80::1")), via(2048, "2001:db8::1")},
			want:   []string{"fe80::1"},
		},
		"a dead next hop":         {routes: []kernel.Route{hop(func(h *kernel.NextHop) { h.Dead = true })}, why: []string{"the next hop is dead"}},
		"a next hop without link": {routes: []kernel.Route{hop(func(h *kernel.NextHop) { h.LinkDown = true })}, why: []string{"the next hop's link is down"}},
		"an on-link route":        {routes: []kernel.Route{hop(func(h *kernel.NextHop) { h.Gateway = netip.Addr{} })}, why: []string{"the route names no gateway"}},
		"IPv4 by an IPv6 gateway": {
			routes: []kernel.Route{hop(func(h *kernel.NextHop) { h.Gateway = netip.MustParseAddr("fe80::1") })},
			why:    []string{"a gateway of the other family cannot be published"},
		},
		"no address of a router": {routes: []kernel.Route{via(0, "0.0.0.0")}, why: []string{"not the address of a router"}},
		"an opaque next-hop object": {
			routes: []kernel.Route{with(drops(unix.RTN_UNICAST), func(r *kernel.Route) { r.NextHopObject = 7 })},
			why:    []string{"the kernel does not say what is in next-hop object 7 (net.ipv4.nexthop_compat_mode is 0)"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			verdicts := judgeGateways(test.routes, ens3)
			if got := textOf(chosenGateways(verdicts)); !slices.Equal(got, test.want) {
				t.Errorf("chosen %q, want %q; verdicts %+v", got, test.want, verdicts)
			}
			var why []string
			for _, v := range verdicts {
				if v.Chosen == (v.Why != "") {
					t.Errorf("%s: chosen %t, why not %q", v.Gateway, v.Chosen, v.Why)
				}
				why = append(why, v.Why)
			}
			if diff := cmp.Diff(test.why, why); test.why != nil && diff != "" {
				t.Error(diff)
			}
			routes := slices.Clone(test.routes)
			slices.Reverse(routes)
			if got := textOf(chosenGateways(judgeGateways(routes, ens3))); !slices.Equal(got, test.want) {
				t.Errorf("in another order chosen %q", got)
			}
		})
	}
}

func TestGatewaysOfForeignProtocols(t *testing.T) {
	for _, p := range []int{186, 11, 188, 187, 189, 192, 42, 12, 8, 14, 99, 84, 85, kernel.ProtocolOwn} {
		if got := chosenGateways(judgeGateways([]kernel.Route{protocol(p, via(1, "192.0.2.1"))}, ens3)); len(got) != 0 {
			t.Errorf("C9: published a route of protocol %d", p)
		}
	}
	for _, p := range []int{unix.RTPROT_KERNEL, unix.RTPROT_BOOT, unix.RTPROT_STATIC, unix.RTPROT_RA, unix.RTPROT_DHCP} {
		if got := chosenGateways(judgeGateways([]kernel.Route{protocol(p, via(1, "192.0.2.1"))}, ens3)); len(got) != 1 {
			t.Errorf("left out a route of protocol %d", p)
		}
	}
}

func TestWhyNoGateway(t *testing.T) {
	opaque := func(p int) kernel.Route {
		return protocol(p, with(drops(unix.RTN_UNICAST), func(r *kernel.Route) { r.NextHopObject = 7 }))
	}
	elsewhere := hop(func(h *kernel.NextHop) { h.LinkIndex = other })
	tests := map[string]struct {
		routes []kernel.Route
		want   string
	}{
		"no default route": {},
		"one was chosen":   {routes: []kernel.Route{protocol(unix.RTPROT_BGP, via(20, "192.0.2.9")), via(100, "192.0.2.1")}},
		"nexthop_compat_mode=0": {
			routes: []kernel.Route{opaque(unix.RTPROT_STATIC)},
			want:   "default route 0.0.0.0/0 gives no gateway: the kernel does not say what is in next-hop object 7 (net.ipv4.nexthop_compat_mode is 0)",
		},
		"nexthop_compat_mode=0, and another's gateway": {
			routes: []kernel.Route{elsewhere, opaque(unix.RTPROT_BGP)}, want: "default route 0.0.0.0/0 gives no gateway: the route is by a BGP daemon",
		},
		"a dead next hop": {
			routes: []kernel.Route{hop(func(h *kernel.NextHop) { h.Dead = true })}, want: "default gateway 192.0.2.1 cannot be published: the next hop is dead",
		},
		"of the daemon's two the preferred": {
			routes: []kernel.Route{protocol(unix.RTPROT_BGP, via(30, "192.0.2.1")), protocol(unix.RTPROT_OSPF, via(20, "192.0.2.9"))},
			want:   "default gateway 192.0.2.9 cannot be published: the route is by an OSPF daemon",
		},
		"an on-link route": {
			routes: []kernel.Route{hop(func(h *kernel.NextHop) { h.Gateway = netip.Addr{} })},
			want:   "default route 0.0.0.0/0 gives no gateway: the route names no gateway",
		},
		"only another interface's": {routes: []kernel.Route{elsewhere}},
		"routes that drop": {
			routes: []kernel.Route{drops(unix.RTN_BLACKHOLE), with(via(1, "fe80::9"), func(r *kernel.Route) { r.Type = unix.RTN_UNREACHABLE })},
		},
		"of another table": {routes: []kernel.Route{with(via(0, "0.0.0.0"), func(r *kernel.Route) { r.Table = 7 })}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := &kernel.Snapshot{Links: []kernel.Link{{Index: ens3, Name: "ens3", AltNames: []string{"uplink0"}}}, Routes: test.routes}
			for _, iface := range []string{"ens3", "uplink0"} {
				if got := WhyNoGateway(s, iface); got != test.want {
					t.Errorf("%s: got %q, want %q", iface, got, test.want)
				}
			}
			if got := WhyNoGateway(s, "none"); got != "" {
				t.Errorf("of no interface: %q", got)
			}
		})
	}
}
