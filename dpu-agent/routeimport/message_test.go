// SPDX-License-Identifier: Apache-2.0

package routeimport

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// messageOf makes a message: a header and attributes.
func messageOf(header []byte, attrs ...*nl.RtAttr) []byte {
	raw := slices.Clone(header)
	for _, a := range attrs {
		raw = append(raw, a.Serialize()...)
	}
	return raw
}

func routeHeader(family, bits, table byte, flags uint32) []byte {
	header := make([]byte, unix.SizeofRtMsg)
	header[0], header[rtmDstLength], header[rtmTable], header[rtmProtocol], header[rtmType] = family, bits, table,
		unix.RTPROT_BGP, unix.RTN_UNICAST
	binary.NativeEndian.PutUint32(header[rtmFlags:], flags)
	return header
}

func attr(kind int, value ...byte) *nl.RtAttr { return nl.NewRtAttr(kind, value) }

func number32(kind int, v uint32) *nl.RtAttr { return nl.NewRtAttr(kind, nl.Uint32Attr(v)) }

// legOf makes a struct rtnexthop.
func legOf(link uint32, flags byte, attrs ...*nl.RtAttr) []byte {
	leg := messageOf(make([]byte, nexthopSize), attrs...)
	binary.NativeEndian.PutUint16(leg, uint16(len(leg)))
	leg[nexthopFlags] = flags
	binary.NativeEndian.PutUint32(leg[nexthopIndex:], link)
	return leg
}

var messages = map[string]struct {
	raw  []byte
	want route
	hops []hop
	err  bool
}{
	"plain": {
		raw: messageOf(routeHeader(unix.AF_INET, 24, unix.RT_TABLE_MAIN, 0), attr(unix.RTA_DST, 203, 0, 113, 0),
			number32(unix.RTA_PRIORITY, 20), attr(unix.RTA_GATEWAY, 192, 0, 2, 1), number32(unix.RTA_OIF, 7)),
		want: route{dst: prefix("203.0.113.0/24"), table: unix.RT_TABLE_MAIN, metric: 20},
		hops: []hop{via("192.0.2.1")},
	},
	"C10: a default route has no destination; a table with a large number; no carrier": {
		raw: messageOf(routeHeader(unix.AF_INET6, 0, unix.RT_TABLE_COMPAT, unix.RTNH_F_LINKDOWN),
			number32(unix.RTA_TABLE, 1007), attr(unix.RTA_GATEWAY, netip.MustParseAddr("fe80::1").AsSlice()...),
			number32(unix.RTA_OIF, 7)),
		want: route{dst: prefix("::/0"), table: 1007},
		hops: []hop{{gateway: netip.MustParseAddr("fe80::1"), link: here, dead: true}},
	},
	"C1: several next hops": {
		raw: messageOf(routeHeader(unix.AF_INET, 32, unix.RT_TABLE_MAIN, 0), attr(unix.RTA_DST, 203, 0, 113, 7),
			attr(unix.RTA_MULTIPATH, slices.Concat(legOf(here, unix.RTNH_F_DEAD, attr(unix.RTA_GATEWAY, 192, 0, 2, 1)),
				legOf(here, 0, attr(unix.RTA_VIA, append([]byte{unix.AF_INET6, 0},
					netip.MustParseAddr("fe80::1").AsSlice()...)...)), legOf(8, 0))...)),
		want: route{dst: prefix("203.0.113.7/32"), table: unix.RT_TABLE_MAIN},
		hops: []hop{{gateway: netip.MustParseAddr("192.0.2.1"), link: here, dead: true}, via("fe80::1"), {link: 8}},
	},
	"G7: a next-hop object only": {
		raw: messageOf(routeHeader(unix.AF_INET, 24, unix.RT_TABLE_MAIN, 0), attr(unix.RTA_DST, 203, 0, 113, 0),
			number32(rtaNextHop, 24)),
		want: route{dst: prefix("203.0.113.0/24"), table: unix.RT_TABLE_MAIN, object: 24},
	},
	"host bits": {raw: messageOf(routeHeader(unix.AF_INET, 8, 254, 0), attr(unix.RTA_DST, 10, 1, 2,
		3)), want: route{dst: prefix("10.0.0.0/8"), table: unix.RT_TABLE_MAIN}},
	"a cached answer": {raw: routeHeader(unix.AF_INET6, 0, 254, unix.RTM_F_CLONED),
		want: route{dst: prefix("::/0"), table: unix.RT_TABLE_MAIN, special: true}},
	"a prefix of 33 bits": {raw: routeHeader(unix.AF_INET, 33, 254, 0), err: true},
	"MPLS":                {raw: routeHeader(unix.AF_MPLS, 20, 254, 0), err: true},
	"nothing":             {err: true},
	"half a header":       {raw: make([]byte, unix.SizeofRtMsg-1), err: true},
	"half an attribute":   {raw: append(routeHeader(unix.AF_INET, 0, 254, 0), 200, 0, 1, 0), err: true},
	"half a leg": {raw: messageOf(routeHeader(unix.AF_INET, 0, 254, 0), attr(unix.RTA_MULTIPATH, 1,
		2, 3)), err: true},
	"a leg of no length at all": {raw: messageOf(routeHeader(unix.AF_INET, 0, 254, 0), attr(unix.RTA_MULTIPATH,
		make([]byte, 8)...)), err: true},
}

func TestParseRoute(t *testing.T) {
	for name, test := range messages {
		t.Run(name, func(t *testing.T) {
			others := []hop{via("192.0.2.99")}
			got, hops, err := parseRoute(test.raw, others)
			if (err != nil) != test.err {
				t.Fatalf("error %v", err)
			}
			if test.err {
				return
			}
			want := test.want
			want.kind, want.protocol, want.first, want.end = unix.RTN_UNICAST, unix.RTPROT_BGP, 1, 1+len(test.hops)
			if got != want || !slices.Equal(hops[1:], test.hops) {
				t.Errorf("got %+v %+v\nwant %+v %+v", got, hops[1:], want, test.hops)
			}
		})
	}
}

func TestParseEvent(t *testing.T) {
	linkHeader := func(family byte) []byte {
		header := make([]byte, unix.SizeofIfInfomsg)
		header[0] = family
		binary.NativeEndian.PutUint32(header[4:], 7)
		return header
	}
	altNames := nl.NewRtAttr(unix.IFLA_PROP_LIST|unix.NLA_F_NESTED, nil)
	altNames.AddRtAttr(unix.IFLA_ALT_IFNAME, nl.ZeroTerminated("uplink-of-the-tenant"))
	link := messageOf(linkHeader(unix.AF_UNSPEC), nl.NewRtAttr(unix.IFLA_IFNAME, nl.ZeroTerminated("eth7")), altNames)
	address := func(kind int, text string) []byte {
		return messageOf(make([]byte, unix.SizeofIfAddrmsg), attr(kind, netip.MustParseAddr(text).AsSlice()...))
	}
	everything := event{everything: true}
	tests := map[string]struct {
		kind uint16
		raw  []byte
		want event
	}{
		"a route":                {unix.RTM_NEWROUTE, messages["plain"].raw, event{table: unix.RT_TABLE_MAIN}},
		"a route, large table":   {unix.RTM_DELROUTE, routeInTable(1007), event{table: 1007}},
		"half a route":           {unix.RTM_DELROUTE, make([]byte, 3), everything},
		"a link":                 {unix.RTM_NEWLINK, link, event{link: 7, names: []string{"eth7", "uplink-of-the-tenant"}}},
		"a port of a bridge":     {unix.RTM_NEWLINK, linkHeader(unix.AF_BRIDGE), event{}},
		"half a link":            {unix.RTM_DELLINK, link[:len(link)-5], everything},
		"an address":             {unix.RTM_DELADDR, address(unix.IFA_ADDRESS, "192.0.2.5"), everything},
		"a link-local address":   {unix.RTM_NEWADDR, address(unix.IFA_ADDRESS, "fe80::5"), event{}},
		"half an address":        {unix.RTM_NEWADDR, nil, everything},
		"a next-hop object":      {unix.RTM_DELNEXTHOP, nil, everything},
		"something never called": {999, nil, everything},
	}
	for name, test := range tests {
		got := parseEvent(test.kind, test.raw)
		if fmt.Sprint(got) != fmt.Sprint(test.want) {
			t.Errorf("%s: got %+v, want %+v", name, got, test.want)
		}
	}
}

func routeInTable(table uint32) []byte {
	return messageOf(routeHeader(unix.AF_INET, 24, unix.RT_TABLE_COMPAT, 0), attr(unix.RTA_DST, 203, 0, 113, 0),
		number32(unix.RTA_TABLE, table))
}

// FuzzMessages: nothing that comes makes a parser panic, and what it says of a route can be relied on.
func FuzzMessages(f *testing.F) {
	for _, m := range messages {
		f.Add(uint16(unix.RTM_NEWROUTE), m.raw)
	}
	group := nl.NewRtAttr(unix.NHA_GROUP, []byte{1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 3})
	f.Add(uint16(unix.RTM_NEWNEXTHOP), messageOf(make([]byte, nhmsgSize), number32(unix.NHA_ID, 10), group))
	f.Add(uint16(unix.RTM_NEWLINK), messageOf(make([]byte, unix.SizeofIfInfomsg), nl.NewRtAttr(unix.IFLA_PROP_LIST,
		[]byte{3, 0, 0, 0})))
	f.Fuzz(func(t *testing.T, kind uint16, raw []byte) {
		before := slices.Clone(raw)
		parseEvent(kind, raw)
		if o, err := parseObject(raw); err == nil {
			hops, _ := objects{o.id: o}.ways(o.id, nil)
			if len(hops) > 1 {
				t.Errorf("%d ways of one object", len(hops))
			}
		}
		r, hops, err := parseRoute(raw, []hop{{link: 99}})
		if !slices.Equal(raw, before) || hops[0].link != 99 {
			t.Error("parsing changed what it was given")
		}
		if err != nil {
			return
		}
		if !r.dst.IsValid() || r.dst != r.dst.Masked() || r.first != 1 || r.end != len(hops) {
			t.Errorf("route %+v with %d hops", r, len(hops))
		}
		c := content{routes: []route{r}, hops: hops}
		c.routes[0].kind = unix.RTN_UNICAST
		for _, h := range slices.Clone(hops) {
			seen, _ := c.choose(&Domain{}, h.link)
			for _, e := range seen {
				if e.prefix != r.dst || len(e.hops) == 0 || !e.hops[0].IsValid() {
					t.Errorf("chosen is %+v", e)
				}
			}
		}
	})
}
