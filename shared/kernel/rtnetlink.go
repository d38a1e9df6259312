// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"errors"
	"fmt"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// requestTimeout is how long the kernel may take to go on with an answer.
const requestTimeout = 5 * time.Second

// rtextFilterSkipStats is RTEXT_FILTER_SKIP_STATS of linux/rtnetlink.h.
const rtextFilterSkipStats = 1 << 3

// rtnetlink lists what there is in one network namespace.
type rtnetlink struct {
	handle *netlink.Handle
	// socket is for the requests that the library has no fitting call for.
	socket *nl.NetlinkSocket
}

func openRtnetlink(ns *netns.NsHandle) (*rtnetlink, error) {
	at := namespace(ns)
	handle, err := netlink.NewHandleAt(at, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("open rtnetlink: %w", err)
	}
	r := &rtnetlink{handle: handle}
	if err := handle.SetSocketTimeout(requestTimeout); err != nil {
		r.close()
		return nil, fmt.Errorf("set the timeout of rtnetlink: %w", err)
	}
	// Makes the kernel filter dumps of routes by table. Kernels before 4.20 do not know it; the library
	// filters again itself.
	_ = handle.SetStrictCheck(true)

	if r.socket, err = nl.GetNetlinkSocketAt(at, netns.None(), unix.NETLINK_ROUTE); err != nil {
		r.close()
		return nil, fmt.Errorf("open rtnetlink: %w", err)
	}
	timeout := unix.NsecToTimeval(requestTimeout.Nanoseconds())
	if err := errors.Join(r.socket.SetReceiveTimeout(&timeout), r.socket.SetSendTimeout(&timeout)); err != nil {
		r.close()
		return nil, fmt.Errorf("set the timeout of rtnetlink: %w", err)
	}
	return r, nil
}

func (r *rtnetlink) close() {
	_ = r.handle.Close()
	if r.socket != nil {
		_ = r.socket.Close()
	}
}

// links asks for no virtual functions and no counters, as netlink.LinkList does: drivers get these from the
// card's firmware, one command after the other, and with many functions they do not fit one message.
func (r *rtnetlink) links() ([]Link, error) {
	req := nl.NewNetlinkRequest(unix.RTM_GETLINK, unix.NLM_F_DUMP)
	req.Sockets = map[int]*nl.SocketHandle{unix.NETLINK_ROUTE: {Socket: r.socket, Seq: req.Seq}}
	req.AddData(nl.NewIfInfomsg(unix.AF_UNSPEC))
	req.AddData(nl.NewRtAttr(unix.IFLA_EXT_MASK, nl.Uint32Attr(rtextFilterSkipStats)))
	messages, err := req.Execute(unix.NETLINK_ROUTE, unix.RTM_NEWLINK)
	if err != nil {
		return nil, late(err)
	}
	links := make([]Link, 0, len(messages))
	for _, m := range messages {
		l, err := netlink.LinkDeserialize(nil, m)
		if err != nil {
			return nil, fmt.Errorf("decode a link: %w", err)
		}
		links = append(links, linkOf(l))
	}
	return links, nil
}

func (r *rtnetlink) addrs() ([]Addr, error) {
	all, err := r.handle.AddrList(nil, unix.AF_UNSPEC)
	if err != nil {
		return nil, late(err)
	}
	addrs := make([]Addr, 0, len(all))
	for _, a := range all {
		if addr, ok := addrOf(a); ok {
			addrs = append(addrs, addr)
		}
	}
	return addrs, nil
}

func (r *rtnetlink) defaults(table uint32) ([]Route, error) {
	var routes []Route
	for _, family := range []int{unix.AF_INET, unix.AF_INET6} {
		// The kernel filters dumps by table, not by destination. Never by outgoing link: that hides
		// multipath routes, and IPv6 ones of a single next hop too.
		filter := &netlink.Route{Table: int(table)}
		err := r.handle.RouteListFilteredIter(family, filter, netlink.RT_FILTER_TABLE, func(route netlink.Route) bool {
			if d, ok := defaultRoute(route); ok {
				routes = append(routes, d)
			}
			return true
		})
		// A table that never had a route does not exist (ENOENT), nor does IPv6 everywhere.
		if err != nil && !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.EOPNOTSUPP) && !errors.Is(err, unix.EAFNOSUPPORT) {
			return nil, late(err)
		}
	}
	return routes, nil
}

// late names the error with which the library reports that a deadline passed.
func late(err error) error {
	if errors.Is(err, unix.EAGAIN) {
		return fmt.Errorf("no answer within %s: %w", requestTimeout, err)
	}
	return err
}

// namespace is the library's notation for a namespace: None is the calling thread's own.
func namespace(ns *netns.NsHandle) netns.NsHandle {
	if ns == nil {
		return netns.None()
	}
	return *ns
}
