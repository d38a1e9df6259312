// SPDX-License-Identifier: Apache-2.0

package ovsdb

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ovn-uplink/ovn-uplink/dpu-agent/ovsdb/ovsdbtest"
)

// setKey sets a key of external_ids, if it has the expected old value. Other keys are left alone.
func setKey(uuid, key, old, value string) []Operation {
	this := []Condition{{Column: "_uuid", Function: "==", Value: UUID{GoUUID: uuid}}}
	pair := func(value string) Map { return Map{GoMap: map[any]any{key: value}} }
	now := 0
	return []Operation{
		{
			Op: "wait", Table: "Open_vSwitch", Timeout: &now,
			Where:   append(this, Condition{Column: "external_ids", Function: "includes", Value: pair(old)}),
			Columns: []string{"_uuid"}, Until: "==", Rows: []Row{{"_uuid": UUID{GoUUID: uuid}}},
		},
		{
			Op: "mutate", Table: "Open_vSwitch", Where: this,
			Mutations: []Mutation{
				{Column: "external_ids", Mutator: "delete", Value: pair(old)},
				{Column: "external_ids", Mutator: "insert", Value: pair(value)},
			},
		},
	}
}

func rootUUID(t *testing.T, c *Client) string {
	t.Helper()
	content, err := c.Content()
	if err != nil {
		t.Fatal(err)
	}
	for uuid := range Rows[rootRow](content, "Open_vSwitch") {
		return uuid
	}
	t.Fatal("no root row")
	return ""
}

// B14: two writers of one value do not lose each other's, and other keys are not touched.
func TestB14WaitOnTheOldValue(t *testing.T) {
	server := ovsdbtest.Start(t)
	server.Vsctl("set", "Open_vSwitch", ".", "external_ids:a=1", "external_ids:foreign=x")
	c := run(t, config(server.Endpoint()))
	eventually(t, "connected", c.Connected)
	root := rootUUID(t, c)

	if _, err := c.Transact(t.Context(), setKey(root, "a", "1", "2")...); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Transact(t.Context(), setKey(root, "a", "1", "3")...); !errors.Is(err, ErrChanged) {
		t.Errorf("stale write: error %v, want ErrChanged", err)
	}
	if got := server.Vsctl("get", "Open_vSwitch", ".", "external_ids"); got != `{a="2", foreign=x}` {
		t.Errorf("external_ids %s", got)
	}
	eventually(t, "the own write is seen", func() bool {
		content, _ := c.Content()
		return Rows[rootRow](content, "Open_vSwitch")[root].ExternalIDs["a"] == "2"
	})
}

func TestTransactNamesWhatFailed(t *testing.T) {
	server := ovsdbtest.Start(t)
	c := run(t, config(server.Endpoint()))
	eventually(t, "connected", c.Connected)
	_, err := c.Transact(t.Context(), Operation{Op: "insert", Table: "Port", Row: Row{"name": "p0", "tag": 9999}})
	if err == nil || !strings.Contains(err.Error(), "insert Port") || !strings.Contains(err.Error(), "9999") {
		t.Errorf("error %v", err)
	}
}

func TestTransactWithoutConnection(t *testing.T) {
	c, err := New(config("unix:/none"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Transact(t.Context(), Operation{Op: "comment"}); !errors.Is(err, ErrNotConnected) {
		t.Errorf("error %v, want ErrNotConnected", err)
	}
}

// The deadline holds even if the server does not read what is written to it.
func TestTransactDeadline(t *testing.T) {
	server := ovsdbtest.Start(t)
	cfg := config(server.Endpoint())
	cfg.Timeout, cfg.ProbeInterval = 300*time.Millisecond, 500*time.Millisecond
	c := run(t, cfg)
	eventually(t, "connected", c.Connected)
	root := rootUUID(t, c)
	server.Signal(syscall.SIGSTOP)
	started := time.Now()
	_, err := c.Transact(t.Context(), setKey(root, "a", "1", strings.Repeat("x", 2<<20))...)
	if !errors.Is(err, context.DeadlineExceeded) || time.Since(started) > 3*time.Second {
		t.Errorf("after %s: error %v, want a deadline", time.Since(started), err)
	}
	eventually(t, "not connected", func() bool { return !c.Connected() })
	server.Signal(syscall.SIGCONT)
	eventually(t, "connected again", c.Connected)
}
