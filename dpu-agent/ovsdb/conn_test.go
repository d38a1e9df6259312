// SPDX-License-Identifier: Apache-2.0

package ovsdb

import (
	"context"
	"encoding/json"
	"net"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ovn-uplink/ovn-uplink/dpu-agent/ovsdb/ovsdbtest"
)

func TestServerThatNeverAnswers(t *testing.T) {
	listener, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	neverAnswers(t, "unix:"+listener.Addr().String())
}

func neverAnswers(t *testing.T, endpoint string) {
	t.Helper()
	cfg := config(endpoint)
	cfg.Timeout = 300 * time.Millisecond
	c := run(t, cfg)
	eventually(t, "a deadline", func() bool {
		_, err := c.Content()
		return err != nil && strings.Contains(err.Error(), context.DeadlineExceeded.Error())
	})
	if err := c.Healthy(time.Now()); err != nil {
		t.Errorf("an absent server is no reason to restart: %v", err)
	}
}

// What a server that is none sends ends the connection, and nothing else.
func TestNonsenseFromTheServer(t *testing.T) {
	server := ovsdbtest.Start(t)
	server.Vsctl("add-br", "br-blue")
	p := newProxy(t, server.Dir, server.Socket())
	cfg := config(p.endpoint)
	cfg.ProbeInterval, cfg.ProbeTimeout = 50*time.Millisecond, 300*time.Millisecond
	for _, nonsense := range []string{
		`{}`, `{"method":"update2","params":[]}`, `{"method":"update2","params":null}`, `{"method":"update2","params":[null,{"Bridge":{"x":null}}]}`,
		`{"method":"update2","params":[null,{"Bridge":{"x":{"insert":{"name":[]}}}}]}`, `{"method":"update2","params":[null,{"Nothing":{"x":{"insert":{}}}}]}`,
		`{"method":"update2","params":[null,{"Bridge":{"x":{"modify":{"name":"y"}}}}]}`, `{"method":"update2","params":[null,{"Bridge":{"x":{"insert":{"ports":["set",7]}}}}]}`,
		`{"method":"stolen","params":["x"]}`, `{"id":"never asked","result":1}`,
	} {
		t.Run(nonsense, func(t *testing.T) {
			c := run(t, cfg)
			eventually(t, "br-blue", sees(c, "br-blue"))
			var sent atomic.Bool
			p.set(func(m map[string]json.RawMessage) map[string]json.RawMessage {
				// In place of the reply to a probe.
				if string(m["result"]) == "[]" && !sent.Swap(true) {
					m = nil
					if err := json.Unmarshal([]byte(nonsense), &m); err != nil {
						t.Error(err)
					}
				}
				return m
			})
			eventually(t, "a probe", sent.Load)
			p.set(nil)
			eventually(t, "br-blue again", sees(c, "br-blue"))
		})
	}
}

// A server that asks for a sign of life gets one.
func TestEchoOfTheServerIsAnswered(t *testing.T) {
	listener, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	conn, err := dial(t.Context(), []string{"unix:" + listener.Addr().String()}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.close()
	server, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if err := json.NewEncoder(server).Encode(map[string]any{"id": "echo", "method": "echo", "params": []any{1, "two"}}); err != nil {
		t.Fatal(err)
	}
	var answer map[string]json.RawMessage
	if err := json.NewDecoder(server).Decode(&answer); err != nil {
		t.Fatal(err)
	}
	if string(answer["id"]) != `"echo"` || string(answer["result"]) != `[1,"two"]` || string(answer["error"]) != "null" {
		t.Errorf("answer %s", answer)
	}
}
