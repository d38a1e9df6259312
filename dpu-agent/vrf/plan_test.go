// SPDX-License-Identifier: Apache-2.0

package vrf

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// spec describes a route for a test, through link 5 unless it says otherwise.
type spec struct {
	dst, via, src string
	hops          []int // of a multipath route: the links, each with the router via
	table, metric uint32
	kind, proto   byte
	link          int
	flags         uint32
	expires       uint32
	object        bool
}

// message encodes a route as the kernel tells of it.
func (s spec) message(t *testing.T) []byte {
	t.Helper()
	dst := netip.MustParsePrefix(s.dst)
	family, header := byte(unix.AF_INET), make([]byte, unix.SizeofRtMsg)
	if dst.Addr().Is6() {
		family = unix.AF_INET6
	}
	orElse := func(v, d uint32) uint32 {
		if v == 0 {
			return d
		}
		return v
	}
	table, link := orElse(s.table, unix.RT_TABLE_MAIN), orElse(uint32(s.link), 5)
	header[0], header[1], header[rtmTable] = family, byte(dst.Bits()), byte(min(table, unix.RT_TABLE_COMPAT))
	header[rtmProtocol], header[rtmType] = byte(orElse(uint32(s.proto), unix.RTPROT_BOOT)), byte(orElse(uint32(s.kind), unix.RTN_UNICAST))
	if table < 256 {
		header[rtmTable] = byte(table)
	}
	binary.NativeEndian.PutUint32(header[rtmFlags:], s.flags)
	m := message{header: header}
	add := func(kind uint16, value []byte) { m.attrs = append(m.attrs, attribute{kind, value}) }
	add(unix.RTA_TABLE, bytesOf(table))
	if dst.Bits() > 0 {
		add(unix.RTA_DST, dst.Addr().AsSlice())
	}
	if s.metric > 0 {
		add(unix.RTA_PRIORITY, bytesOf(s.metric))
	}
	if s.src != "" {
		add(unix.RTA_PREFSRC, netip.MustParseAddr(s.src).AsSlice())
	}
	if s.object {
		add(nhID, bytesOf(7))
	}
	router := func() []byte {
		if s.via == "" {
			return nil
		}
		return nl.NewRtAttr(unix.RTA_GATEWAY, netip.MustParseAddr(s.via).AsSlice()).Serialize()
	}
	var hops []byte
	for _, link := range s.hops {
		hop := make([]byte, nexthopSize)
		binary.NativeEndian.PutUint16(hop, uint16(nexthopSize+len(router())))
		hop[nexthopFlags] = byte(s.flags)
		binary.NativeEndian.PutUint32(hop[nexthopIndex:], uint32(link))
		hops = append(append(hops, hop...), router()...)
	}
	if hops != nil {
		add(unix.RTA_MULTIPATH, hops)
	} else {
		if s.via != "" {
			add(unix.RTA_GATEWAY, netip.MustParseAddr(s.via).AsSlice())
		}
		add(unix.RTA_OIF, bytesOf(link))
	}
	if family == unix.AF_INET6 {
		info := make([]byte, 32)
		binary.NativeEndian.PutUint32(info[8:], s.expires)
		add(unix.RTA_CACHEINFO, info)
	}
	return m.bytes()
}

func (s spec) route(t *testing.T) route {
	t.Helper()
	r, err := parseRoute(s.message(t))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestTake: which routes go with link 5, and in which order they are put back; C9, C13, C19, C20.
func TestTake(t *testing.T) {
	for _, c := range []struct {
		name string
		spec spec
		want string
	}{
		{"default", spec{dst: "0.0.0.0/0", via: "192.0.2.1"}, "3"},
		{"default without a router", spec{dst: "::/0"}, "3"},
		{"connected, by the kernel or in its stead", spec{dst: "192.0.2.0/24", proto: unix.RTPROT_KERNEL, src: "192.0.2.5"}, "0"},
		{"host, through a router", spec{dst: "203.0.113.7/32", via: "192.0.2.1"}, "1"},
		{"host, connected", spec{dst: "203.0.113.7/32"}, "0"},
		{"static", spec{dst: "198.51.100.0/24", via: "192.0.2.1", proto: unix.RTPROT_STATIC}, "2"},
		{"dhcp", spec{dst: "0.0.0.0/0", via: "192.0.2.1", proto: unix.RTPROT_DHCP, metric: 100}, "3"},
		{"multipath", spec{dst: "198.51.100.0/24", via: "192.0.2.1", hops: []int{5, 5}}, "2"},
		{"C2: multipath through another link too", spec{dst: "198.51.100.0/24", via: "192.0.2.1", hops: []int{6, 5}}, "2"},
		{"table of a rule", spec{dst: "0.0.0.0/0", via: "192.0.2.1", table: 100}, "3"},
		{"local by hand", spec{dst: "198.51.100.0/24", kind: unix.RTN_LOCAL, table: 255}, "0"},
		{"another link's", spec{dst: "192.0.2.0/24", link: 6}, ""},
		{"local by the kernel", spec{dst: "192.0.2.5/32", kind: unix.RTN_LOCAL, table: 255, proto: unix.RTPROT_KERNEL}, ""},
		{"bgp", spec{dst: "0.0.0.0/0", via: "192.0.2.1", proto: unix.RTPROT_BGP}, ""},
		{"zebra", spec{dst: "203.0.113.0/24", via: "192.0.2.1", proto: unix.RTPROT_ZEBRA}, ""},
		{"OVN-Kubernetes'", spec{dst: "203.0.113.0/24", via: "192.0.2.1", proto: 85}, ""},
		{"our own", spec{dst: "203.0.113.0/24", via: "192.0.2.1", proto: 117}, ""},
		{"router advertisement", spec{dst: "::/0", via: "fe80::1", proto: unix.RTPROT_RA}, ""},
		{"expiring", spec{dst: "2001:db8::/64", proto: unix.RTPROT_KERNEL, expires: 90000}, ""},
		{"next-hop object", spec{dst: "203.0.113.0/24", via: "192.0.2.1", object: true}, ""},
		{"IPv6 link-local", spec{dst: "fe80::/64", proto: unix.RTPROT_KERNEL}, ""},
		{"IPv6 multicast", spec{dst: "ff00::/8", kind: unix.RTN_MULTICAST, table: 255}, ""},
		{"cached", spec{dst: "2001:db8::7/128", flags: unix.RTM_F_CLONED}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := ""
			for _, r := range take(&view{routes: []route{c.spec.route(t)}}, 5, 0).routes {
				got += fmt.Sprint(r.stage())
			}
			if got != c.want {
				t.Errorf("stages %q, want %q", got, c.want)
			}
		})
	}
}

// TestPlaced: which table a route is in, in the VRF and out of it.
func TestPlaced(t *testing.T) {
	for _, c := range []struct {
		name      string
		spec      spec
		in, table uint32
	}{
		{"of table main", spec{dst: "0.0.0.0/0", via: "192.0.2.1"}, 1007, 254},
		{"of table local", spec{dst: "198.51.100.0/24", kind: unix.RTN_LOCAL, table: 255}, 1007, 255},
		{"of a rule's table", spec{dst: "0.0.0.0/0", via: "192.0.2.1", table: 100}, 100, 100},
		{"of two links", spec{dst: "198.51.100.0/24", via: "192.0.2.1", hops: []int{6, 5}}, 254, 254},
	} {
		t.Run(c.name, func(t *testing.T) {
			out := take(&view{routes: []route{c.spec.route(t)}}, 5, 0)
			in := out.placed(5, 1007)
			if got := in.routes[0].table; got != c.in {
				t.Errorf("in the VRF it is in table %d, want %d", got, c.in)
			}
			// What the kernel tells of it there is read again.
			read, err := parseRoute(in.routes[0].bytes())
			if err != nil || read.table != c.in || !read.same(in.routes[0]) {
				t.Errorf("read again: %v, %v", read, err)
			}
			back := take(&view{routes: []route{read}}, 5, 1007)
			if len(back.routes) != 1 || back.routes[0].table != c.table || !back.equal(out) {
				t.Errorf("it returns as %v", back.routes)
			}
		})
	}
}

// TestSame: states do not make a route another one; what an administrator sets does.
func TestSame(t *testing.T) {
	one := spec{dst: "198.51.100.0/24", via: "192.0.2.1"}
	for _, c := range []struct {
		name   string
		change func(*spec)
		same   bool
	}{
		{"dead and without carrier", func(s *spec) { s.flags = unix.RTNH_F_DEAD | unix.RTNH_F_LINKDOWN }, true},
		{"offloaded", func(s *spec) { s.flags = unix.RTNH_F_OFFLOAD | unix.RTM_F_OFFLOAD }, true},
		{"router not looked for", func(s *spec) { s.flags = unix.RTNH_F_ONLINK }, true},
		{"router", func(s *spec) { s.via = "192.0.2.2" }, false},
		{"metric", func(s *spec) { s.metric = 7 }, false},
		{"protocol", func(s *spec) { s.proto = unix.RTPROT_STATIC }, false},
		{"source", func(s *spec) { s.src = "192.0.2.5" }, false},
		{"table", func(s *spec) { s.table = 300 }, false},
		{"link", func(s *spec) { s.link = 6 }, false},
	} {
		other := one
		c.change(&other)
		if got := one.route(t).same(other.route(t)); got != c.same {
			t.Errorf("%s: same %t", c.name, got)
		}
	}
	dead, alive := spec{dst: "0.0.0.0/0", via: "192.0.2.1", hops: []int{5, 5}, flags: unix.RTNH_F_DEAD}, spec{dst: "0.0.0.0/0", via: "192.0.2.1", hops: []int{5, 5}}
	if !dead.route(t).same(alive.route(t)) {
		t.Error("next hops that are dead make a multipath route another one")
	}
}

// TestC8Manner: how a route is made whose place may be taken.
func TestC8Manner(t *testing.T) {
	static := spec{dst: "0.0.0.0/0", via: "192.0.2.1", metric: 100}
	connected := spec{dst: "192.0.2.0/24", proto: unix.RTPROT_KERNEL}
	for _, c := range []struct {
		name string
		make spec
		has  []spec
		want manner
	}{
		{"free", static, nil, alone},
		{"another metric", static, []spec{{dst: "0.0.0.0/0", via: "10.66.0.1", link: 6}}, alone},
		{"another family", static, []spec{{dst: "::/0", via: "2001:db8::1", link: 6, metric: 100}}, alone},
		{"the same link", static, []spec{{dst: "0.0.0.0/0", via: "192.0.2.2", metric: 100}}, beside},
		{"another link", static, []spec{{dst: "0.0.0.0/0", via: "10.66.0.1", link: 6, metric: 100}}, notHere},
		{"both", static, []spec{{dst: "0.0.0.0/0", via: "192.0.2.2", metric: 100}, {dst: "0.0.0.0/0", via: "10.66.0.1", link: 6, metric: 100}}, notHere},
		{"two links in one network", connected, []spec{{dst: "192.0.2.0/24", proto: unix.RTPROT_KERNEL, link: 6}}, beside},
	} {
		v := &view{}
		for _, s := range c.has {
			v.routes = append(v.routes, s.route(t))
		}
		if got := c.make.route(t).manner(v, 5); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// TestReplacedRoutesStayReplaced: what was recorded does not return where something else is now, nor for an address
// that is gone.
func TestReplacedRoutesStayReplaced(t *testing.T) {
	old, now := spec{dst: "0.0.0.0/0", via: "192.0.2.1"}.route(t), spec{dst: "0.0.0.0/0", via: "192.0.2.9"}.route(t)
	lost := spec{dst: "198.51.100.0/24", via: "192.0.2.1"}.route(t)
	sum := taken{routes: []route{now}}.withFree(taken{routes: []route{old, lost}})
	if len(sum.routes) != 2 || !slices.ContainsFunc(sum.routes, now.same) || !slices.ContainsFunc(sum.routes, lost.same) {
		t.Errorf("routes are %v", sum.routes)
	}
	if sum := (taken{routes: []route{now}}).with(taken{routes: []route{old, now}}); len(sum.routes) != 2 {
		t.Errorf("unfinished work forgets routes: %v", sum.routes)
	}
	held := taken{routes: []route{lost, spec{dst: "203.0.113.0/24", src: "192.0.2.77"}.route(t),
		spec{dst: "10.5.0.0/24", proto: unix.RTPROT_KERNEL}.route(t), spec{dst: "192.0.2.0/24", proto: unix.RTPROT_KERNEL}.route(t)}}
	var names []string
	for _, r := range held.due([]address{{addressKey: addressKey{5, netip.MustParsePrefix("192.0.2.5/24"), netip.MustParseAddr("192.0.2.5")}}}) {
		names = append(names, r.dst.String())
	}
	if got := strings.Join(names, " "); got != "198.51.100.0/24 192.0.2.0/24" {
		t.Errorf("due are %s", got)
	}
}
