// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"net"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

func TestDefaultRoute(t *testing.T) {
	network := func(s string) *net.IPNet {
		_, n, err := net.ParseCIDR(s)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	gw := net.ParseIP("192.0.2.1")
	plain := Route{
		Table: MainTable, Dst: netip.MustParsePrefix("0.0.0.0/0"), Type: unix.RTN_UNICAST, Protocol: unix.RTPROT_DHCP, Metric: 100,
		NextHops: []NextHop{{Gateway: netip.MustParseAddr("192.0.2.1"), LinkIndex: 7, Weight: 1}},
	}
	from := func(change func(*netlink.Route)) netlink.Route {
		r := netlink.Route{
			Table: unix.RT_TABLE_MAIN, Family: unix.AF_INET, Dst: network("0.0.0.0/0"), Type: unix.RTN_UNICAST,
			Protocol: unix.RTPROT_DHCP, Priority: 100, Gw: gw, LinkIndex: 7,
		}
		change(&r)
		return r
	}
	to := func(change func(*Route)) *Route {
		r := plain
		r.NextHops = slices.Clone(plain.NextHops)
		change(&r)
		return &r
	}
	tests := map[string]struct {
		route netlink.Route
		want  *Route
	}{
		"C10: Dst is /0":  {route: from(func(*netlink.Route) {}), want: &plain},
		"C10: Dst is nil": {route: from(func(r *netlink.Route) { r.Dst = nil }), want: &plain},
		"C10: Dst is nil, IPv6": {
			route: from(func(r *netlink.Route) { r.Dst, r.Family, r.Gw = nil, unix.AF_INET6, nil }),
			want:  to(func(r *Route) { r.Dst, r.NextHops[0].Gateway = netip.MustParsePrefix("::/0"), netip.Addr{} }),
		},
		"another destination": {route: from(func(r *netlink.Route) { r.Dst = network("198.51.100.0/24") })},
		"half of all":         {route: from(func(r *netlink.Route) { r.Dst = network("0.0.0.0/1") })},
		"MPLS":                {route: from(func(r *netlink.Route) { r.Dst, r.MPLSDst = nil, new(int) })},
		"flags of a plain route": {
			route: from(func(r *netlink.Route) { r.Flags = unix.RTNH_F_DEAD | unix.RTNH_F_LINKDOWN }),
			want:  to(func(r *Route) { r.NextHops[0].Dead, r.NextHops[0].LinkDown = true, true }),
		},
		"IPv4 by an IPv6 gateway": {
			route: from(func(r *netlink.Route) {
				r.Gw, r.Via = nil, &netlink.Via{AddrFamily: unix.AF_INET6, Addr: net.ParseIP("fe80::1")}
			}),
			want: to(func(r *Route) { r.NextHops[0].Gateway = netip.MustParseAddr("fe80::1") }),
		},
		"C11: unreachable, largest metric": {
			route: from(func(r *netlink.Route) {
				r.Type, r.Priority, r.Gw, r.LinkIndex = unix.RTN_UNREACHABLE, 4278198272, nil, 0
			}),
			want: to(func(r *Route) {
				r.Type, r.Metric, r.NextHops = unix.RTN_UNREACHABLE, 4278198272, []NextHop{{Weight: 1}}
			}),
		},
		"C1: next hops and weights of a multipath route": {
			route: from(func(r *netlink.Route) {
				r.Gw, r.LinkIndex = nil, 0
				r.MultiPath = []*netlink.NexthopInfo{{Gw: net.ParseIP("192.0.2.2"), LinkIndex: 7, Hops: 2}, {Gw: gw, LinkIndex: 8, Flags: unix.RTNH_F_LINKDOWN}}
			}),
			want: to(func(r *Route) {
				r.NextHops = []NextHop{
					{Gateway: netip.MustParseAddr("192.0.2.1"), LinkIndex: 8, Weight: 1, LinkDown: true},
					{Gateway: netip.MustParseAddr("192.0.2.2"), LinkIndex: 7, Weight: 3},
				}
			}),
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, ok := defaultRoute(test.route)
			if ok != (test.want != nil) {
				t.Fatalf("is a default route: %t, want %t", ok, test.want != nil)
			}
			if ok {
				if diff := cmp.Diff(*test.want, got, netipValues); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

func TestAddrOf(t *testing.T) {
	tests := map[string]struct {
		text  string
		flags int
		want  Addr
	}{
		"secondary is IPv4's":              {"192.0.2.5/24", unix.IFA_F_SECONDARY | unix.IFA_F_PERMANENT, Addr{Secondary: true, Permanent: true}},
		"the same bit is temporary's":      {"2001:db8::5/64", unix.IFA_F_TEMPORARY, Addr{Temporary: true}},
		"tentative and failed":             {"2001:db8::5/64", unix.IFA_F_TENTATIVE | unix.IFA_F_DADFAILED, Addr{Tentative: true, DADFailed: true}},
		"deprecated":                       {"192.0.2.5/32", unix.IFA_F_DEPRECATED, Addr{Deprecated: true}},
		"flags above the first eight bits": {"2001:db8::5/64", unix.IFA_F_NOPREFIXROUTE | unix.IFA_F_MANAGETEMPADDR, Addr{}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			ip, n, err := net.ParseCIDR(test.text)
			if err != nil {
				t.Fatal(err)
			}
			want := test.want
			want.LinkIndex, want.Prefix = 3, netip.MustParsePrefix(test.text)
			got, ok := addrOf(netlink.Addr{IPNet: &net.IPNet{IP: ip, Mask: n.Mask}, LinkIndex: 3, Flags: test.flags})
			if !ok || got != want {
				t.Errorf("got %+v, %t; want %+v", got, ok, want)
			}
		})
	}
	if _, ok := addrOf(netlink.Addr{}); ok {
		t.Error("an address without a prefix was accepted")
	}
}

func TestAddrEqualIgnoresTime(t *testing.T) {
	a := Addr{Valid: 3600, Preferred: 1800}
	for name, test := range map[string]struct {
		b    Addr
		want bool
	}{
		"a second later":       {Addr{Valid: 3599, Preferred: 1799}, true},
		"no longer preferred":  {Addr{Valid: 3599, Preferred: 0}, false},
		"now without an end":   {Addr{Valid: Forever, Preferred: Forever}, false},
		"another label":        {Addr{Valid: 3600, Preferred: 1800, Label: "x"}, false},
		"deprecated meanwhile": {Addr{Valid: 3600, Preferred: 1800, Deprecated: true}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := a.Equal(test.b); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}

func TestSnapshotTables(t *testing.T) {
	links := []Link{
		linkOf(&netlink.Device{LinkAttrs: netlink.LinkAttrs{Index: 2, Name: "ens3", AltNames: []string{"p0", "enp3s0"}, MasterIndex: 9}}),
		linkOf(&netlink.Device{LinkAttrs: netlink.LinkAttrs{Index: 3, Name: "p0", MasterIndex: 8}}),
		linkOf(&netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Index: 8, Name: "br0"}}),
		linkOf(&netlink.Vrf{LinkAttrs: netlink.LinkAttrs{Index: 9, Name: "vrf-blue"}, Table: 1007}),
	}
	s := &Snapshot{Links: links, Routes: []Route{{Table: MainTable, Metric: 1}, {Table: 1007, Metric: 2}}}
	if got := tables(links); !cmp.Equal(got, []uint32{MainTable, 1007}) {
		t.Errorf("tables are %v", got)
	}
	tests := map[string]struct {
		name  string
		index int
		table uint32
	}{
		"C3: slave of a VRF":          {"ens3", 2, 1007},
		"by altname":                  {"enp3s0", 2, 1007},
		"a name comes before altname": {"p0", 3, MainTable},
		"slave of a bridge":           {"p0", 3, MainTable},
		"no master":                   {"br0", 8, MainTable},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			link, ok := s.LinkByName(test.name)
			if !ok || link.Index != test.index || s.TableOf(link) != test.table {
				t.Errorf("got link %d, table %d, %t; want link %d, table %d", link.Index, s.TableOf(link), ok, test.index, test.table)
			}
		})
	}
	if _, ok := s.LinkByName("none"); ok {
		t.Error("found a link that is not there")
	}
	if got := s.DefaultRoutes(1007); len(got) != 1 || got[0].Metric != 2 {
		t.Errorf("default routes of table 1007: %+v", got)
	}
}

// netipValues compares netip values by ==.
var netipValues = cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{})
