// SPDX-License-Identifier: Apache-2.0

package ovsdb

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// ErrNotConnected is the error of everything that needs the server while there is no connection.
var ErrNotConnected = errors.New("not connected")

var errStopped = errors.New("the agent is stopping")

// settle is how long updates are collected before they are shown: what belongs together often comes in several
// transactions, and a reader of all tables should not run once for each.
const settle = 20 * time.Millisecond

// Client follows one database. Its methods may be called from any goroutine.
type Client struct {
	cfg       Config
	log       *slog.Logger
	listeners []func()

	mu      sync.Mutex
	session *session // nil while not connected
	content *Content // the last complete one
	lost    error    // why session is nil, or last was
	beat    time.Time
	stalled time.Duration
}

// New makes a Client; Run makes it work. An error is a mistake in the Config.
func New(c Config) (*Client, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	c = c.withDefaults()
	return &Client{
		cfg:  c,
		log:  c.Logger.With("database", c.Database),
		lost: errors.New("no connection was tried yet"),
		// Everything that Run waits for is bounded; twice their sum without a sign of life means that it is stuck.
		stalled: 2 * (c.Timeout + c.ProbeInterval + c.ProbeTimeout + maxBackoff),
	}, nil
}

// OnChange adds a function to be called, from Run, after the content or the connection has changed; several
// changes may be told at once. It must not block, and is to be added before Run.
func (c *Client) OnChange(f func()) { c.listeners = append(c.listeners, f) }

// Run keeps the connection until the context ends, however often it breaks.
func (c *Client) Run(ctx context.Context) error {
	var wait backoff
	for ctx.Err() == nil {
		started := time.Now()
		c.serve(ctx)
		if time.Since(started) > maxBackoff {
			wait = 0
		}
		pause(ctx, wait.next())
	}
	return nil
}

// serve is the life of one connection, or the attempt to have one.
func (c *Client) serve(ctx context.Context) {
	c.alive()
	s, err := open(ctx, c.cfg)
	if err != nil {
		c.end(ctx, fmt.Errorf("connect to %s: %w", c.cfg.Endpoint, err))
		return
	}
	defer s.close()
	c.end(ctx, c.follow(ctx, s))
}

// follow shows what the session holds after every change. It returns why the session is over.
func (c *Client) follow(ctx context.Context, s *session) error {
	if err := c.update(s); err != nil {
		return err
	}
	c.log.Info("connected to OVSDB", "endpoint", c.cfg.Endpoint, "schema", s.fit.model.Schema.Version,
		"columnsMissing", strings.Join(s.fit.missing, " "))

	ctx, cancel := context.WithCancel(ctx)
	probed := make(chan error)
	var probing sync.WaitGroup
	probing.Go(func() { s.probe(ctx, c.cfg.ProbeInterval, c.cfg.ProbeTimeout, probed) })
	defer probing.Wait()
	defer cancel()
	for {
		c.alive()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.ended:
			return s.why()
		case err := <-probed:
			if err != nil {
				return fmt.Errorf("%s does not answer: %w", c.cfg.Endpoint, err)
			}
		case <-s.changed:
			pause(ctx, settle)
			if err := c.update(s); err != nil {
				return err
			}
		}
	}
}

// update shows what the session holds now.
func (c *Client) update(s *session) error {
	if err := c.show(s); err != nil {
		return err
	}
	c.notify()
	return nil
}

func (c *Client) show(s *session) error {
	c.mu.Lock() // before looking, so that what is newer stays
	defer c.mu.Unlock()
	content, err := s.content()
	if err != nil {
		return err
	}
	c.session, c.content = s, content
	return nil
}

// end marks the content as old. Of several failures for the same reason only the first is logged.
func (c *Client) end(ctx context.Context, reason error) {
	if errors.Is(ctx.Err(), context.Canceled) {
		reason = errStopped
	}
	c.mu.Lock()
	connected, repeated := c.session != nil, c.lost.Error() == reason.Error()
	c.session, c.lost = nil, reason
	c.mu.Unlock()
	if !errors.Is(reason, errStopped) && (connected || !repeated) {
		c.log.Info("not connected to OVSDB", "reason", reason)
	}
	if connected {
		c.notify()
	}
}

func (c *Client) notify() {
	for _, f := range c.listeners {
		f()
	}
}

// Content gives the last complete content, nil before the first. The error is nil while the content is current;
// else it says why there is no connection.
func (c *Client) Content() (*Content, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.session == nil {
		return c.content, fmt.Errorf("OVSDB %s: %w: %w", c.cfg.Database, ErrNotConnected, c.lost)
	}
	return c.content, nil
}

// Connected tells whether the content is current.
func (c *Client) Connected() bool {
	_, err := c.Content()
	return err == nil
}

// Transact runs operations as one transaction. Where an operation failed nothing was written, and the error names
// each; ErrChanged is the one of a wait. Any other error leaves it open whether the transaction took place: look
// at the content. Besides the context, Config.Timeout bounds the call.
//
// What was written, or was different than expected, is in the Content once Transact returns: a server sends what a
// transaction changed before it replies (RFC 7047, section 4.1.3).
func (c *Client) Transact(ctx context.Context, operations ...Operation) ([]Result, error) {
	c.mu.Lock()
	s, lost := c.session, c.lost
	c.mu.Unlock()
	if s == nil {
		return nil, fmt.Errorf("transact with OVSDB %s: %w: %w", c.cfg.Database, ErrNotConnected, lost)
	}
	results, err := s.transact(ctx, c.cfg.Timeout, operations)
	c.showAgain(s)
	if err != nil {
		return nil, fmt.Errorf("transact with OVSDB %s: %w", c.cfg.Database, err)
	}
	return results, nil
}

// Healthy is nil while Run makes progress, connected or not.
func (c *Client) Healthy(now time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if idle := now.Sub(c.beat); !c.beat.IsZero() && idle > c.stalled {
		return fmt.Errorf("following OVSDB %s has been stuck for %s", c.cfg.Database, idle.Round(time.Second))
	}
	return nil
}

// showAgain shows what a session holds now if it is the one that is shown. Whoever is told of changes is so by Run.
func (c *Client) showAgain(s *session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.session != s {
		return
	}
	if content, err := s.content(); err == nil {
		c.content = content
	}
}

func (c *Client) alive() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.beat = time.Now()
}

// pause waits, or until the context ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
