// SPDX-License-Identifier: Apache-2.0

package ovsdb

import (
	"bytes"
	"crypto/tls"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ovn-uplink/ovn-uplink/dpu-agent/ovsdb/ovsdbtest"
)

func TestLogsOfTheLibraryAreDebug(t *testing.T) {
	server := ovsdbtest.Start(t)
	for _, level := range []slog.Level{slog.LevelInfo, slog.LevelDebug} {
		var out safeBuffer
		cfg := config(server.Endpoint())
		cfg.Logger = slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: level}))
		c := run(t, cfg)
		eventually(t, "connected", c.Connected)
		server.Vsctl("add-br", "br-"+level.String())
		eventually(t, "the bridge", func() bool { return slices.Contains(bridges(c), "br-"+level.String()) })
		if got, want := strings.Contains(out.String(), "libovsdb: "), level == slog.LevelDebug; got != want {
			t.Errorf("level %s: libovsdb logged: %v, want %v\n%s", level, got, want, out.String())
		}
	}
}

type safeBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.String()
}

func TestConfig(t *testing.T) {
	for endpoint, wrong := range map[string]string{
		"unix:/run/openvswitch/db.sock":     "",
		"tcp:192.0.2.1:6641":                "",
		"tcp:[2001:db8::1]:6641":            "",
		"ssl:192.0.2.1:6641,unix:/run/db.s": "",
		"":                                  "method must be",
		"unix:":                             "absolute path",
		"unix:db.sock":                      "absolute path",
		"tcp:":                              "HOST:PORT",
		"tcp:192.0.2.1":                     "HOST:PORT",
		"tcp::6641":                         "HOST:PORT",
		"punix:/run/db.sock":                "method must be",
		"/run/db.sock":                      "method must be",
	} {
		cfg := config(endpoint)
		cfg.TLS = &tls.Config{}
		_, err := New(cfg)
		if (err == nil) != (wrong == "") || err != nil && !strings.Contains(err.Error(), wrong) {
			t.Errorf("endpoint %q: error %v, want %q", endpoint, err, wrong)
		}
	}
	if _, err := New(config("ssl:192.0.2.1:6641")); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("ssl without TLS: error %v", err)
	}
	cfg := config("unix:/none")
	cfg.Root = "NB_Global"
	if _, err := New(cfg); err == nil {
		t.Error("a root table that is not followed was accepted")
	}
}

func TestBackoff(t *testing.T) {
	var b backoff
	for _, full := range []time.Duration{100, 200, 400, 800, 1600, 3200, 5000, 5000} {
		full *= time.Millisecond
		if wait := b.next(); wait > full || wait < full*3/4 {
			t.Errorf("wait %s, want between three quarters of %s and all of it", wait, full)
		}
	}
}
