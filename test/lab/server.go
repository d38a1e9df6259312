// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// requestDeadline bounds a request to a server of the lab whose caller set no
// deadline.
const requestDeadline = 5 * time.Second

// Server answers at an address inside a node, pod or external machine. It
// ends with Close or with the lab.
type Server struct {
	// Addr is where it listens.
	Addr netip.AddrPort

	served atomic.Int64
	close  func() error
	once   sync.Once
	err    error
}

// Served is the number of requests or datagrams that came in.
func (s *Server) Served() int { return int(s.served.Load()) }

// Close ends the server and waits until it has.
func (s *Server) Close() error {
	s.once.Do(func() { s.err = s.close() })
	return s.err
}

// own makes the lab end what it started inside this process.
func (l *Lab) own(c io.Closer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closers = append(l.closers, c)
}

func (l *Lab) closeOwned() error {
	l.mu.Lock()
	closers := l.closers
	l.closers = nil
	l.mu.Unlock()
	var errs []error
	for _, c := range closers {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// StartHTTP starts an HTTP server that answers every request with the name
// and the client's address as it sees it; see HTTPGet. An unspecified address
// listens on all of the family.
func (n *Node) StartHTTP(at netip.AddrPort, name string) (*Server, error) {
	var ln net.Listener
	err := n.Do(func() (err error) {
		ln, err = net.Listen(network("tcp", at.Addr()), at.String())
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("start HTTP server %s on %s: %w", name, n.Name, err)
	}
	s := &Server{Addr: ln.Addr().(*net.TCPAddr).AddrPort()}
	web := &http.Server{
		ReadHeaderTimeout: requestDeadline,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			s.served.Add(1)
			_, _ = io.WriteString(w, name+" "+r.RemoteAddr+"\n") // a failure shows at the client
		}),
	}
	var serving sync.WaitGroup
	serving.Go(func() { _ = web.Serve(ln) }) // ends by Close
	s.close = func() error {
		err := web.Close()
		serving.Wait()
		return err
	}
	n.lab.own(s)
	return s, nil
}

// Answer is what a server of the lab said.
type Answer struct {
	// Name is the server's.
	Name string
	// Client is the client's address and port as the server saw them.
	Client netip.AddrPort
}

// HTTPGet asks a server made by StartHTTP, over a connection of its own.
func (n *Node) HTTPGet(ctx context.Context, to netip.AddrPort) (Answer, error) {
	ctx, cancel := withDeadline(ctx)
	defer cancel()
	transport := &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return n.Dial(ctx, "tcp", to)
		},
	}
	defer transport.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+to.String()+"/", nil)
	if err != nil {
		return Answer{}, fmt.Errorf("ask %s: %w", to, err)
	}
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return Answer{}, fmt.Errorf("ask %s from %s: %w", to, n.Name, err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return Answer{}, fmt.Errorf("ask %s from %s: %w", to, n.Name, err)
	}
	name, client, ok := strings.Cut(strings.TrimSpace(string(body)), " ")
	a := Answer{Name: name}
	if a.Client, err = netip.ParseAddrPort(client); err != nil || !ok {
		return Answer{}, fmt.Errorf("ask %s from %s: answer %q is not one of the lab's", to, n.Name, body)
	}
	return a, nil
}

// Dial connects from inside the node. Proto is "tcp" or "udp".
func (n *Node) Dial(ctx context.Context, proto string, to netip.AddrPort) (net.Conn, error) {
	var conn net.Conn
	err := n.Do(func() (err error) {
		conn, err = new(net.Dialer).DialContext(ctx, network(proto, to.Addr()), to.String())
		return err
	})
	return conn, err
}

// StartUDPEcho starts a server that sends every datagram back from where it
// was sent to, up to 64 KiB. The address must be a certain one: what listens
// on all of them would answer from any.
func (n *Node) StartUDPEcho(at netip.AddrPort) (*Server, error) {
	var conn net.PacketConn
	err := n.Do(func() (err error) {
		conn, err = net.ListenPacket(network("udp", at.Addr()), at.String())
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("start UDP server on %s: %w", n.Name, err)
	}
	s := &Server{Addr: conn.LocalAddr().(*net.UDPAddr).AddrPort()}
	var serving sync.WaitGroup
	serving.Go(func() {
		buf := make([]byte, 1<<16)
		for {
			size, from, err := conn.ReadFrom(buf)
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err != nil {
				continue // an ICMP error of an earlier answer
			}
			s.served.Add(1)
			_, _ = conn.WriteTo(buf[:size], from) // a failure shows at the client
		}
	})
	s.close = func() error {
		err := conn.Close()
		serving.Wait()
		return err
	}
	n.lab.own(s)
	return s, nil
}

// EchoUDP sends one datagram of the size to a UDP echo server and waits for
// it to come back whole. More than the interface's MTU goes in fragments.
func (n *Node) EchoUDP(ctx context.Context, to netip.AddrPort, size int) error {
	conn, err := n.Dial(ctx, "udp", to)
	if err != nil {
		return fmt.Errorf("send to %s from %s: %w", to, n.Name, err)
	}
	if err := echo(ctx, conn, size); err != nil {
		return fmt.Errorf("echo of %d bytes by %s to %s: %w", size, to, n.Name, err)
	}
	return nil
}

// echo writes size bytes, expects them back and closes the connection.
func echo(ctx context.Context, conn net.Conn, size int) error {
	ctx, cancel := withDeadline(ctx)
	defer cancel()
	defer func() { _ = conn.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	sent := make([]byte, size)
	for i := range sent {
		sent[i] = byte(i % 251)
	}
	if _, err := conn.Write(sent); err != nil {
		return err
	}
	got := make([]byte, size+1)
	read, err := conn.Read(got)
	if err != nil {
		return err
	}
	if string(got[:read]) != string(sent) {
		return fmt.Errorf("%d bytes came back, not those sent", read)
	}
	return nil
}

// network is Go's name of a protocol in the address's family.
func network(proto string, a netip.Addr) string {
	if a.Unmap().Is4() {
		return proto + "4"
	}
	return proto + "6"
}

func withDeadline(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, requestDeadline)
}
