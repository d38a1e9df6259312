// SPDX-License-Identifier: Apache-2.0

package ovsdb

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type rootRow struct {
	UUID        string            `ovsdb:"_uuid"`
	ExternalIDs map[string]string `ovsdb:"external_ids"`
}

type bridgeRow struct {
	UUID  string   `ovsdb:"_uuid"`
	Name  string   `ovsdb:"name"`
	Ports []string `ovsdb:"ports"`
}

type portRow struct {
	UUID string `ovsdb:"_uuid"`
	Name string `ovsdb:"name"`
	Tag  *int   `ovsdb:"tag"`
}

type interfaceRow struct {
	UUID  string  `ovsdb:"_uuid"`
	Name  string  `ovsdb:"name"`
	Type  string  `ovsdb:"type"`
	Error *string `ovsdb:"error" optional:"true"`
	MTU   *int    `ovsdb:"mtu" optional:"true"`
}

func config(endpoint string) Config {
	return Config{
		Endpoint: endpoint,
		Database: "Open_vSwitch",
		Root:     "Open_vSwitch",
		Tables: map[string]any{
			"Open_vSwitch": &rootRow{}, "Bridge": &bridgeRow{}, "Port": &portRow{}, "Interface": &interfaceRow{},
		},
		Logger:        slog.New(slog.DiscardHandler),
		Timeout:       2 * time.Second,
		ProbeInterval: 300 * time.Millisecond,
		ProbeTimeout:  time.Second,
	}
}

// run starts a client that ends with the test.
func run(t *testing.T, cfg Config) *Client {
	t.Helper()
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	start(t, c)
	return c
}

func start(t *testing.T, c *Client) {
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := c.Run(ctx); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	t.Cleanup(func() { cancel(); running.Wait() })
}

// bridges are the names of the bridges in the last content, sorted.
func bridges(c *Client) []string {
	content, _ := c.Content()
	var names []string
	for _, row := range Rows[bridgeRow](content, "Bridge") {
		names = append(names, row.Name)
	}
	slices.Sort(names)
	return names
}

func sees(c *Client, want ...string) func() bool {
	return func() bool { return c.Connected() && slices.Equal(bridges(c), want) }
}

func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(15 * time.Second); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("waited in vain: ", what)
		}
	}
}

// during checks that something stays as it is for a while.
func during(t *testing.T, d time.Duration, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if !holds() {
			t.Fatal("did not hold: ", what)
		}
	}
}
