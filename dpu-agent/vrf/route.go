// SPDX-License-Identifier: Apache-2.0

package vrf

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"
)

// Offsets into struct rtmsg and struct rtnexthop of linux/rtnetlink.h.
const (
	rtmTOS, rtmTable, rtmProtocol, rtmScope, rtmType, rtmFlags = 3, 4, 5, 6, 7, 8

	nexthopSize, nexthopFlags, nexthopIndex = 8, 2, 4
)

// nhID is RTA_NH_ID of linux/rtnetlink.h.
const nhID = 30

// keptFlags of a next hop are the administrator's; the others are states, which the kernel refuses to be given.
const keptFlags = unix.RTNH_F_ONLINK | unix.RTNH_F_PERVASIVE

// route is one route of the kernel's. Its message has no states: two reads of a route are the same.
type route struct {
	message
	routeKey
	kind, protocol byte
	// links are those that it leaves through.
	links []int
	// routers are the next hops that are not on the destination's own network.
	routers []netip.Addr
	source  netip.Addr
	// object is set when the next hops are those of a next-hop object.
	object bool
	// expires is set for routes with a lifetime, cloned for cached answers.
	expires, cloned bool
}

// routeKey is what the kernel has one route of, or several that were appended.
type routeKey struct {
	family byte
	table  uint32
	dst    netip.Prefix
	// src is the source prefix of a source-specific IPv6 route.
	src    netip.Prefix
	tos    byte
	metric uint32
}

func parseRoute(raw []byte) (route, error) {
	m, err := parseMessage(raw, unix.SizeofRtMsg)
	if err != nil {
		return route{}, fmt.Errorf("decode a route: %w", err)
	}
	r := route{kind: m.header[rtmType], protocol: m.header[rtmProtocol]}
	flags := binary.NativeEndian.Uint32(m.header[rtmFlags:])
	r.cloned = flags&unix.RTM_F_CLONED != 0
	if info := m.get(unix.RTA_CACHEINFO); len(info) >= 12 { // struct rta_cacheinfo: rta_expires is the third
		r.expires = binary.NativeEndian.Uint32(info[8:]) != 0
	}
	binary.NativeEndian.PutUint32(m.header[rtmFlags:], flags&keptFlags)
	m = m.with(0, nil, unix.RTA_CACHEINFO)
	r.object = m.get(nhID) != nil
	r.source = m.address(unix.RTA_PREFSRC)
	if m.get(unix.RTA_OIF) != nil {
		r.links = append(r.links, int(m.number(unix.RTA_OIF)))
	}
	r.addRouter(m)
	if err := r.readHops(m.get(unix.RTA_MULTIPATH)); err != nil {
		return route{}, err
	}
	r.message = m
	table := m.number(unix.RTA_TABLE)
	if table == 0 {
		table = uint32(m.header[rtmTable])
	}
	m.header[rtmTable] = short(table)
	family := m.header[0]
	r.routeKey = routeKey{
		family: family, table: table, tos: m.header[rtmTOS], metric: m.number(unix.RTA_PRIORITY),
		dst: m.prefix(unix.RTA_DST, family, m.header[1]), src: m.prefix(unix.RTA_SRC, family, m.header[2]),
	}
	return r, nil
}

// readHops reads the next hops of a multipath route and clears their states in place.
func (r *route) readHops(hops []byte) error {
	for len(hops) > 0 {
		size := 0
		if len(hops) >= nexthopSize {
			size = int(binary.NativeEndian.Uint16(hops))
		}
		if size < nexthopSize || size > len(hops) {
			return fmt.Errorf("decode a route: a next hop of %d bytes among %d", size, len(hops))
		}
		hop, err := parseMessage(hops[:size], nexthopSize)
		if err != nil {
			return fmt.Errorf("decode a next hop: %w", err)
		}
		hops[nexthopFlags] &= keptFlags
		r.links = append(r.links, int(binary.NativeEndian.Uint32(hops[nexthopIndex:])))
		r.addRouter(hop)
		hops = hops[nextHop(hops):]
	}
	return nil
}

// addRouter adds the router of a next hop.
func (r *route) addRouter(hop message) {
	if gateway := hop.address(unix.RTA_GATEWAY); gateway.IsValid() {
		r.routers = append(r.routers, gateway)
	}
	if via := hop.get(unix.RTA_VIA); len(via) > 2 { // struct rtvia: a family, then the address
		gateway, _ := netip.AddrFromSlice(via[2:])
		r.routers = append(r.routers, gateway)
	}
}

// direct tells whether no next hop is a router.
func (r route) direct() bool { return len(r.routers) == 0 }

// onLink is the route with routers that the kernel takes to be on the link without looking for a route to them.
func (r route) onLink() route {
	hops := slices.Clone(r.get(unix.RTA_MULTIPATH))
	r.message = r.with(unix.RTA_MULTIPATH, hops)
	if hops == nil {
		flags := binary.NativeEndian.Uint32(r.header[rtmFlags:])
		binary.NativeEndian.PutUint32(r.header[rtmFlags:], flags|unix.RTNH_F_ONLINK)
	}
	for len(hops) > 0 {
		hops[nexthopFlags] |= unix.RTNH_F_ONLINK
		hops = hops[nextHop(hops):]
	}
	return r
}

// nextHop is where the next next hop of a multipath route begins, after the first.
func nextHop(hops []byte) int {
	return min(len(hops), aligned(int(binary.NativeEndian.Uint16(hops))))
}

// in is the same route in another table.
func (r route) in(table uint32) route {
	if r.table == table {
		return r
	}
	r.message = r.with(unix.RTA_TABLE, bytesOf(table))
	r.table = table
	r.header[rtmTable] = short(table)
	return r
}

// short is what the header says of a table that RTA_TABLE names.
func short(table uint32) byte {
	if table < 256 {
		return byte(table)
	}
	return unix.RT_TABLE_COMPAT
}

// same tells whether both are one route, whether or not the kernel looks for routes to its routers.
func (r route) same(o route) bool {
	return r.routeKey == o.routeKey && bytes.Equal(r.onLink().bytes(), o.onLink().bytes())
}

// only tells whether the route leaves through a link and no other.
func (r route) only(link int) bool {
	return len(r.links) > 0 && !slices.ContainsFunc(r.links, func(l int) bool { return l != link })
}

// String names a route as ip(8) does.
func (r route) String() string {
	text := r.dst.String()
	if r.dst.Bits() == 0 {
		text = "default (" + text + ")"
	}
	if r.metric != 0 {
		text += fmt.Sprintf(" metric %d", r.metric)
	}
	return fmt.Sprintf("%s in table %d", text, r.table)
}
