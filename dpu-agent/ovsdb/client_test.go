// SPDX-License-Identifier: Apache-2.0

package ovsdb

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/ovn-uplink/ovn-uplink/dpu-agent/ovsdb/ovsdbtest"
)

func TestFollow(t *testing.T) {
	server := ovsdbtest.Start(t)
	server.Vsctl("add-br", "br-blue")
	var told atomic.Int32
	c, err := New(config(server.Endpoint()))
	if err != nil {
		t.Fatal(err)
	}
	c.OnChange(func() { told.Add(1) })
	if content, err := c.Content(); content != nil || !errors.Is(err, ErrNotConnected) {
		t.Fatalf("before Run: content %v, error %v", content, err)
	}
	start(t, c)
	eventually(t, "br-blue", sees(c, "br-blue"))

	server.Vsctl("add-port", "br-blue", "p0", "tag=7")
	eventually(t, "p0 with its tag", func() bool {
		content, _ := c.Content()
		for _, port := range Rows[portRow](content, "Port") {
			if port.Name == "p0" && port.Tag != nil && *port.Tag == 7 {
				return true
			}
		}
		return false
	})
	if told.Load() < 2 {
		t.Errorf("told of %d changes, want at least 2", told.Load())
	}
	at := told.Load()
	during(t, 500*time.Millisecond, "nothing is told at rest", func() bool { return told.Load() == at })
}

// E1: after a leader hand-over the server closes the session and answers the new monitor with nothing.
func TestE1EmptyCopyIsNotConnected(t *testing.T) {
	server := ovsdbtest.Start(t)
	server.Vsctl("add-br", "br-blue")
	p := newProxy(t, server.Dir, server.Socket())
	c := run(t, config(p.endpoint))
	eventually(t, "br-blue", sees(c, "br-blue"))

	p.set(func(m map[string]json.RawMessage) map[string]json.RawMessage {
		if bytes.Contains(m["result"], []byte(`"initial"`)) {
			m["result"] = json.RawMessage(`{}`)
		}
		return m
	})
	p.closeAll()
	eventually(t, "not connected", func() bool { return !c.Connected() })
	during(t, time.Second, "the last content is kept, as unknown", func() bool {
		return !c.Connected() && slices.Equal(bridges(c), []string{"br-blue"})
	})
	_, err := c.Content()
	if err == nil || !strings.Contains(err.Error(), "table Open_vSwitch has no row") {
		t.Errorf("error does not say what is wrong: %v", err)
	}
	p.set(nil)
	eventually(t, "br-blue again", sees(c, "br-blue"))
}

// E2: nothing is concluded before the first monitor is complete.
func TestE2BlocksOnFirstMonitor(t *testing.T) {
	server := ovsdbtest.Start(t)
	server.Vsctl("add-br", "br-blue")
	p := newProxy(t, server.Dir, server.Socket())
	var asked atomic.Bool
	p.set(func(m map[string]json.RawMessage) map[string]json.RawMessage {
		if bytes.Contains(m["result"], []byte(`"initial"`)) {
			asked.Store(true)
			time.Sleep(time.Second)
		}
		return m
	})
	c := run(t, config(p.endpoint))
	eventually(t, "the monitor request", asked.Load)
	during(t, 700*time.Millisecond, "no content yet", func() bool {
		content, err := c.Content()
		return content == nil && err != nil
	})
	eventually(t, "br-blue", sees(c, "br-blue"))
}

func TestE2EmptyDatabaseIsNotConnected(t *testing.T) {
	server := ovsdbtest.StartEmpty(t, ovsdbtest.Schema)
	c := run(t, config(server.Endpoint()))
	during(t, 500*time.Millisecond, "not connected", func() bool { return !c.Connected() })
	server.Vsctl("init")
	eventually(t, "connected, without bridges", sees(c))
}

// E3: what was deleted while there was no connection is gone afterwards.
func TestE3DeletedWhileDisconnected(t *testing.T) {
	server := ovsdbtest.Start(t)
	server.Vsctl("add-br", "br-blue", "--", "add-br", "br-red")
	p := newProxy(t, server.Dir, server.Socket())
	c := run(t, config(p.endpoint))
	eventually(t, "two bridges", sees(c, "br-blue", "br-red"))

	p.set(func(map[string]json.RawMessage) map[string]json.RawMessage { return nil })
	p.closeAll()
	eventually(t, "not connected", func() bool { return !c.Connected() })
	server.Vsctl("del-br", "br-blue")
	if !slices.Equal(bridges(c), []string{"br-blue", "br-red"}) {
		t.Errorf("last content was not kept: %v", bridges(c))
	}
	p.set(nil)
	p.closeAll()
	eventually(t, "br-red only", sees(c, "br-red"))
}

func TestE3ServerKilledAndRestarted(t *testing.T) {
	server := ovsdbtest.Start(t)
	server.Vsctl("add-br", "br-blue")
	cfg := config(server.Endpoint())
	cfg.ProbeInterval = time.Minute // the end of a connection is an event, not found by probing
	c := run(t, cfg)
	eventually(t, "br-blue", sees(c, "br-blue"))
	for range 3 {
		server.Kill()
		eventually(t, "not connected", func() bool { return !c.Connected() })
		server.Restart()
		eventually(t, "br-blue again", sees(c, "br-blue"))
	}
	server.Vsctl("add-br", "br-red")
	eventually(t, "updates on the new connection", sees(c, "br-blue", "br-red"))
}

// E3: a connection whose other end is silent is found by the probe, and given up.
func TestE3HalfOpenConnection(t *testing.T) {
	server := ovsdbtest.Start(t)
	c := run(t, config(server.Endpoint()))
	eventually(t, "connected", c.Connected)
	server.Signal(syscall.SIGSTOP)
	eventually(t, "not connected", func() bool { return !c.Connected() })
	server.Signal(syscall.SIGCONT)
	eventually(t, "connected again", c.Connected)
}

// E3: after an update that cannot be applied the copy is wrong; a new one is needed.
func TestE3UpdateThatCannotBeApplied(t *testing.T) {
	server := ovsdbtest.Start(t)
	p := newProxy(t, server.Dir, server.Socket())
	c := run(t, config(p.endpoint))
	eventually(t, "connected", c.Connected)
	var spoiled atomic.Int32
	p.set(func(m map[string]json.RawMessage) map[string]json.RawMessage {
		if string(m["method"]) == `"update2"` && spoiled.Add(1) == 1 {
			m["params"] = bytes.ReplaceAll(m["params"], []byte(`"br-blue"`), []byte(`17`))
		}
		return m
	})
	server.Vsctl("add-br", "br-blue")
	eventually(t, "br-blue, from a new connection", sees(c, "br-blue"))
	if spoiled.Load() == 0 {
		t.Error("no update was spoiled")
	}
}

func TestHealthy(t *testing.T) {
	c, err := New(config("unix:/none"))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Healthy(time.Now()); err != nil {
		t.Errorf("before Run: %v", err)
	}
	c.alive()
	if err := c.Healthy(time.Now().Add(time.Hour)); err == nil {
		t.Error("a loop that has not moved for an hour counts as healthy")
	}
}
