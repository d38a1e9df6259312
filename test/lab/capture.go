// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// captureBuffer is the socket's receive buffer in bytes.
const captureBuffer = 16 << 20

// Capture collects the frames of one interface, in both directions.
type Capture struct {
	name string
	fd   int
	stop chan struct{}
	once sync.Once
	work sync.WaitGroup

	mu      sync.Mutex
	frame   [1 << 16]byte
	beside  [128]byte
	closed  bool
	packets []Packet
	dropped int
}

// Capture starts to collect the frames that pass an interface of the node, pod
// or external machine. It goes on until Close, or until the lab ends.
func (n *Node) Capture(device string) (*Capture, error) {
	c := &Capture{name: n.Name + "/" + device, stop: make(chan struct{})}
	if err := n.Do(func() error { return c.open(device) }); err != nil {
		return nil, fmt.Errorf("capture %s: %w", c.name, err)
	}
	c.work.Go(c.read)
	n.lab.own(c)
	return c, nil
}

func (c *Capture) open(device string) error {
	link, err := net.InterfaceByName(device)
	if err != nil {
		return err
	}
	// Protocol 0: nothing comes in before the socket is bound.
	c.fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return err
	}
	all := binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, unix.ETH_P_ALL))
	err = errors.Join(
		unix.SetsockoptInt(c.fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, captureBuffer),
		// The kernel takes a VLAN tag out of the frame and tells it beside.
		unix.SetsockoptInt(c.fd, unix.SOL_PACKET, unix.PACKET_AUXDATA, 1),
		unix.Bind(c.fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: link.Index}))
	if err != nil {
		_ = unix.Close(c.fd)
	}
	return err
}

func (c *Capture) read() {
	for {
		select {
		case <-c.stop:
			return
		default:
		}
		if ready, err := unix.Poll([]unix.PollFd{{Fd: int32(c.fd), Events: unix.POLLIN}}, 20); err == nil && ready > 0 {
			c.mu.Lock()
			c.drain()
			c.mu.Unlock()
		}
	}
}

// drain takes all frames that have arrived. The caller holds the lock.
func (c *Capture) drain() {
	if c.closed {
		return
	}
	for {
		size, besideSize, _, from, err := unix.Recvmsg(c.fd, c.frame[:], c.beside[:], unix.MSG_DONTWAIT)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return
		}
		p := parsePacket(c.frame[:size])
		p.Time = time.Now()
		if link, ok := from.(*unix.SockaddrLinklayer); ok {
			p.Outgoing = link.Pkttype == unix.PACKET_OUTGOING
		}
		if vlan := strippedVLAN(c.beside[:besideSize]); vlan != 0 {
			p.VLAN = vlan
		}
		c.packets = append(c.packets, p)
	}
}

// strippedVLAN finds the tag in a tpacket_auxdata, packet(7): tp_status first,
// tp_vlan_tci at byte 16.
func strippedVLAN(beside []byte) int {
	messages, err := unix.ParseSocketControlMessage(beside)
	if err != nil {
		return 0
	}
	for _, m := range messages {
		if m.Header.Level != unix.SOL_PACKET || m.Header.Type != unix.PACKET_AUXDATA || len(m.Data) < 18 {
			continue
		}
		if binary.NativeEndian.Uint32(m.Data)&unix.TP_STATUS_VLAN_VALID != 0 {
			return int(binary.NativeEndian.Uint16(m.Data[16:]) & 0xfff)
		}
	}
	return 0
}

// Close ends the capture. What it collected stays.
func (c *Capture) Close() error {
	var err error
	c.once.Do(func() {
		close(c.stop)
		c.work.Wait()
		_ = c.drops()
		c.mu.Lock()
		c.drain()
		defer c.mu.Unlock()
		c.closed = true
		err = unix.Close(c.fd)
	})
	return err
}

// Reset forgets what was collected so far.
func (c *Capture) Reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drain()
	c.packets = nil
}

// Packets returns what has passed the interface so far and passes all
// filters, in the order of arrival. A packet that a process received by the
// interface is among it.
func (c *Capture) Packets(filters ...Filter) []Packet {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drain()
	var out []Packet
	for _, p := range c.packets {
		if All(filters...)(p) {
			out = append(out, p)
		}
	}
	return out
}

// Count is the number of collected frames that pass all filters.
func (c *Capture) Count(filters ...Filter) int { return len(c.Packets(filters...)) }

// Wait waits until a frame passes all filters and returns the first.
func (c *Capture) Wait(ctx context.Context, d time.Duration, filters ...Filter) (Packet, error) {
	var p Packet
	err := Eventually(ctx, d, func(context.Context) error {
		found := c.Packets(filters...)
		if len(found) == 0 {
			return errors.New("no such frame among these:\n" + c.tail(10))
		}
		p = found[0]
		return nil
	})
	if err != nil {
		return p, fmt.Errorf("capture %s: %w", c.name, err)
	}
	return p, nil
}

// None returns an error that shows the first of the frames that pass all
// filters, or says that the kernel dropped frames, so that there is nothing to
// be said. It is about the past, so what may follow must have had its time.
func (c *Capture) None(filters ...Filter) error {
	dropped := c.drops()
	if dropped > 0 {
		return fmt.Errorf("capture %s: %d frames were dropped", c.name, dropped)
	}
	if found := c.Packets(filters...); len(found) > 0 {
		return fmt.Errorf("capture %s: %d frames that should not be there, the first is %s", c.name, len(found), found[0])
	}
	return nil
}

// drops is the number of frames that the kernel had no room for.
func (c *Capture) drops() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return c.dropped
	}
	// Reading clears the kernel's counter.
	if stats, err := unix.GetsockoptTpacketStats(c.fd, unix.SOL_PACKET, unix.PACKET_STATISTICS); err == nil {
		c.dropped += int(stats.Drops)
	}
	return c.dropped
}

// Answered counts, by their MAC, who said by ARP or neighbour discovery where
// the address is.
func (c *Capture) Answered(a netip.Addr) map[string]int {
	out := map[string]int{}
	for _, p := range c.Packets(AnswerFor(a)) {
		mac := p.HardwareAddr
		if mac == "" { // an advertisement need not say it twice
			mac = p.EthSrc
		}
		out[mac]++
	}
	return out
}

func (c *Capture) tail(n int) string {
	all := c.Packets()
	lines := []string{}
	for _, p := range all[max(0, len(all)-n):] {
		lines = append(lines, p.String())
	}
	return strings.Join(lines, "\n")
}
