// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// listen listens at a place that may be in a VRF: sockets that are bound to none do not see its addresses (Linux,
// Documentation/networking/vrf.rst).
func (h *Health) listen(at listenAt) (net.Listener, error) {
	config := net.ListenConfig{KeepAlive: -1}
	if at.place.Device != "" {
		config.Control = func(_, _ string, c syscall.RawConn) (err error) {
			if failed := c.Control(func(fd uintptr) { err = unix.BindToDevice(int(fd), at.place.Device) }); failed != nil {
				return failed
			}
			return err
		}
	}
	address := netip.AddrPortFrom(at.place.Address, at.port)
	l, err := config.Listen(context.Background(), "tcp", address.String())
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", address, err)
	}
	return &bounded{l, at, h.slots}, nil
}

// bounded is a listener that hangs up at once while too many connections are open on all listeners together.
type bounded struct {
	net.Listener
	at    listenAt
	slots chan struct{} // taken ones
}

// Accept implements net.Listener.
func (b *bounded) Accept() (net.Conn, error) {
	for {
		c, err := b.Listener.Accept()
		if err != nil {
			return nil, err
		}
		select {
		case b.slots <- struct{}{}:
			return &slotted{Conn: c, free: sync.OnceFunc(func() { <-b.slots })}, nil
		default:
			_ = c.Close()
		}
	}
}

// slotted gives its place back when it is closed.
type slotted struct {
	net.Conn
	free func()
}

// Close implements net.Conn.
func (s *slotted) Close() error {
	defer s.free()
	return s.Conn.Close()
}
