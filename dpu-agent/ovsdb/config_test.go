// SPDX-License-Identifier: Apache-2.0

package ovsdb

import (
	"crypto/tls"
	"strings"
	"testing"
	"time"
)

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
