// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"github.com/ovn-uplink/ovn-uplink/test/lab"
)

func hostPrefixes(of []netip.Addr) (out []netip.Prefix) {
	for _, a := range of {
		out = append(out, netip.PrefixFrom(a, a.BitLen()))
	}
	return out
}

// unused is an address of services that no service has: they are given out from the lower end.
func unused(cidr netip.Prefix) netip.Addr {
	raw := cidr.Addr().AsSlice()
	raw[len(raw)-2], raw[len(raw)-1] = 200, 200
	a, _ := netip.AddrFromSlice(raw)
	return a
}

// isRefused tells whether an error is an answer that says no, and not silence.
func isRefused(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }

// uploadSize is more than a window, so that the sender has to learn how large packets may be.
const uploadSize = 1 << 20

// upload sends from one machine to an address of another over TCP, and checks that all arrives.
func upload(ctx context.Context, from, to *lab.Node, at netip.Addr) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	var ln net.Listener
	err := to.Do(func() (err error) {
		ln, err = net.Listen("tcp", netip.AddrPortFrom(at, 0).String())
		return err
	})
	if err != nil {
		return err
	}
	defer func() { _ = ln.Close() }()
	received := make(chan int64, 1)
	go func() {
		defer close(received)
		conn, err := ln.Accept()
		if err != nil {
			return
		}
		n, _ := io.Copy(io.Discard, conn)
		_ = conn.Close()
		received <- n
	}()
	conn, err := from.Dial(ctx, "tcp", ln.Addr().(*net.TCPAddr).AddrPort())
	if err != nil {
		return fmt.Errorf("upload from %s to %s: %w", from.Name, at, err)
	}
	deadline, _ := ctx.Deadline()
	_ = conn.SetDeadline(deadline)
	_, err = conn.Write(make([]byte, uploadSize))
	err = errors.Join(err, conn.Close())
	select {
	case n := <-received:
		if err == nil && n != uploadSize {
			err = fmt.Errorf("%d bytes arrived", n)
		}
	case <-ctx.Done():
		err = errors.Join(err, ctx.Err())
	}
	if err != nil {
		return fmt.Errorf("upload from %s to %s: %w", from.Name, at, err)
	}
	return nil
}

// talk is one of several who ask the same server from equal ports, told apart by the size of what they say.
type talk struct {
	from   *lab.Node
	device string
	source netip.Addr
	size   int

	conn    net.Conn
	capture *lab.Capture
	answers int
}

func (l *talk) open(to netip.Addr, port uint16) (err error) {
	if l.capture, err = l.from.Capture(l.device); err != nil {
		return err
	}
	dialer := net.Dialer{LocalAddr: net.UDPAddrFromAddrPort(netip.AddrPortFrom(l.source, port)), Timeout: 5 * time.Second}
	return l.from.Do(func() (err error) {
		l.conn, err = dialer.Dial("udp", netip.AddrPortFrom(to, podEcho).String())
		return err
	})
}

// once asks and wants its own answer.
func (l *talk) once() error {
	buf := make([]byte, 2000)
	_ = l.conn.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := l.conn.Write(make([]byte, l.size)); err != nil {
		return fmt.Errorf("%s asks: %w", l.from.Name, err)
	}
	n, err := l.conn.Read(buf)
	if err != nil || n != l.size {
		return fmt.Errorf("%s said %d bytes and heard %d, %w", l.from.Name, l.size, n, err)
	}
	l.answers++
	return nil
}

// own checks that what arrived here is all that was asked for, and nothing of the others.
func (l *talk) own(all []*talk) error {
	const headers = 200 // at most, so that the sizes tell
	in := func(p lab.Packet) bool { return !p.Outgoing && p.Proto == lab.ProtoUDP && p.SrcPort == podEcho }
	sized := func(size int) lab.Filter {
		return func(p lab.Packet) bool { return in(p) && p.Length > size && p.Length < size+headers/2 }
	}
	var errs []error
	for _, other := range all {
		want := 0
		if other == l {
			want = l.answers
		}
		if got := l.capture.Count(sized(other.size)); got != want {
			errs = append(errs, fmt.Errorf("%s got %d answers to %s, want %d", l.from.Name, got, other.from.Name, want))
		}
	}
	return errors.Join(errs...)
}

func (l *talk) close() error { return errors.Join(l.conn.Close(), l.capture.Close()) }

// hostWatch are pings of hosts and connections of theirs that go on.
type hostWatch struct {
	f      *field
	names  []string
	series []*lab.PingSeries
	stop   context.CancelFunc
	work   sync.WaitGroup
	mu     sync.Mutex
	errs   []error
}

// watchHosts starts to ping 100 times a second from each host to the outside and back, in both families, and has a
// connection of each host carry data.
func (f *field) watchHosts() *hostWatch {
	f.t.Helper()
	ctx, cancel := context.WithCancel(f.t.Context())
	w := &hostWatch{f: f, stop: cancel}
	for _, p := range f.posts {
		for i, to := range clientAddresses {
			f.pings(p.host, to)
			f.pings(f.client, p.addresses[i])
			w.ping(p.host, to)
			w.ping(f.client, p.addresses[i])
			w.work.Go(func() { w.transfer(ctx, p.host, to) })
		}
	}
	w.settle()
	return w
}

func (w *hostWatch) ping(from *lab.Node, to netip.Addr) {
	w.f.t.Helper()
	s, err := from.PingSeries(to, 10*time.Millisecond)
	w.f.must(err)
	w.names, w.series = append(w.names, fmt.Sprintf("%s to %s", from.Name, to)), append(w.series, s)
}

// transfer sends small pieces over one connection until it is told to stop; each must come back.
func (w *hostWatch) transfer(ctx context.Context, from *lab.Node, to netip.Addr) {
	fail := func(err error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.errs = append(w.errs, fmt.Errorf("connection of %s to %s: %w", from.Name, to, err))
	}
	conn, server, err := w.f.connection(from, w.f.client, to)
	if err != nil {
		fail(err)
		return
	}
	defer func() { _, _ = conn.Close(), server.Close() }()
	buf := make([]byte, 1<<10)
	for ctx.Err() == nil {
		_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
		if _, err := conn.Write(buf); err != nil {
			fail(err)
			return
		}
		if _, err := io.ReadFull(conn, buf); err != nil {
			fail(err)
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// connection makes a TCP connection whose far end sends back what it gets.
func (f *field) connection(from, to *lab.Node, at netip.Addr) (near, far net.Conn, err error) {
	var ln net.Listener
	err = to.Do(func() (err error) {
		ln, err = net.Listen("tcp", netip.AddrPortFrom(at, 0).String())
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = ln.Close() }()
	ctx, cancel := context.WithTimeout(f.t.Context(), 10*time.Second)
	defer cancel()
	if near, err = from.Dial(ctx, "tcp", ln.Addr().(*net.TCPAddr).AddrPort()); err != nil {
		return nil, nil, err
	}
	if far, err = ln.Accept(); err != nil {
		return nil, nil, errors.Join(err, near.Close())
	}
	go func() { _, _ = io.Copy(far, far) }()
	return near, far, nil
}

// settle waits until every series has a hundred answers more.
func (w *hostWatch) settle() {
	w.f.t.Helper()
	for i, s := range w.series {
		before := s.Result().Received
		w.f.must(lab.Eventually(w.f.t.Context(), 20*time.Second, func(context.Context) error {
			if got := s.Result().Received - before; got < 100 {
				return fmt.Errorf("%s: %d answers", w.names[i], got)
			}
			return nil
		}))
	}
}

// unharmed ends the watch and checks that nothing was lost.
func (w *hostWatch) unharmed(when string) {
	w.f.t.Helper()
	w.settle()
	var results []string
	for i, s := range w.series {
		r := s.Stop(w.f.t.Context())
		results = append(results, w.names[i]+": "+r.String())
		if r.Lost() > 0 || r.Duplicates > 0 {
			w.f.t.Errorf("%s, pings from %s", when, results[i])
		}
	}
	w.stop()
	w.work.Wait()
	for _, err := range w.errs {
		w.f.t.Errorf("%s, %v", when, err)
	}
	w.f.t.Logf("%s: %v", when, results)
}
