// SPDX-License-Identifier: Apache-2.0

package routeimport

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"
)

// Offsets into struct rtmsg and struct rtnexthop of linux/rtnetlink.h.
const (
	rtmDstLength, rtmSrcLength, rtmTOS, rtmTable, rtmProtocol, rtmType, rtmFlags = 1, 2, 3, 4, 5, 7, 8

	nexthopSize, nexthopFlags, nexthopIndex = 8, 2, 4
)

// rtaNextHop is RTA_NH_ID of linux/rtnetlink.h.
const rtaNextHop = 30

// route is a route of the kernel's. Its next hops are in a list that all routes of a read share.
type route struct {
	dst           netip.Prefix
	table, metric uint32
	kind          byte
	protocol      byte
	// special is set for what is only used for some packets (by type of service or source), and for cached answers.
	special bool
	// object is the id of its next-hop object, or 0.
	object uint32
	// first and end are where its next hops are in the list.
	first, end int
}

// hop is one way out.
type hop struct {
	gateway netip.Addr
	link    int
	// dead is set while the kernel does not use it or its link has no carrier.
	dead bool
}

const deadFlags = unix.RTNH_F_DEAD | unix.RTNH_F_LINKDOWN

// parseRoute reads a message of RTM_NEWROUTE and appends the next hops that it spells out to a list.
func parseRoute(raw []byte, hops []hop) (route, []hop, error) {
	if len(raw) < unix.SizeofRtMsg {
		return route{}, hops, fmt.Errorf("decode a route: %w", errShort)
	}
	flags := binary.NativeEndian.Uint32(raw[rtmFlags:])
	r := route{
		table: uint32(raw[rtmTable]), kind: raw[rtmType], protocol: raw[rtmProtocol],
		special: raw[rtmTOS] != 0 || raw[rtmSrcLength] != 0 || flags&unix.RTM_F_CLONED != 0, first: len(hops),
	}
	var dst netip.Addr
	switch raw[0] {
	case unix.AF_INET:
		dst = netip.IPv4Unspecified()
	case unix.AF_INET6:
		dst = netip.IPv6Unspecified()
	default:
		return route{}, hops, fmt.Errorf("decode a route: family %d", raw[0])
	}
	only := hop{dead: flags&deadFlags != 0}
	for rest := raw[unix.SizeofRtMsg:]; len(rest) > 0; {
		var a attribute
		var err error
		if a, rest, err = cut(rest); err != nil {
			return route{}, hops, fmt.Errorf("decode a route: %w", err)
		}
		switch a.kind {
		case unix.RTA_DST:
			if given := a.address(); given.Is4() == dst.Is4() {
				dst = given
			}
		case unix.RTA_TABLE:
			r.table = a.number()
		case unix.RTA_PRIORITY:
			r.metric = a.number()
		case rtaNextHop:
			r.object = a.number()
		case unix.RTA_OIF:
			only.link = int(a.number())
		case unix.RTA_GATEWAY:
			only.gateway = a.address()
		case unix.RTA_VIA:
			only.gateway = a.via()
		case unix.RTA_MULTIPATH:
			if hops, err = parseHops(a.value, hops); err != nil {
				return route{}, hops, fmt.Errorf("decode a route: %w", err)
			}
		}
	}
	r.dst = netip.PrefixFrom(dst, int(raw[rtmDstLength])).Masked()
	if !r.dst.IsValid() {
		return route{}, hops, fmt.Errorf("decode a route: a prefix of length %d", raw[rtmDstLength])
	}
	if only.link != 0 && len(hops) == r.first {
		hops = append(hops, only)
	}
	r.end = len(hops)
	return r, hops, nil
}

// parseHops reads the next hops of a multipath route.
func parseHops(b []byte, hops []hop) ([]hop, error) {
	for len(b) > 0 {
		size := 0
		if len(b) >= nexthopSize {
			size = int(binary.NativeEndian.Uint16(b))
		}
		if size < nexthopSize || size > len(b) {
			return hops, fmt.Errorf("next hop of %d bytes among %d: %w", size, len(b), errShort)
		}
		h := hop{link: int(int32(binary.NativeEndian.Uint32(b[nexthopIndex:]))), dead: b[nexthopFlags]&deadFlags != 0}
		for rest := b[nexthopSize:size]; len(rest) > 0; {
			var a attribute
			var err error
			if a, rest, err = cut(rest); err != nil {
				return hops, err
			}
			switch a.kind {
			case unix.RTA_GATEWAY:
				h.gateway = a.address()
			case unix.RTA_VIA:
				h.gateway = a.via()
			}
		}
		hops = append(hops, h)
		b = b[min(len(b), aligned(size)):]
	}
	return hops, nil
}
