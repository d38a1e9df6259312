// SPDX-License-Identifier: Apache-2.0

package ovsdb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/ovn-org/libovsdb/cache"
	libovsdb "github.com/ovn-org/libovsdb/client"
	"github.com/ovn-org/libovsdb/model"
)

var errDisconnected = errors.New("the server ended the connection")

// closeTimeout is how long the end of a connection is waited for. libovsdb closes only after the calls in flight
// have returned, and a call can hang in writing to a server that reads nothing; it then ends with that server.
const closeTimeout = time.Second

// connection is one libovsdb client, used for one connection and never again.
type connection struct {
	libovsdb.Client
	ended chan struct{} // closed when the connection is over
}

// dial connects to the first endpoint that answers.
func dial(ctx context.Context, c Config, models map[string]model.Model, broken func(error)) (*connection, error) {
	database, err := model.NewClientDBModel(c.Database, models)
	if err != nil {
		return nil, err
	}
	log := logr.New(sink{c.Logger, broken})
	options := []libovsdb.Option{libovsdb.WithLogger(&log), libovsdb.WithTLSConfig(c.TLS)}
	for _, endpoint := range c.endpoints() {
		options = append(options, libovsdb.WithEndpoint(endpoint))
	}
	client, err := libovsdb.NewOVSDBClient(database, options...)
	if err != nil {
		return nil, err
	}
	conn := &connection{client, make(chan struct{})}
	// libovsdb tells of the end only those who listen at that moment, so somebody must from the beginning.
	refused := make(chan struct{})
	go func() {
		select {
		case <-client.DisconnectNotify():
			close(conn.ended)
		case <-refused:
		}
	}()
	if err := client.Connect(ctx); err != nil {
		close(refused)
		return nil, err
	}
	return conn, nil
}

func (c *connection) close() {
	go c.Close()
	select {
	case <-c.ended:
	case <-time.After(closeTimeout):
	}
}

// session is a connection with a complete copy of the followed tables.
type session struct {
	*connection
	fit     fit
	changed chan struct{} // an update was applied since the last read; holds one
	broken  chan error    // an update could not be applied; holds one
}

// open connects, learns the schema, and returns once the first monitor is complete.
func open(ctx context.Context, c Config) (*session, error) {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()

	// libovsdb takes the row structs before it knows the schema that they must fit to, so the schema is asked for
	// in a connection of its own. Should it change in between, the second one is refused and the next try is right.
	first, err := dial(ctx, c, nil, func(error) {})
	if err != nil {
		return nil, err
	}
	f, err := fitTo(first.Schema(), c.Tables)
	first.close()
	if err != nil {
		return nil, err
	}

	s := &session{fit: f, changed: make(chan struct{}, 1), broken: make(chan error, 1)}
	if s.connection, err = dial(ctx, c, f.models, s.fail); err != nil {
		return nil, err
	}
	if err := s.monitor(ctx); err != nil {
		s.close()
		return nil, fmt.Errorf("monitor: %w", err)
	}
	return s, nil
}

func (s *session) monitor(ctx context.Context) error {
	rows := s.Cache()
	if rows == nil {
		return errDisconnected
	}
	rows.AddEventHandler(&cache.EventHandlerFuncs{
		AddFunc:    func(string, model.Model) { s.change() },
		UpdateFunc: func(string, model.Model, model.Model) { s.change() },
		DeleteFunc: func(string, model.Model) { s.change() },
	})
	m := s.NewMonitor()
	for table, columns := range s.fit.columns {
		m.Tables = append(m.Tables, libovsdb.TableMonitor{Table: table, Fields: columns})
	}
	slices.SortFunc(m.Tables, func(a, b libovsdb.TableMonitor) int { return strings.Compare(a.Table, b.Table) })
	_, err := s.Monitor(ctx, m)
	return err
}

func (s *session) change() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

func (s *session) fail(err error) {
	select {
	case s.broken <- fmt.Errorf("an update could not be applied: %w", err):
	default:
	}
}

// probe asks for an answer every interval, sends the outcome to results, and ends with the first failure. It finds
// a connection whose other end is gone without a word, which else would show only when TCP gives up. What it sends
// is a transaction without operations, which the server answers like an echo, unless it no longer has the database;
// libovsdb's Echo looks at an answer that comes after the deadline while it is still being written.
func (s *session) probe(ctx context.Context, interval, timeout time.Duration, results chan<- error) {
	for {
		pause(ctx, interval)
		_, err := s.transact(ctx, timeout, nil)
		select {
		case results <- err:
		case <-ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

func (s *session) transact(ctx context.Context, timeout time.Duration, operations []Operation) ([]Result, error) {
	done := make(chan []Result, 1)
	err := within(ctx, timeout, func(ctx context.Context) error {
		results, err := s.Transact(ctx, operations...)
		done <- results
		return err
	})
	if err != nil {
		return nil, err
	}
	results := <-done
	return results, check(results, operations)
}

// within runs a call with a deadline that holds even where libovsdb does not look at the context: while it writes
// to the socket. A call that hangs there is left behind; it ends with the connection.
func within(ctx context.Context, timeout time.Duration, call func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- call(ctx) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
