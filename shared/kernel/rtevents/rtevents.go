// SPDX-License-Identifier: Apache-2.0

// Package rtevents subscribes to the events of rtnetlink(7). It says that something changed, not what: whoever gets a
// signal reads anew, so that no event can be lost that matters.
package rtevents

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"syscall"

	"github.com/vishvananda/netlink/nl"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// Config says what to subscribe to.
type Config struct {
	// Namespace is the network namespace to watch, nil for the process's own.
	Namespace *netns.NsHandle
	// Groups are RTNLGRP_ numbers. One socket is for all, so that it breaks as a whole or not at all.
	Groups []uint
	// Buffer is the size of the receive buffer in bytes. Without CAP_NET_ADMIN it is what net.core.rmem_max allows, and
	// overflows earlier; an overflow ends the subscription.
	Buffer int
	// Filter is a socket filter, not an empty one, that drops the events of no interest before they take room in the buffer.
	Filter []unix.SockFilter
	// Matters looks at messages before they are signalled and says whether they are to be; nil for all.
	Matters func([]syscall.NetlinkMessage) bool
}

// Subscription is one socket of rtnetlink.
type Subscription struct {
	// Events holds one signal for any number of events since it was last read.
	Events <-chan struct{}
	// Lost holds the error that ended the subscription. Nothing is signalled after it.
	Lost <-chan error
	// Pending tells whether the kernel has sent events that were not looked at yet.
	Pending func() bool
	// Close ends it and waits until it has ended.
	Close func()
}

// Subscribe opens a subscription.
func Subscribe(c Config) (*Subscription, error) {
	at := netns.None()
	if c.Namespace != nil {
		at = *c.Namespace
	}
	socket, err := nl.SubscribeAt(at, netns.None(), unix.NETLINK_ROUTE, c.Groups...)
	if err != nil {
		return nil, fmt.Errorf("subscribe to rtnetlink: %w", err)
	}
	if err = socket.SetReceiveBufferSize(c.Buffer, true); err != nil {
		err = socket.SetReceiveBufferSize(c.Buffer, false)
	}
	filter := &unix.SockFprog{Len: uint16(len(c.Filter)), Filter: &c.Filter[0]}
	if err = errors.Join(err, unix.SetsockoptSockFprog(socket.GetFd(), unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, filter)); err != nil {
		_ = socket.Close()
		return nil, fmt.Errorf("subscribe to rtnetlink: set buffer and filter: %w", err)
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
			if from.Pid != nl.PidKernel || c.Matters != nil && !c.Matters(messages) {
				continue
			}
			select {
			case events <- struct{}{}:
			default:
			}
		}
	}()
	return &Subscription{
		Events: events, Lost: lost,
		Pending: func() bool {
			n, err := unix.Poll([]unix.PollFd{{Fd: int32(socket.GetFd()), Events: unix.POLLIN}}, 0)
			return err != nil || n > 0
		},
		Close: func() {
			_ = socket.Close()
			<-ended
		},
	}, nil
}

// The instructions of socket filters, bpf(4).
const (
	LoadHalf = unix.BPF_LD | unix.BPF_H | unix.BPF_ABS
	LoadByte = unix.BPF_LD | unix.BPF_B | unix.BPF_ABS
	IfEqual  = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
	IfSet    = unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K
	Answer   = unix.BPF_RET | unix.BPF_K
)

// What filters of messages look at and answer.
const (
	// MessageType is the offset of nlmsghdr.nlmsg_type.
	MessageType = 4
	// MessageFlags is the offset of nlmsghdr.nlmsg_flags.
	MessageFlags = 6
	// All passes a message whole.
	All = 0xffffffff
)

// Half is how a 16-bit value in the machine's byte order looks to a socket filter, which loads in network byte order.
func Half(v uint16) uint32 {
	if binary.NativeEndian.Uint16([]byte{0, 1}) == 1 {
		return uint32(v)
	}
	return uint32(bits.ReverseBytes16(v))
}
