// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
)

// written is what a client wrote to a database.
type written struct {
	transactions int
	// inserts, changes and deletes are operations by kind; one of each is about one row here.
	inserts, changes, deletes int
}

func (w written) minus(o written) written {
	return written{w.transactions - o.transactions, w.inserts - o.inserts, w.changes - o.changes, w.deletes - o.deletes}
}

// tap stands between an agent and an OVSDB server and counts what the agent writes: the database itself does not tell
// who wrote, and Open vSwitch and OVN write all the time.
type tap struct {
	endpoint string
	backend  string
	listener net.Listener
	work     sync.WaitGroup

	mu    sync.Mutex
	total written
	conns map[net.Conn]bool
}

// newTap listens at a path for connections to an endpoint; both are UNIX sockets.
func newTap(path, endpoint string) (*tap, error) {
	backend, found := strings.CutPrefix(endpoint, "unix:")
	if !found {
		return nil, fmt.Errorf("database at %s: not a UNIX socket", endpoint)
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("listen for the agent: %w", err)
	}
	t := &tap{endpoint: "unix:" + path, backend: backend, listener: listener, conns: map[net.Conn]bool{}}
	t.work.Go(t.accept)
	return t, nil
}

func (t *tap) accept() {
	for {
		client, err := t.listener.Accept()
		if err != nil {
			return // closed
		}
		server, err := net.Dial("unix", t.backend)
		if err != nil {
			_ = client.Close()
			continue
		}
		t.keep(client, server)
		t.work.Go(func() { t.forward(client, server) })
	}
}

func (t *tap) keep(conns ...net.Conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range conns {
		t.conns[c] = true
	}
}

// forward passes everything on, and what the client sends by the counter, until one of the two ends it.
func (t *tap) forward(client, server net.Conn) {
	end := func() { _, _ = client.Close(), server.Close() }
	t.work.Go(func() {
		defer end()
		_, _ = io.Copy(client, server)
	})
	defer end()
	requests := json.NewDecoder(client)
	for {
		var text json.RawMessage
		var r request
		if requests.Decode(&text) != nil || json.Unmarshal(text, &r) != nil {
			return
		}
		// Counted before it is passed on, so that whoever has the answer finds it counted.
		if r.Method == "transact" {
			t.mu.Lock()
			t.total.count(r.Params)
			t.mu.Unlock()
		}
		if _, err := server.Write(text); err != nil {
			return
		}
	}
}

// request is one of RFC 7047, section 4.1.
type request struct {
	Method string            `json:"method"`
	Params []json.RawMessage `json:"params"`
}

// count adds a transaction, whose parameters are the database and the operations.
func (w *written) count(params []json.RawMessage) {
	w.transactions++
	for _, p := range params {
		var operation struct {
			Op string `json:"op"`
		}
		if json.Unmarshal(p, &operation) != nil {
			continue // the database's name
		}
		switch operation.Op {
		case "insert":
			w.inserts++
		case "update", "mutate":
			w.changes++
		case "delete":
			w.deletes++
		}
	}
}

// sum is what was written so far.
func (t *tap) sum() written {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.total
}

// Close ends all connections.
func (t *tap) Close() error {
	err := t.listener.Close()
	t.mu.Lock()
	for c := range t.conns {
		_ = c.Close()
	}
	t.mu.Unlock()
	t.work.Wait()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
