// SPDX-License-Identifier: Apache-2.0

package ovsdb

import (
	"encoding/json"
	"net"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
)

// proxy stands between a client and a server and spoils what the server says.
type proxy struct {
	endpoint string
	server   string
	// spoil may change, delay or (by returning nil) swallow a message of the server.
	spoil atomic.Pointer[func(message map[string]json.RawMessage) map[string]json.RawMessage]

	mu    sync.Mutex
	conns []net.Conn
}

func newProxy(t *testing.T, dir, server string) *proxy {
	t.Helper()
	p := &proxy{endpoint: "unix:" + filepath.Join(dir, "proxy.sock"), server: server}
	listener, err := net.Listen("unix", filepath.Join(dir, "proxy.sock"))
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { p.serve(client) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		p.closeAll()
		serving.Wait()
	})
	return p
}

func (p *proxy) serve(client net.Conn) {
	defer func() { _ = client.Close() }()
	server, err := net.Dial("unix", p.server)
	if err != nil {
		return
	}
	p.mu.Lock()
	p.conns = append(p.conns, client, server)
	p.mu.Unlock()

	var copying sync.WaitGroup
	copying.Go(func() {
		defer func() { _ = server.Close() }()
		relay(client, server, func(m map[string]json.RawMessage) map[string]json.RawMessage { return m })
	})
	relay(server, client, func(m map[string]json.RawMessage) map[string]json.RawMessage {
		if spoil := p.spoil.Load(); spoil != nil {
			return (*spoil)(m)
		}
		return m
	})
	_ = client.Close()
	copying.Wait()
}

// set installs a spoil function; nil removes it.
func (p *proxy) set(spoil func(message map[string]json.RawMessage) map[string]json.RawMessage) {
	if spoil == nil {
		p.spoil.Store(nil)
		return
	}
	p.spoil.Store(&spoil)
}

// closeAll ends every connection, as a server does that hands its leadership over.
func (p *proxy) closeAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, conn := range p.conns {
		_ = conn.Close()
	}
	p.conns = nil
}

func relay(from, to net.Conn, change func(map[string]json.RawMessage) map[string]json.RawMessage) {
	in, out := json.NewDecoder(from), json.NewEncoder(to)
	for {
		var message map[string]json.RawMessage
		if in.Decode(&message) != nil {
			return
		}
		if message = change(message); message == nil {
			continue
		}
		if out.Encode(message) != nil {
			return
		}
	}
}
