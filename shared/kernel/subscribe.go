// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"github.com/ovn-uplink/ovn-uplink/shared/kernel/rtevents"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// subscribe watches links, addresses, next-hop objects and default routes. buffer is the size of the receive buffer in
// bytes.
func subscribe(ns *netns.NsHandle, buffer int) (*rtevents.Subscription, error) {
	return rtevents.Subscribe(rtevents.Config{
		Namespace: ns, Buffer: buffer, Filter: onlyDefaultRoutes,
		Groups: []uint{
			unix.RTNLGRP_LINK, unix.RTNLGRP_IPV4_IFADDR, unix.RTNLGRP_IPV6_IFADDR, unix.RTNLGRP_IPV4_ROUTE, unix.RTNLGRP_IPV6_ROUTE,
			// Routes go with their next-hop object, of which alone the kernel tells. Kernels before 5.3 have none.
			unix.RTNLGRP_NEXTHOP,
		},
	})
}

// dstLength is the offset of rtmsg.rtm_dst_len.
const dstLength = unix.NLMSG_HDRLEN + 1

// onlyDefaultRoutes is a socket filter that drops the events of all other routes: a routing daemon that loads a full
// table neither fills the buffer nor causes reads. (FRR filters its netlink sockets the same way.)
var onlyDefaultRoutes = []unix.SockFilter{
	{Code: rtevents.LoadHalf, K: rtevents.MessageType},
	{Code: rtevents.IfEqual, K: rtevents.Half(unix.RTM_NEWROUTE), Jt: 1},
	{Code: rtevents.IfEqual, K: rtevents.Half(unix.RTM_DELROUTE), Jf: 2},
	{Code: rtevents.LoadByte, K: dstLength},
	{Code: rtevents.IfEqual, K: 0, Jf: 1},
	{Code: rtevents.Answer, K: rtevents.All},
	{Code: rtevents.Answer, K: 0},
}
