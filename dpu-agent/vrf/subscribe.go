// SPDX-License-Identifier: Apache-2.0

package vrf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// receiveBuffer holds the events of thousands of routes.
const receiveBuffer = 8 << 20

// subscription tells that links, addresses or routes changed; not what, so that nothing is lost with an event.
type subscription struct {
	events <-chan struct{}
	// lost holds the error that ended it.
	lost <-chan error
	// close ends it and waits until it has ended.
	close func()
}

func subscribe() (*subscription, error) {
	socket, err := nl.Subscribe(unix.NETLINK_ROUTE, unix.RTNLGRP_LINK, unix.RTNLGRP_IPV4_IFADDR, unix.RTNLGRP_IPV6_IFADDR,
		unix.RTNLGRP_IPV4_ROUTE, unix.RTNLGRP_IPV6_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("subscribe to rtnetlink: %w", err)
	}
	// The first needs CAP_NET_ADMIN; with less of a buffer events are lost earlier, which is answered by a new look.
	err = socket.SetReceiveBufferSize(receiveBuffer, true)
	if err != nil {
		err = socket.SetReceiveBufferSize(receiveBuffer, false)
	}
	if err = errors.Join(err, onlyCarried(socket.GetFd())); err != nil {
		_ = socket.Close()
		return nil, fmt.Errorf("subscribe to rtnetlink: %w", err)
	}
	events, lost, ended := make(chan struct{}, 1), make(chan error, 1), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			if _, _, err := socket.Receive(); err != nil {
				lost <- err
				return
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

// onlyCarried attaches a socket filter that drops the events of routes with owners of their own, of which there may
// be a full table.
func onlyCarried(fd int) error {
	const (
		loadHalf = unix.BPF_LD | unix.BPF_H | unix.BPF_ABS
		loadByte = unix.BPF_LD | unix.BPF_B | unix.BPF_ABS
		ifEqual  = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		answer   = unix.BPF_RET | unix.BPF_K
	)
	n := uint8(len(ownedProtocols))
	program := []unix.SockFilter{
		{Code: loadHalf, K: 4}, // nlmsghdr.nlmsg_type
		{Code: ifEqual, K: loadedHalf(unix.RTM_NEWROUTE), Jt: 1},
		{Code: ifEqual, K: loadedHalf(unix.RTM_DELROUTE), Jf: n + 1},
		{Code: loadByte, K: unix.NLMSG_HDRLEN + rtmProtocol},
	}
	for i, protocol := range ownedProtocols {
		program = append(program, unix.SockFilter{Code: ifEqual, K: uint32(protocol), Jt: n - uint8(i)})
	}
	program = append(program, unix.SockFilter{Code: answer, K: 0xffffffff}, unix.SockFilter{Code: answer, K: 0})
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
