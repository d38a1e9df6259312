// SPDX-License-Identifier: Apache-2.0

package ovsdb

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/ovn-org/libovsdb/ovsdb"
)

// session is a connection with a complete copy of the followed tables.
type session struct {
	*conn
	database string
	root     string
	fit      fit
	changed  chan struct{} // an update came since the last look; holds one

	mu      sync.Mutex
	replica *replica
	broken  error // an update could be applied only in part
}

// open connects, learns the schema, and returns once the first monitor is complete.
func open(ctx context.Context, c Config) (*session, error) {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	s := &session{database: c.Database, root: c.Root, changed: make(chan struct{}, 1)}
	var err error
	if s.conn, err = dial(ctx, c.endpoints(), c.TLS, s.notified); err != nil {
		return nil, err
	}
	if err := s.follow(ctx, c); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *session) follow(ctx context.Context, c Config) error {
	var schema ovsdb.DatabaseSchema
	err := s.call(ctx, "get_schema", []any{s.database}, func(reply json.RawMessage) error { return json.Unmarshal(reply, &schema) })
	if err != nil {
		return err
	}
	if s.fit, err = fitTo(schema, c.Tables); err != nil {
		return err
	}
	s.replica = newReplica(s.fit.model)
	requests := map[string][]ovsdb.MonitorRequest{}
	for table, columns := range s.fit.columns {
		if len(columns) > 0 { // else the server does not have the table
			requests[table] = []ovsdb.MonitorRequest{{Columns: columns, Where: c.Where[table]}}
		}
	}
	// The server is not told that the client notices changes of the schema (set_db_change_aware), so that it ends
	// the connection when there is one.
	return s.call(ctx, "monitor_cond", []any{s.database, nil, requests}, s.apply)
}

// notified takes in what the server sends of itself.
func (s *session) notified(method string, params json.RawMessage) error {
	if method != "update2" {
		return nil
	}
	var update []json.RawMessage // the monitor and its update
	if err := json.Unmarshal(params, &update); err != nil || len(update) != 2 {
		return fmt.Errorf("update2 without an update: %s", params)
	}
	if err := s.apply(update[1]); err != nil {
		return err
	}
	select {
	case s.changed <- struct{}{}:
	default:
	}
	return nil
}

func (s *session) apply(text json.RawMessage) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken = s.replica.apply(text)
	return s.broken
}

// content gives what the tables hold now.
func (s *session) content() (*Content, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken != nil {
		return nil, s.broken
	}
	if len(s.replica.tables[s.root]) == 0 {
		return nil, fmt.Errorf("table %s has no row: the database is not set up, or this server gives an empty copy of it", s.root)
	}
	return s.replica.content(), nil
}

// probe asks for an echo every interval, sends the outcome to results, and ends with the first failure. It finds
// a connection whose other end is gone without a word, which else would show only when TCP gives up.
func (s *session) probe(ctx context.Context, interval, timeout time.Duration, results chan<- error) {
	for {
		pause(ctx, interval)
		err := s.echo(ctx, timeout)
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

func (s *session) echo(ctx context.Context, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return s.call(ctx, "echo", []any{}, func(json.RawMessage) error { return nil })
}

func (s *session) transact(ctx context.Context, timeout time.Duration, operations []Operation) ([]Result, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var results []Result
	err := s.call(ctx, "transact", ovsdb.NewTransactArgs(s.database, operations...), func(reply json.RawMessage) error {
		return json.Unmarshal(reply, &results)
	})
	if err != nil {
		return nil, err
	}
	return results, check(results, operations)
}
