// SPDX-License-Identifier: Apache-2.0

package routeimport

import (
	"syscall"
	"time"

	"github.com/ovn-uplink/ovn-uplink/shared/kernel/rtevents"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// receiveBuffer holds the events of tens of thousands of routes; the kernel's own default, 208 KiB, holds hundreds.
const receiveBuffer = 16 << 20

// subscribe has events written into a journal, and those that matter signalled. buffer is the size of the receive buffer
// in bytes.
func subscribe(ns *netns.NsHandle, buffer int, j *journal) (*rtevents.Subscription, error) {
	return rtevents.Subscribe(rtevents.Config{
		Namespace: ns, Buffer: buffer, Filter: onlyBGP,
		Groups: []uint{
			unix.RTNLGRP_LINK, unix.RTNLGRP_IPV4_IFADDR, unix.RTNLGRP_IPV6_IFADDR, unix.RTNLGRP_IPV4_ROUTE, unix.RTNLGRP_IPV6_ROUTE,
			unix.RTNLGRP_NEXTHOP, // of which kernels before 5.3 have none
		},
		Matters: func(messages []syscall.NetlinkMessage) (matters bool) {
			for _, m := range messages {
				matters = j.note(parseEvent(m.Header.Type, m.Data), time.Now()) || matters
			}
			return matters
		},
	})
}

// onlyBGP is a socket filter that drops the events of routes that are not BGP's, unless they replace another route, which
// may have been one: the kernel does not tell that it went.
var onlyBGP = []unix.SockFilter{
	{Code: rtevents.LoadHalf, K: rtevents.MessageType},
	{Code: rtevents.IfEqual, K: rtevents.Half(unix.RTM_NEWROUTE), Jt: 1},
	{Code: rtevents.IfEqual, K: rtevents.Half(unix.RTM_DELROUTE), Jt: 2, Jf: 4},
	{Code: rtevents.LoadHalf, K: rtevents.MessageFlags},
	{Code: rtevents.IfSet, K: rtevents.Half(unix.NLM_F_REPLACE), Jt: 2},
	{Code: rtevents.LoadByte, K: unix.NLMSG_HDRLEN + rtmProtocol},
	{Code: rtevents.IfEqual, K: unix.RTPROT_BGP, Jf: 1},
	{Code: rtevents.Answer, K: rtevents.All},
	{Code: rtevents.Answer, K: 0},
}
