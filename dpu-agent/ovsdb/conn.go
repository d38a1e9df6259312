// SPDX-License-Identifier: Apache-2.0

package ovsdb

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// conn is a connection to an OVSDB server: JSON-RPC 1.0 as in RFC 7047, section 4.
type conn struct {
	net net.Conn
	// notified gets the notifications of the server, one after the other and in turn with replies. An error ends
	// the connection.
	notified func(method string, params json.RawMessage) error

	writing chan struct{} // held by who writes
	reading sync.WaitGroup

	mu      sync.Mutex
	lastID  uint64
	waiting map[string]func(json.RawMessage, error)
	err     error         // why the connection is over
	ended   chan struct{} // closed when it is
}

// errClosed is why a connection is over that was closed here.
var errClosed = errors.New("the connection was closed")

// message is a request, notification or reply of the server.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

// dial connects to the first endpoint that accepts.
func dial(ctx context.Context, endpoints []string, config *tls.Config, notified func(string, json.RawMessage) error) (*conn, error) {
	var errs []error
	for i, endpoint := range endpoints {
		c, err := dialShare(ctx, endpoint, config, len(endpoints)-i)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		conn := &conn{
			net: c, notified: notified, writing: make(chan struct{}, 1),
			waiting: map[string]func(json.RawMessage, error){}, ended: make(chan struct{}),
		}
		conn.reading.Go(conn.read)
		return conn, nil
	}
	return nil, errors.Join(errs...)
}

// dialShare connects to one endpoint, within its share of the time that is left: one that does not answer leaves time
// for the others.
func dialShare(ctx context.Context, endpoint string, config *tls.Config, shares int) (net.Conn, error) {
	if deadline, ok := ctx.Deadline(); ok {
		// Half of it, so that what follows the connecting has time too.
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(deadline)/time.Duration(2*shares))
		defer cancel()
	}
	return dialOne(ctx, endpoint, config)
}

func dialOne(ctx context.Context, endpoint string, config *tls.Config) (net.Conn, error) {
	switch method, address, _ := strings.Cut(endpoint, ":"); method {
	case "unix":
		return new(net.Dialer).DialContext(ctx, "unix", address)
	case "ssl":
		return (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", address)
	default:
		return new(net.Dialer).DialContext(ctx, "tcp", address)
	}
}

// close ends the connection and returns once nothing of it runs any more.
func (c *conn) close() {
	c.end(errClosed)
	c.reading.Wait()
}

// end ends the connection, for the first reason that is given.
func (c *conn) end(reason error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return
	}
	c.err = reason
	_ = c.net.Close()
	for _, reply := range c.waiting {
		reply(nil, reason)
	}
	c.waiting = nil
	close(c.ended)
}

// why is the reason for which an ended connection is over.
func (c *conn) why() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// read takes in what the server says until the connection ends.
func (c *conn) read() {
	in := json.NewDecoder(c.net)
	for {
		var m message
		if err := in.Decode(&m); err != nil {
			c.end(fmt.Errorf("the server ended the connection: %w", err))
			return
		}
		if err := c.take(m); err != nil {
			c.end(err)
			return
		}
	}
}

func (c *conn) take(m message) error {
	switch {
	case m.Method == "echo":
		// Answered beside the reading: where both ends only write, neither would go on.
		c.reading.Go(func() { c.answer(m) })
		return nil
	case m.Method != "":
		return c.notified(m.Method, m.Params)
	}
	c.mu.Lock()
	reply := c.waiting[string(m.ID)]
	delete(c.waiting, string(m.ID))
	c.mu.Unlock()
	if reply == nil { // nobody waits any more
		return nil
	}
	if len(m.Error) > 0 && !bytes.Equal(m.Error, []byte("null")) {
		reply(nil, fmt.Errorf("the server refuses: %s", m.Error))
	} else {
		reply(m.Result, nil)
	}
	return nil
}

// answer replies to an echo of the server, which else takes the client for dead.
func (c *conn) answer(m message) {
	ctx, cancel := context.WithTimeout(context.Background(), answerTimeout)
	defer cancel()
	if err := c.write(ctx, map[string]any{"id": m.ID, "result": m.Params, "error": nil}); err != nil {
		c.end(fmt.Errorf("answer an echo: %w", err))
	}
}

// answerTimeout bounds the answer to an echo; the server waits five seconds by default.
const answerTimeout = 5 * time.Second

// call asks the server something, until the deadline that the context must have. The reply is taken in turn with
// the server's notifications. What it was decoded into is valid only if there is no error.
func (c *conn) call(ctx context.Context, method string, params []any, reply func(json.RawMessage) error) error {
	done := make(chan error, 1)
	c.mu.Lock()
	if c.err != nil {
		defer c.mu.Unlock()
		return c.err
	}
	c.lastID++
	id := strconv.FormatUint(c.lastID, 10)
	c.waiting[id] = func(result json.RawMessage, err error) {
		if err == nil {
			err = reply(result)
		}
		done <- err
	}
	c.mu.Unlock()

	err := c.write(ctx, map[string]any{"id": json.RawMessage(id), "method": method, "params": params})
	if err == nil {
		select {
		case err = <-done:
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	c.mu.Lock()
	delete(c.waiting, id)
	c.mu.Unlock()
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	return nil
}

// write sends one message. If the deadline comes in the middle of it, the connection is of no more use.
func (c *conn) write(ctx context.Context, m any) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	select {
	case c.writing <- struct{}{}:
		defer func() { <-c.writing }()
	case <-c.ended:
		return c.why()
	case <-ctx.Done():
		return ctx.Err()
	}
	deadline, _ := ctx.Deadline()
	if err := c.net.SetWriteDeadline(deadline); err != nil {
		return err
	}
	if _, err := c.net.Write(text); err != nil {
		c.end(fmt.Errorf("write to the server: %w", err))
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return context.DeadlineExceeded
		}
		return err
	}
	return nil
}
