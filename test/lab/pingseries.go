// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// replyGrace is how long the last echo requests of a series may take to be
// answered.
const replyGrace = time.Second

// pingMark is in every request of a series, with the series' own number.
const pingMark = "ovn-uplink-lab"

var pingNumber atomic.Uint64

// PingResult says what became of a series of echo requests.
type PingResult struct {
	Sent     int
	Received int
	// Duplicates are further answers to a request that was answered.
	Duplicates int
	// Unsent are requests that the kernel refused, for want of a route or
	// of a neighbour's address. They are among Sent.
	Unsent int
	// LongestGap is the longest time between two requests, in the order in
	// which they were sent, that were answered and between which none was;
	// with the time before the first and after the last answered one.
	LongestGap time.Duration
}

// Lost is the number of requests without an answer.
func (r PingResult) Lost() int { return r.Sent - r.Received }

func (r PingResult) String() string {
	return fmt.Sprintf("%d sent, %d lost, %d not sent, %d answered twice, longest gap %s",
		r.Sent, r.Lost(), r.Unsent, r.Duplicates, r.LongestGap.Round(time.Millisecond))
}

// PingSeries is a running series of ICMP echo requests.
type PingSeries struct {
	conn   net.PacketConn
	to     netip.Addr
	every  time.Duration
	number uint64
	stop   chan struct{}
	once   sync.Once
	work   sync.WaitGroup

	mu      sync.Mutex
	sent    []time.Time // by sequence number
	answers []int
	unsent  int
}

// PingSeries starts to send echo requests from the node, one every so often;
// 10 ms is a good rate for measuring an interruption. It goes on until Stop,
// or until the lab ends.
func (n *Node) PingSeries(to netip.Addr, every time.Duration) (*PingSeries, error) {
	s := &PingSeries{to: to, every: every, number: pingNumber.Add(1), stop: make(chan struct{})}
	proto, any := "ip4:icmp", "0.0.0.0"
	if to.Is6() {
		proto, any = "ip6:ipv6-icmp", "::"
	}
	err := n.Do(func() (err error) {
		if s.conn, err = net.ListenPacket(proto, any); err != nil {
			return err
		}
		return roomy(s.conn)
	})
	if err != nil {
		return nil, fmt.Errorf("ping %s from %s: %w", to, n.Name, err)
	}
	s.work.Go(s.send)
	s.work.Go(s.receive)
	n.lab.own(s)
	return s, nil
}

// roomy gives a socket a receive buffer that holds what comes while this process has to wait for its turn: a raw one
// gets all ICMP of its namespace.
func roomy(conn net.PacketConn) error {
	raw, err := conn.(syscall.Conn).SyscallConn()
	if err != nil {
		return err
	}
	var set error
	err = raw.Control(func(fd uintptr) {
		set = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, captureBuffer)
	})
	return errors.Join(err, set)
}

// Stop ends the series, waits up to a second for the last answers, and
// returns what became of it.
func (s *PingSeries) Stop(ctx context.Context) PingResult {
	s.end()
	// Whether all were answered is what the result says.
	_ = Eventually(ctx, replyGrace, func(context.Context) error {
		if r := s.Result(); r.Lost() > r.Unsent {
			return errors.New("not all answered")
		}
		return nil
	})
	_ = s.Close()
	return s.Result()
}

// end has no more requests sent.
func (s *PingSeries) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.once.Do(func() { close(s.stop) })
}

// Close ends the series without waiting for answers.
func (s *PingSeries) Close() error {
	s.end()
	err := s.conn.Close()
	s.work.Wait()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

func (s *PingSeries) send() {
	tick := time.NewTicker(s.every)
	defer tick.Stop()
	for {
		s.mu.Lock()
		select {
		case <-s.stop: // the socket may be closed by now
			s.mu.Unlock()
			return
		default:
		}
		seq := len(s.sent)
		s.sent, s.answers = append(s.sent, time.Now()), append(s.answers, 0)
		s.mu.Unlock()
		if _, err := s.conn.WriteTo(s.request(seq), &net.IPAddr{IP: s.to.AsSlice()}); err != nil {
			s.mu.Lock()
			s.unsent++
			s.mu.Unlock()
		}
		select {
		case <-s.stop:
			return
		case <-tick.C:
		}
	}
}

// request is an echo request, RFC 792 and RFC 4443, whose payload holds the
// mark, the series' number and the whole sequence number.
func (s *PingSeries) request(seq int) []byte {
	b := []byte{8, 0, 0, 0}
	if s.to.Is6() {
		b[0] = 128
	}
	b = binary.BigEndian.AppendUint16(b, uint16(s.number))
	b = binary.BigEndian.AppendUint16(b, uint16(seq))
	b = append(b, pingMark...)
	b = binary.BigEndian.AppendUint64(b, s.number)
	b = binary.BigEndian.AppendUint64(b, uint64(seq))
	if s.to.Is4() { // the kernel does it for IPv6
		binary.BigEndian.PutUint16(b[2:], checksum(b))
	}
	return b
}

// checksum is the Internet's, RFC 1071.
func checksum(b []byte) uint16 {
	var sum uint32
	for ; len(b) >= 2; b = b[2:] {
		sum += uint32(binary.BigEndian.Uint16(b))
	}
	if len(b) == 1 {
		sum += uint32(b[0]) << 8
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}

func (s *PingSeries) receive() {
	buf := make([]byte, 2048)
	for {
		size, _, err := s.conn.ReadFrom(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil || size < 8 || (buf[0] != 0 && buf[0] != 129) {
			continue // not an echo reply
		}
		rest, ok := bytes.CutPrefix(buf[8:size], []byte(pingMark))
		if !ok || len(rest) != 16 || binary.BigEndian.Uint64(rest) != s.number {
			continue
		}
		seq := binary.BigEndian.Uint64(rest[8:])
		s.mu.Lock()
		if seq < uint64(len(s.answers)) {
			s.answers[seq]++
		}
		s.mu.Unlock()
	}
}

// Result is what became of the requests so far. Those whose answer is on its
// way count as lost.
func (s *PingSeries) Result() PingResult {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := PingResult{Sent: len(s.sent), Unsent: s.unsent}
	if r.Sent == 0 {
		return r
	}
	last := s.sent[0]
	for i, n := range s.answers {
		if n == 0 && i < len(s.answers)-1 {
			continue
		}
		r.LongestGap = max(r.LongestGap, s.sent[i].Sub(last))
		last = s.sent[i]
		if n > 0 {
			r.Received++
			r.Duplicates += n - 1
		}
	}
	return r
}
