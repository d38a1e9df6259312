// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// The forwarder listens on 127.0.0.1 in the root namespace and connects from
// inside the API server's namespace. A socket belongs to the namespace it was
// made in for ever, so the lab opens the listening one and hands it to a
// process that it starts inside.
//
// That process is this very program, started again: whatever program imports
// the lab, a test binary or the lab command, can be its forwarder and no
// other binary has to be built or found.

// forwardVariable holds the address to forward to and makes the program a
// forwarder.
const forwardVariable = "OVN_UPLINK_LAB_FORWARD"

// forwardListener is the descriptor of the inherited listening socket.
const forwardListener = 3

func init() {
	to := os.Getenv(forwardVariable)
	if to == "" {
		return
	}
	if err := forward(os.NewFile(forwardListener, "listener"), to); err != nil {
		fmt.Fprintln(os.Stderr, "lab forwarder:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// forward serves connections until the listener fails.
func forward(file *os.File, to string) error {
	ln, err := net.FileListener(file)
	if err != nil {
		return fmt.Errorf("use inherited socket: %w", err)
	}
	_ = file.Close()
	for {
		conn, err := ln.Accept()
		if err != nil {
			return fmt.Errorf("accept: %w", err)
		}
		go forwardConn(conn, to) // ends with the connection, at the latest with the process
	}
}

// forwardConn copies both ways until both sides have ended, passing on the
// end of each. Without an API server, the client finds its connection closed.
func forwardConn(client net.Conn, to string) {
	defer func() { _ = client.Close() }()
	server, err := net.DialTimeout("tcp", to, 5*time.Second)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	var both sync.WaitGroup
	for _, pair := range [][2]net.Conn{{client, server}, {server, client}} {
		both.Go(func() {
			_, err := io.Copy(pair[0], pair[1])
			if tcp, ok := pair[0].(*net.TCPConn); ok && err == nil {
				_ = tcp.CloseWrite()
				return
			}
			_, _ = pair[0].Close(), pair[1].Close()
		})
	}
	both.Wait()
}

// startForwarder makes the lab's API server reachable on 127.0.0.1 and
// remembers the port.
func (l *Lab) startForwarder(ctx context.Context) error {
	ln, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen for API clients: %w", err)
	}
	tcp, ok := ln.(*net.TCPListener)
	if !ok {
		return errors.New("listen for API clients: not a TCP listener")
	}
	defer func() { _ = tcp.Close() }()
	file, err := tcp.File()
	if err != nil {
		return fmt.Errorf("hand over listening socket: %w", err)
	}
	defer func() { _ = file.Close() }()
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find own executable: %w", err)
	}
	addr, err := net.ResolveTCPAddr("tcp4", tcp.Addr().String())
	if err != nil {
		return fmt.Errorf("own address: %w", err)
	}
	l.port = addr.Port
	_, err = l.start(ctx, processSpec{
		name:  "api.forward",
		netns: l.api.NetNS,
		argv:  []string{self},
		env:   append(baseEnv(), forwardVariable+"="+apiHostPort()),
		files: []*os.File{file},
		infra: true,
	})
	return err
}
