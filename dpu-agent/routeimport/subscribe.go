// SPDX-License-Identifier: Apache-2.0

package routeimport

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"time"

	"github.com/vishvananda/netlink/nl"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// receiveBuffer holds the events of tens of thousands of routes; the kernel's own default, 208 KiB, holds hundreds.
const receiveBuffer = 16 << 20

// subscription writes events into a journal.
type subscription struct {
	// events holds one signal for any number of events that matter since it was last read.
	events <-chan struct{}
	// lost holds the error that ended the subscription.
	lost <-chan error
	// pending tells whether there are events that are not in the journal yet.
	pending func() bool
	// close ends it and waits until it has ended.
	close func()
}

// subscribe opens one socket for all that is watched, so that it breaks as a whole or not at all. buffer is the size of
// its receive buffer in bytes.
func subscribe(ns *netns.NsHandle, buffer int, j *journal) (*subscription, error) {
	socket, err := nl.SubscribeAt(namespace(ns), netns.None(), unix.NETLINK_ROUTE, unix.RTNLGRP_LINK,
		unix.RTNLGRP_IPV4_IFADDR, unix.RTNLGRP_IPV6_IFADDR, unix.RTNLGRP_IPV4_ROUTE, unix.RTNLGRP_IPV6_ROUTE,
		unix.RTNLGRP_NEXTHOP) // of which kernels before 5.3 have none
	if err != nil {
		return nil, fmt.Errorf("subscribe to rtnetlink: %w", err)
	}
	// The first needs CAP_NET_ADMIN; with less of a buffer events are lost earlier, which is answered by reading anew.
	err = socket.SetReceiveBufferSize(buffer, true)
	if err != nil {
		err = socket.SetReceiveBufferSize(buffer, false)
	}
	if err = errors.Join(err, onlyBGP(socket.GetFd())); err != nil {
		_ = socket.Close()
		return nil, fmt.Errorf("subscribe to rtnetlink: %w", err)
	}
	events, lost, ended := make(chan struct{}, 1), make(chan error, 1), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			messages, from, err := socket.Receive()
			if err != nil {
				lost <- err
				return
			}
			if from.Pid != nl.PidKernel {
				continue
			}
			matters := false
			for _, m := range messages {
				matters = j.note(parseEvent(m.Header.Type, m.Data), time.Now()) || matters
			}
			if !matters {
				continue
			}
			select {
			case events <- struct{}{}:
			default:
			}
		}
	}()
	return &subscription{events: events, lost: lost,
		pending: func() bool {
			n, err := unix.Poll([]unix.PollFd{{Fd: int32(socket.GetFd()), Events: unix.POLLIN}}, 0)
			return err != nil || n > 0
		},
		close: func() {
			_ = socket.Close()
			<-ended
		},
	}, nil
}

// onlyBGP attaches a socket filter that drops the events of routes that are not BGP's, unless they replace another
// route, which may have been one: the kernel does not tell that it went.
func onlyBGP(fd int) error {
	const (
		// Offsets into a message: nlmsghdr.nlmsg_type and nlmsg_flags, and rtmsg.rtm_protocol behind the 16 bytes of
		// nlmsghdr.
		messageType, messageFlags, protocol = 4, 6, unix.NLMSG_HDRLEN + rtmProtocol

		loadHalf = unix.BPF_LD | unix.BPF_H | unix.BPF_ABS
		loadByte = unix.BPF_LD | unix.BPF_B | unix.BPF_ABS
		ifEqual  = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		ifSet    = unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K
		answer   = unix.BPF_RET | unix.BPF_K
	)
	program := []unix.SockFilter{
		{Code: loadHalf, K: messageType},
		{Code: ifEqual, K: loadedHalf(unix.RTM_NEWROUTE), Jt: 1},
		{Code: ifEqual, K: loadedHalf(unix.RTM_DELROUTE), Jt: 2, Jf: 4},
		{Code: loadHalf, K: messageFlags},
		{Code: ifSet, K: loadedHalf(unix.NLM_F_REPLACE), Jt: 2},
		{Code: loadByte, K: protocol},
		{Code: ifEqual, K: unix.RTPROT_BGP, Jf: 1},
		{Code: answer, K: 0xffffffff},
		{Code: answer, K: 0},
	}
	return unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER,
		&unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]})
}

// loadedHalf is how a 16-bit value in the machine's byte order looks to a socket filter, which loads in network byte
// order.
func loadedHalf(v uint16) uint32 {
	if binary.NativeEndian.Uint16([]byte{0, 1}) == 1 {
		return uint32(v)
	}
	return uint32(bits.ReverseBytes16(v))
}
