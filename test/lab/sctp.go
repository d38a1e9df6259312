// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// NeedSCTP skips a test that sends SCTP where the kernel has none.
func NeedSCTP(t testing.TB) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, unix.IPPROTO_SCTP)
	if err != nil {
		t.Skipf("skipped: the kernel has no SCTP: %v", err)
	}
	_ = unix.Close(fd)
}

// sctpSocket makes a socket inside the node.
func (n *Node) sctpSocket(family int, use func(fd int) error) (int, error) {
	fd := -1
	err := n.Do(func() error {
		var err error
		if fd, err = unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, unix.IPPROTO_SCTP); err != nil {
			return err
		}
		if err = use(fd); err != nil {
			_ = unix.Close(fd)
		}
		return err
	})
	return fd, err
}

// StartSCTPEcho starts a server that sends back the first message of each
// association.
func (n *Node) StartSCTPEcho(at netip.AddrPort) (*Server, error) {
	family, sockaddr := sockaddrOf(at)
	fd, err := n.sctpSocket(family, func(fd int) error {
		if err := unix.Bind(fd, sockaddr); err != nil {
			return err
		}
		return unix.Listen(fd, 16)
	})
	if err != nil {
		return nil, fmt.Errorf("start SCTP server on %s: %w", n.Name, err)
	}
	s := &Server{Addr: at}
	stop := make(chan struct{})
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, ok := acceptUntil(fd, stop)
			if !ok {
				return
			}
			s.served.Add(1)
			echoOnce(conn)
			_ = unix.Close(conn)
		}
	})
	s.close = func() error {
		close(stop)
		serving.Wait()
		return unix.Close(fd)
	}
	n.lab.own(s)
	return s, nil
}

// acceptUntil accepts an association, or returns false once stop is closed.
func acceptUntil(fd int, stop <-chan struct{}) (int, bool) {
	for {
		select {
		case <-stop:
			return -1, false
		default:
		}
		ready, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 50)
		if err != nil || ready == 0 {
			continue
		}
		if conn, _, err := unix.Accept4(fd, unix.SOCK_CLOEXEC); err == nil {
			return conn, true
		}
	}
}

// echoOnce sends one message back. A failure shows at the client.
func echoOnce(fd int) {
	wait := unix.NsecToTimeval(requestDeadline.Nanoseconds())
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &wait); err != nil {
		return
	}
	buf := make([]byte, 1<<16)
	if size, err := unix.Read(fd, buf); err == nil {
		_, _ = unix.Write(fd, buf[:size])
	}
}

// EchoSCTP makes an association with an SCTP echo server, sends a message and
// waits for it to come back.
func (n *Node) EchoSCTP(ctx context.Context, to netip.AddrPort, size int) error {
	ctx, cancel := withDeadline(ctx)
	defer cancel()
	deadline, _ := ctx.Deadline()
	family, sockaddr := sockaddrOf(to)
	fd, err := n.sctpSocket(family, func(fd int) error {
		wait := unix.NsecToTimeval(max(time.Until(deadline), time.Millisecond).Nanoseconds())
		if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &wait); err != nil {
			return err
		}
		return unix.Connect(fd, sockaddr)
	})
	if err != nil {
		return fmt.Errorf("SCTP from %s to %s: %w", n.Name, to, err)
	}
	file := os.NewFile(uintptr(fd), "sctp")
	conn, err := net.FileConn(file)
	_ = file.Close()
	if err != nil {
		return fmt.Errorf("SCTP from %s to %s: %w", n.Name, to, err)
	}
	if err := echo(ctx, conn, size); err != nil {
		return fmt.Errorf("SCTP from %s to %s: %w", n.Name, to, err)
	}
	return nil
}

func sockaddrOf(a netip.AddrPort) (family int, sockaddr unix.Sockaddr) {
	if a.Addr().Unmap().Is4() {
		return unix.AF_INET, &unix.SockaddrInet4{Port: int(a.Port()), Addr: a.Addr().Unmap().As4()}
	}
	return unix.AF_INET6, &unix.SockaddrInet6{Port: int(a.Port()), Addr: a.Addr().As16()}
}
