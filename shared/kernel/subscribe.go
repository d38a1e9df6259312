// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"fmt"
	"math/bits"

	"github.com/vishvananda/netlink/nl"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// subscription tells that links, addresses, next-hop objects or default routes changed. It does not say what: whoever gets a
// signal reads everything again, so that no signal can be lost that matters.
type subscription struct {
	// events holds one signal for any number of changes since it was last read.
	events <-chan struct{}
	// lost holds the error that ended the subscription. Nothing is signalled after it.
	lost <-chan error
	// close ends it and waits until it has ended.
	close func()
}

// subscribe opens one socket for all that is watched, so that it breaks as a whole or not at all. buffer is
// the size of its receive buffer in bytes.
func subscribe(ns *netns.NsHandle, buffer int) (*subscription, error) {
	socket, err := nl.SubscribeAt(namespace(ns), netns.None(), unix.NETLINK_ROUTE, unix.RTNLGRP_LINK,
		unix.RTNLGRP_IPV4_IFADDR, unix.RTNLGRP_IPV6_IFADDR, unix.RTNLGRP_IPV4_ROUTE, unix.RTNLGRP_IPV6_ROUTE,
		// Routes go with their next-hop object, of which alone the kernel tells. Kernels before 5.3 have none.
		unix.RTNLGRP_NEXTHOP)
	if err != nil {
		return nil, fmt.Errorf("subscribe to rtnetlink: %w", err)
	}
	// SO_RCVBUFFORCE needs CAP_NET_ADMIN. Without it the buffer is what net.core.rmem_max allows, and it
	// overflows earlier; an overflow is answered by a new subscription and a new read.
	if err := socket.SetReceiveBufferSize(buffer, true); err != nil {
		err = socket.SetReceiveBufferSize(buffer, false)
		if err != nil {
			_ = socket.Close()
			return nil, fmt.Errorf("set the receive buffer of rtnetlink: %w", err)
		}
	}
	if err := onlyDefaultRoutes(socket.GetFd()); err != nil {
		_ = socket.Close()
		return nil, fmt.Errorf("filter the events of rtnetlink: %w", err)
	}

	events, lost, ended := make(chan struct{}, 1), make(chan error, 1), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			_, from, err := socket.Receive()
			if err != nil {
				lost <- err
				return
			}
			if from.Pid != nl.PidKernel {
				continue
			}
			select {
			case events <- struct{}{}:
			default:
			}
		}
	}()
	return &subscription{events: events, lost: lost, close: func() {
		_ = socket.Close()
		<-ended
	}}, nil
}

// onlyDefaultRoutes attaches a socket filter that drops the events of all other routes: a routing daemon that
// loads a full table neither fills the buffer nor causes reads. (FRR filters its netlink sockets the same way.)
func onlyDefaultRoutes(fd int) error {
	const (
		// Offsets into a message: nlmsghdr.nlmsg_type, and rtmsg.rtm_dst_len behind the 16 bytes of nlmsghdr.
		messageType = 4
		dstLength   = unix.NLMSG_HDRLEN + 1

		loadHalf = unix.BPF_LD | unix.BPF_H | unix.BPF_ABS
		loadByte = unix.BPF_LD | unix.BPF_B | unix.BPF_ABS
		ifEqual  = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		answer   = unix.BPF_RET | unix.BPF_K
		all      = 0xffffffff
	)
	program := []unix.SockFilter{
		{Code: loadHalf, K: messageType},
		{Code: ifEqual, K: loadedHalf(unix.RTM_NEWROUTE), Jt: 1},
		{Code: ifEqual, K: loadedHalf(unix.RTM_DELROUTE), Jf: 2},
		{Code: loadByte, K: dstLength},
		{Code: ifEqual, K: 0, Jf: 1},
		{Code: answer, K: all},
		{Code: answer, K: 0},
	}
	return unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER,
		&unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]})
}

// loadedHalf is how a 16-bit value in the machine's byte order looks to a socket filter, which loads in
// network byte order.
func loadedHalf(v uint16) uint32 {
	if nl.NativeEndian().Uint16([]byte{0, 1}) == 1 {
		return uint32(v)
	}
	return uint32(bits.ReverseBytes16(v))
}
