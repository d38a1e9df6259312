// SPDX-License-Identifier: Apache-2.0

package openflow

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestMonitorStays: drift is heard of by one flow monitor, and not by what one that ends all the time leads to.
func TestMonitorStays(t *testing.T) {
	r := newRig(t, nil)
	started := filepath.Join(t.TempDir(), "started")
	p := New(Config{RunDir: r.node.OVS.RunDir(), Program: ofctlScript(t,
		`case "$*" in *" monitor "*) echo monitor >> `+started+`;; esac`)})
	drifts := run(t, p)
	b := full(t)
	program(t, p, b)
	quietFor(t, p, drifts, 2*time.Second)
	r.ofctlRun(t, "--strict", "del-flows", "br0", "table=0,priority=31010,dl_src="+testMAC)
	select {
	case <-drifts:
	case <-time.After(2 * time.Second):
		t.Error("a deleted flow was not noticed")
	}
	text, err := os.ReadFile(started)
	do(t, err)
	if n := strings.Count(string(text), "monitor"); n != 1 {
		t.Errorf("%d monitors were started, want 1", n)
	}
}
