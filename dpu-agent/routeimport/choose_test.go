// SPDX-License-Identifier: Apache-2.0

package routeimport

import (
	"net/netip"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// here is the index of the interface in tables of tests.
const here = 7

// contentOf builds a table.
type contentOf struct{ content }

func (c *contentOf) add(dst string, metric uint32, change func(*route), hops ...hop) *contentOf {
	r := route{dst: prefix(dst), metric: metric, kind: unix.RTN_UNICAST, first: len(c.hops)}
	c.hops = append(c.hops, hops...)
	r.end = len(c.hops)
	if change != nil {
		change(&r)
	}
	c.routes = append(c.routes, r)
	return c
}

func via(gateway string) hop { return hop{gateway: netip.MustParseAddr(gateway), link: here} }

func TestChoose(t *testing.T) {
	elsewhere := hop{gateway: netip.MustParseAddr("198.18.0.1"), link: 8}
	dead := hop{gateway: netip.MustParseAddr("192.0.2.66"), link: here, dead: true}
	discards := func(r *route) { r.kind = unix.RTN_BLACKHOLE }
	special := func(r *route) { r.special = true }
	const p, p6 = "203.0.113.0/24", "2001:db8:5::/64"
	tests := map[string]struct {
		content *contentOf
		domain  Domain
		own     []string
		want    []string
		ignored Ignored
	}{
		"nothing": {content: &contentOf{}},
		"C1, C7: a multipath route, weights and doubles left out": {
			content: (&contentOf{}).add(p, 20, nil, via("192.0.2.2"), via("192.0.2.1"), via("192.0.2.2")),
			want:    []string{p + " 192.0.2.1", p + " 192.0.2.2"},
		},
		"C2: a leg elsewhere": {content: (&contentOf{}).
			add(p, 20, nil, elsewhere, via("192.0.2.1")), want: []string{p + " 192.0.2.1"}},
		"all legs elsewhere": {content: (&contentOf{}).add(p, 20, nil, elsewhere, elsewhere)},
		"a dead leg": {content: (&contentOf{}).
			add(p, 20, nil, dead, via("192.0.2.1")), want: []string{p + " 192.0.2.1"}},
		"a dead route, and one of a higher metric": {
			content: (&contentOf{}).add(p, 20, nil, dead).
				add(p, 30, nil, via("192.0.2.1")), want: []string{p + " 192.0.2.1"},
		},
		"the lower metric": {content: (&contentOf{}).add(p, 30, nil, via("192.0.2.1")).
			add(p, 20, nil, via("192.0.2.2")), want: []string{p + " 192.0.2.2"}},
		"the lower metric is elsewhere": {content: (&contentOf{}).add(p, 30, nil, via("192.0.2.1")).
			add(p, 20, nil, elsewhere)},
		"C11: the lower metric discards": {content: (&contentOf{}).add(p, 30, nil, via("192.0.2.1")).add(p, 20, discards)},
		"C11: the higher metric discards": {
			content: (&contentOf{}).add(p, 30, discards).add(p, 20, nil, via("192.0.2.1")), want: []string{p + " 192.0.2.1"},
		},
		"the same metric, IPv4: the kernel uses the first": {
			content: (&contentOf{}).add(p, 20, nil, via("192.0.2.2")).
				add(p, 20, nil, via("192.0.2.1")), want: []string{p + " 192.0.2.2"},
		},
		"the same metric, IPv6: they share": {
			content: (&contentOf{}).add(p6, 20, nil, via("fe80::2")).add(p6, 20, nil, via("fe80::1")).
				add(p6, 30, nil, via("fe80::3")),
			want: []string{p6 + " fe80::1", p6 + " fe80::2"},
		},
		"for some packets only": {
			content: (&contentOf{}).add(p, 0, special, via("192.0.2.2")).add(p, 20, nil, via("192.0.2.1")).
				add(p6, 20, nil, via("fe80::1")).add(p6, 20, special, via("fe80::2")),
			want: []string{p + " 192.0.2.1", p6 + " fe80::1"},
		},
		"C10: default routes are routes": {
			content: (&contentOf{}).add("0.0.0.0/0", 20, nil, via("192.0.2.1")).add("::/0", 20, nil, via("fe80::1")),
			want:    []string{"0.0.0.0/0 192.0.2.1", "::/0 fe80::1"},
		},
		"IPv4 by IPv6, which the schema does not know": {
			content: (&contentOf{}).add(p, 20, nil, via("fe80::1"), via("192.0.2.1")).
				add("203.0.114.0/24", 20, nil, via("fe80::1")).add("203.0.115.0/24", 20, nil, via("169.254.0.1")),
			want: []string{p + " 192.0.2.1"}, ignored: Ignored{ViaIPv6: 3},
		},
		"IPv4 by IPv6, which it knows": {
			domain: Domain{IPv4ViaIPv6: true},
			content: (&contentOf{}).add(p, 20, nil, via("fe80::1"), via("192.0.2.1")).
				add("203.0.115.0/24", 20, nil, via("169.254.0.1")),
			want: []string{p + " 192.0.2.1", p + " fe80::1"}, ignored: Ignored{ViaIPv6: 1},
		},
		"on the link": {content: (&contentOf{}).add(p, 20, nil, hop{link: here}), ignored: Ignored{NoGateway: 1}},
		"G12: pod subnets, all of them, and what is inside, not what is around": {
			domain: Domain{Skip: prefixes("10.128.0.0/14", "10.200.0.0/16", "2001:db8:1::/48")},
			content: (&contentOf{}).add("10.128.0.0/14", 20, nil, via("192.0.2.1")).
				add("10.129.0.0/24", 20, nil, via("192.0.2.1")).add("10.200.3.4/32", 20, nil, via("192.0.2.1")).
				add("10.0.0.0/8", 20, nil, via("192.0.2.1")).add("2001:db8:1:5::/64", 20, nil, via("fe80::1")).
				add("2001:db8::/32", 20, nil, via("fe80::1")).add("10.128.7.0/24", 20, nil, elsewhere),
			want: []string{"10.0.0.0/8 192.0.2.1", "2001:db8::/32 fe80::1"}, ignored: Ignored{Skipped: 4},
		},
		"the node's own": {
			own: []string{"192.0.2.0/24", "192.0.2.5/32"},
			content: (&contentOf{}).add("192.0.2.0/24", 20, nil, via("192.0.2.1")).
				add("192.0.2.5/32", 20, nil, via("192.0.2.1")).add("192.0.2.7/32", 20, nil, via("192.0.2.1")),
			want: []string{"192.0.2.7/32 192.0.2.1"}, ignored: Ignored{Skipped: 2},
		},
		"link-local, multicast, loopback": {
			content: (&contentOf{}).add("169.254.0.0/16", 20, nil, via("192.0.2.1")).
				add("224.0.0.0/4", 20, nil, via("192.0.2.1")).add("127.0.0.0/8", 20, nil, via("192.0.2.1")).
				add("fe80::/10", 20, nil, via("fe80::1")).add("ff00::/8", 20, nil, via("fe80::1")).
				add("ff02::1/128", 20, nil, via("fe80::1")),
			ignored: Ignored{Skipped: 6},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.content.own = map[netip.Prefix]bool{}
			for _, o := range test.own {
				test.content.own[prefix(o)] = true
			}
			seen, ignored := test.content.choose(&test.domain, here)
			if got := texts(state{routes: seen}.flat()); !slices.Equal(got, test.want) || ignored != test.ignored {
				t.Errorf("got %q, ignored %+v\nwant %q, %+v", got, ignored, test.want, test.ignored)
			}
		})
	}
}

func TestObjectsWays(t *testing.T) {
	all := objects{1: {id: 1, hop: via("192.0.2.1")}, 2: {id: 2, hop: via("192.0.2.2")}, 3: {id: 3, discards: true},
		4: {id: 4, group: []uint32{1, 2}}, 5: {id: 5, group: []uint32{2, 9}}}
	tests := map[string]struct {
		id    uint32
		want  []hop
		whole bool
	}{
		"one": {id: 1, want: []hop{via("192.0.2.1")}, whole: true}, "a blackhole": {id: 3, whole: true},
		"one that is not there":              {id: 8},
		"a group":                            {id: 4, want: []hop{via("192.0.2.1"), via("192.0.2.2")}, whole: true},
		"a group with one that is not there": {id: 5, want: []hop{via("192.0.2.2")}},
	}
	for name, test := range tests {
		if got, whole := all.ways(test.id, nil); !slices.Equal(got, test.want) || whole != test.whole {
			t.Errorf("%s: %v, %t", name, got, whole)
		}
	}
}
