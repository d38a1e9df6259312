// SPDX-License-Identifier: Apache-2.0

package routeimport

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

const (
	// requestTimeout is how long the kernel may take to go on with an answer.
	requestTimeout = 5 * time.Second
	// readAttempts bounds the retries of a list that the kernel marks as interrupted, readPause is the wait after the
	// first; it grows by as much with each.
	readAttempts = 10
	readPause    = 10 * time.Millisecond
	// skipStats is RTEXT_FILTER_SKIP_STATS of linux/rtnetlink.h.
	skipStats = 1 << 3
	// shortName is the longest name that IFLA_IFNAME takes; alternative names may be longer.
	shortName = unix.IFNAMSIZ - 1
)

// rtnetlink asks the kernel. It has one user at a time.
type rtnetlink struct {
	handle nl.SocketHandle
	// routesBefore and hopsBefore are how many there were in the last read: about as many are to be expected.
	routesBefore, hopsBefore int
}

func openRtnetlink(ns *netns.NsHandle) (*rtnetlink, error) {
	socket, err := nl.GetNetlinkSocketAt(namespace(ns), netns.None(), unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("open rtnetlink: %w", err)
	}
	timeout := unix.NsecToTimeval(requestTimeout.Nanoseconds())
	if err := errors.Join(socket.SetReceiveTimeout(&timeout), socket.SetSendTimeout(&timeout)); err != nil {
		_ = socket.Close()
		return nil, fmt.Errorf("set the timeout of rtnetlink: %w", err)
	}
	// Has the kernel filter lists by table and protocol. Kernels before 4.20 do not know it; what comes is filtered again.
	_ = unix.SetsockoptInt(socket.GetFd(), unix.SOL_NETLINK, unix.NETLINK_GET_STRICT_CHK, 1)
	return &rtnetlink{handle: nl.SocketHandle{Socket: socket}}, nil
}

func (r *rtnetlink) close() { _ = r.handle.Socket.Close() }

// ask sends one request and passes the answers on, until the first error.
func (r *rtnetlink) ask(kind, flags int, header []byte, each func([]byte) error, attrs ...*nl.RtAttr) error {
	req := nl.NewNetlinkRequest(kind, flags)
	req.Sockets = map[int]*nl.SocketHandle{unix.NETLINK_ROUTE: &r.handle}
	req.AddRawData(header)
	for _, a := range attrs {
		req.AddRawData(a.Serialize())
	}
	var wrong error
	err := req.ExecuteIter(unix.NETLINK_ROUTE, 0, func(raw []byte) bool {
		wrong = each(raw)
		return wrong == nil
	})
	if errors.Is(err, unix.EAGAIN) {
		err = fmt.Errorf("no answer within %s: %w", requestTimeout, err)
	}
	return errors.Join(err, wrong)
}

// link is one network interface.
type link struct {
	index int
	// table is that of a VRF, 0 for anything else.
	table uint32
}

// link finds a network interface by its name or an alternative one; ok is false if there is none.
func (r *rtnetlink) link(name string) (found link, ok bool, err error) {
	attr := nl.NewRtAttr(unix.IFLA_IFNAME, nl.ZeroTerminated(name))
	if len(name) > shortName {
		attr = nl.NewRtAttr(unix.IFLA_ALT_IFNAME, nl.ZeroTerminated(name))
	}
	err = r.ask(unix.RTM_GETLINK, 0, nl.NewIfInfomsg(unix.AF_UNSPEC).Serialize(), func(raw []byte) error {
		l, err := netlink.LinkDeserialize(nil, raw)
		if err != nil {
			return err
		}
		found.index = l.Attrs().Index
		if vrf, is := l.(*netlink.Vrf); is {
			found.table = vrf.Table
		}
		return nil
	}, attr, nl.NewRtAttr(unix.IFLA_EXT_MASK, nl.Uint32Attr(skipStats)))
	switch {
	case errors.Is(err, unix.ENODEV):
		return link{}, false, nil
	case err != nil:
		return link{}, false, fmt.Errorf("look for link %s: %w", name, err)
	}
	return found, found.index != 0, nil
}

// read lists what there is in a table, whole or not at all.
func (r *rtnetlink) read(ctx context.Context, table uint32) (*content, error) {
	for attempt := 1; ; attempt++ {
		c, err := r.readOnce(table)
		if err == nil {
			return c, nil
		}
		passing := errors.Is(err, netlink.ErrDumpInterrupted) || errors.Is(err, unix.EINTR)
		if !passing || attempt == readAttempts {
			return nil, fmt.Errorf("read routes of table %d (attempt %d): %w", table, attempt, err)
		}
		if err := sleep(ctx, time.Duration(attempt)*readPause); err != nil {
			return nil, err
		}
	}
}

func (r *rtnetlink) readOnce(table uint32) (*content, error) {
	c := &content{routes: make([]route, 0, r.routesBefore), hops: make([]hop, 0, r.hopsBefore), own: map[netip.Prefix]bool{}}
	implicit := false
	err := r.routes(table, unix.RTPROT_BGP, func(raw []byte) (err error) {
		var one route
		one, c.hops, err = parseRoute(raw, c.hops)
		if err != nil || one.table != table || one.protocol != unix.RTPROT_BGP {
			return err
		}
		c.routes = append(c.routes, one)
		implicit = implicit || one.object != 0 && one.first == one.end
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list routes of BGP: %w", err)
	}
	if implicit {
		if err := r.resolve(c); err != nil {
			return nil, err
		}
	}
	r.routesBefore, r.hopsBefore = len(c.routes), len(c.hops)
	return c, r.readOwn(c, table)
}

// readOwn adds the prefixes and addresses of the links that are routed by a table: the kernel has routes of its own for
// them, in the VRF's table, else in the tables main and local.
func (r *rtnetlink) readOwn(c *content, table uint32) error {
	tables := []uint32{table}
	if table == unix.RT_TABLE_MAIN {
		tables = append(tables, unix.RT_TABLE_LOCAL)
	}
	var hops []hop
	for _, t := range tables {
		err := r.routes(t, unix.RTPROT_KERNEL, func(raw []byte) error {
			one, all, err := parseRoute(raw, hops[:0])
			hops = all
			if err == nil && one.table == t && one.protocol == unix.RTPROT_KERNEL && one.dst.Bits() > 0 {
				c.own[one.dst] = true
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("list the node's own prefixes: %w", err)
		}
	}
	return nil
}

// resolve fills in the next hops of routes that only name a next-hop object, as they do if net.ipv4.nexthop_compat_mode
// is 0.
func (r *rtnetlink) resolve(c *content) error {
	all := objects{}
	err := r.ask(unix.RTM_GETNEXTHOP, unix.NLM_F_DUMP, make([]byte, nhmsgSize), func(raw []byte) error {
		o, err := parseObject(raw)
		all[o.id] = o
		return err
	})
	if err != nil {
		return fmt.Errorf("list next-hop objects: %w", err)
	}
	for i := range c.routes {
		one := &c.routes[i]
		if one.object == 0 || one.first != one.end {
			continue
		}
		var ok bool
		one.first = len(c.hops)
		c.hops, ok = all.ways(one.object, c.hops)
		one.end = len(c.hops)
		c.torn = c.torn || !ok // it came, or went, in between
	}
	return nil
}

// routes lists the routes of one table and protocol, IPv4 first.
func (r *rtnetlink) routes(table uint32, protocol byte, each func([]byte) error) error {
	for _, family := range []byte{unix.AF_INET, unix.AF_INET6} {
		header := make([]byte, unix.SizeofRtMsg)
		header[0], header[rtmProtocol] = family, protocol
		err := r.ask(unix.RTM_GETROUTE, unix.NLM_F_DUMP, header, each, nl.NewRtAttr(unix.RTA_TABLE, nl.Uint32Attr(table)))
		// A table that never had a route does not exist (ENOENT), nor does IPv6 everywhere.
		if err != nil && !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.EOPNOTSUPP) && !errors.Is(err, unix.EAFNOSUPPORT) {
			return err
		}
	}
	return nil
}

// namespace is the library's notation for a namespace: None is the calling thread's own.
func namespace(ns *netns.NsHandle) netns.NsHandle {
	if ns == nil {
		return netns.None()
	}
	return *ns
}

// sleep waits, unless ctx ends first.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
