// SPDX-License-Identifier: Apache-2.0

package vrf

import (
	"github.com/ovn-uplink/ovn-uplink/shared/kernel/rtevents"
	"golang.org/x/sys/unix"
)

// receiveBuffer holds the events of thousands of routes.
const receiveBuffer = 8 << 20

// subscribe watches links, addresses and routes.
func subscribe() (*rtevents.Subscription, error) {
	return rtevents.Subscribe(rtevents.Config{
		Buffer: receiveBuffer, Filter: onlyCarried(),
		Groups: []uint{
			unix.RTNLGRP_LINK, unix.RTNLGRP_IPV4_IFADDR, unix.RTNLGRP_IPV6_IFADDR, unix.RTNLGRP_IPV4_ROUTE, unix.RTNLGRP_IPV6_ROUTE,
		},
	})
}

// onlyCarried is a socket filter that drops the events of routes with owners of their own, of which there may be a full
// table.
func onlyCarried() []unix.SockFilter {
	n := uint8(len(ownedProtocols))
	program := []unix.SockFilter{
		{Code: rtevents.LoadHalf, K: rtevents.MessageType},
		{Code: rtevents.IfEqual, K: rtevents.Half(unix.RTM_NEWROUTE), Jt: 1},
		{Code: rtevents.IfEqual, K: rtevents.Half(unix.RTM_DELROUTE), Jf: n + 1},
		{Code: rtevents.LoadByte, K: unix.NLMSG_HDRLEN + rtmProtocol},
	}
	for i, protocol := range ownedProtocols {
		program = append(program, unix.SockFilter{Code: rtevents.IfEqual, K: uint32(protocol), Jt: n - uint8(i)})
	}
	return append(program, unix.SockFilter{Code: rtevents.Answer, K: rtevents.All}, unix.SockFilter{Code: rtevents.Answer, K: 0})
}
