// SPDX-License-Identifier: Apache-2.0

package openflow

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/ovn-uplink/ovn-uplink/test/lab"
)

// repaired waits until a bridge's flows and patch port are as they should be, and returns how long that took.
func repaired(t *testing.T, p *Programmer, b Bridge) time.Duration {
	t.Helper()
	begin := time.Now()
	want, err := b.Flows()
	do(t, err)
	eventually(t, 10*time.Second, func(ctx context.Context) error {
		have, err := p.Dump(ctx, "br0")
		if err != nil {
			return err
		}
		if diff := cmp.Diff(flowText(want), flowText(have)); diff != "" {
			return fmt.Errorf("flows differ:\n%s", diff)
		}
		floods, exists, err := p.ofctl.floods(ctx, "br0", b.Patch)
		if err == nil && (floods || !exists) {
			err = fmt.Errorf("patch port %d: exists %t, floods %t", b.Patch, exists, floods)
		}
		return err
	})
	return time.Since(begin)
}

// repairing programs a bridge whenever it drifts, as the agent does.
func repairing(t *testing.T, p *Programmer, b Bridge) {
	t.Helper()
	drifts := run(t, p)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-ctx.Done():
				return
			case <-drifts:
			}
			for {
				if _, err := p.Program(ctx, b); err == nil || ctx.Err() != nil {
					break
				}
				wait(ctx, 50*time.Millisecond)
			}
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
}

// quietFor checks that nothing is sent and no drift seen for a while.
func quietFor(t *testing.T, p *Programmer, drifts <-chan string, d time.Duration) {
	t.Helper()
	flows, ports := p.Mods()
	select {
	case <-drifts:
		t.Error("a drift was seen where nobody changed anything")
	case <-time.After(d):
	}
	if f, n := p.Mods(); f != flows || n != ports {
		t.Errorf("at rest %d flow mods and %d port mods were sent", f-flows, n-ports)
	}
}

// TestDriftIsNoticed changes flows behind the programmer's back in every way.
func TestDriftIsNoticed(t *testing.T) {
	eachOVS(t, func(t *testing.T, build *lab.OVSBuild) {
		r := newRig(t, build)
		p := r.programmer(t)
		drifts := run(t, p)
		b := full(t)
		program(t, p, b)
		quietFor(t, p, drifts, time.Second)
		b.Services = append(b.Services, services(500)...)
		program(t, p, b)
		quietFor(t, p, drifts, time.Second)

		own := "cookie=0x75706c6b0000fac8"
		guard := "table=0,priority=31010,dl_src=" + testMAC
		for _, c := range []struct {
			name string
			args []string
		}{
			{"a flow deleted", []string{"--strict", "del-flows", "br0", guard}},
			{"all flows deleted", []string{"del-flows", "br0", own + "/-1"}},
			{"other actions", []string{"--strict", "mod-flows", "br0", guard + ",actions=NORMAL"}},
			{"replaced by another's", []string{"add-flow", "br0", guard + ",cookie=0x7,actions=NORMAL"}},
			{"another flow with the cookie", []string{"add-flow", "br0", own + ",table=9,priority=5,ip,actions=drop"}},
			{"the cookie at another priority", []string{"add-flow", "br0", own + ",priority=31011,dl_src=" + testMAC + ",actions=drop"}},
			{"a timeout", []string{"add-flow", "br0", own + "," + guard + ",idle_timeout=600,actions=drop"}},
			{"a table emptied", []string{"del-flows", "br0", "table=171"}},
			{"the patch port made anew", nil},
		} {
			if c.args == nil {
				r.patch(t, 2)
			} else {
				r.ofctlRun(t, c.args...)
			}
			select {
			case <-drifts:
			case <-time.After(3 * time.Second):
				t.Errorf("%s: not noticed", c.name)
			}
			program(t, p, b)
			if took := repaired(t, p, b); took > time.Second {
				t.Errorf("%s: repaired after %v", c.name, took)
			}
			quietFor(t, p, drifts, 500*time.Millisecond)
		}
	})
}

// TestB22ForeignFlowsStay: other cookies are neither read, nor repaired, nor removed.
func TestB22ForeignFlowsStay(t *testing.T) {
	eachOVS(t, func(t *testing.T, build *lab.OVSBuild) {
		r := newRig(t, build)
		for _, flow := range []string{
			"table=0,priority=500,cookie=0x5,ip,nw_dst=192.0.2.77,actions=drop",
			"table=0,priority=31010,cookie=0x75706c6c00000000,ip,nw_dst=192.0.2.78,actions=drop",
			"table=170,priority=1,actions=drop",
			"table=0,priority=1,in_port=1,actions=NORMAL",
		} {
			r.ofctlRun(t, "add-flow", "br0", flow)
		}
		foreign := func() string {
			var keep []string
			for line := range strings.Lines(r.ofctlRun(t, "--no-stats", "dump-flows", "br0")) {
				if !strings.Contains(line, "cookie=0x75706c6b") {
					keep = append(keep, line)
				}
			}
			slices.Sort(keep) // their order depends on what else there is
			return strings.Join(keep, "")
		}
		before := foreign()
		p := r.programmer(t)
		drifts := run(t, p)
		b := full(t)
		b.Secure = true
		program(t, p, b)
		r.ofctlRun(t, "add-flow", "br0", "table=3,priority=7,ip,actions=drop")
		r.ofctlRun(t, "del-flows", "br0", "table=3")
		quietFor(t, p, drifts, 500*time.Millisecond)
		if after := foreign(); after != before {
			t.Errorf("foreign flows changed from\n%s\nto\n%s", before, after)
		}
		do(t, p.Remove(t.Context(), "br0"))
		if left, err := p.Dump(t.Context(), "br0"); err != nil || len(left) > 0 || foreign() != before {
			t.Errorf("left after the removal: %v (%v), and of others\n%s", left, err, foreign())
		}
		if floods, exists, err := p.ofctl.floods(t.Context(), "br0", 2); !floods || !exists || err != nil {
			t.Errorf("patch port after the removal: floods %t, exists %t, %v", floods, exists, err)
		}
		quietFor(t, p, drifts, 500*time.Millisecond)
	})
}

// TestB20Restart: ovs-vswitchd comes back without flows and settings, and has all of them within two seconds.
func TestB20Restart(t *testing.T) {
	eachOVS(t, func(t *testing.T, build *lab.OVSBuild) {
		r := newRig(t, build)
		p := r.programmer(t)
		b := full(t)
		b.Services = append(b.Services, services(1000)...)
		program(t, p, b)
		repairing(t, p, b)
		for range 2 {
			do(t, r.node.OVS.StopVswitchd(t.Context()))
			do(t, r.node.OVS.StartVswitchd(t.Context()))
			if took := repaired(t, p, b); took > 2*time.Second {
				t.Errorf("restored after %v", took)
			}
		}
		r.hostUp(t)
		eventually(t, 5*time.Second, func(ctx context.Context) error { return ping(ctx, r.ovn, "203.0.113.9") })
	})
}

// TestB17OfportChanges: ovn-controller makes the patch port anew with another number.
func TestB17OfportChanges(t *testing.T) {
	eachOVS(t, func(t *testing.T, build *lab.OVSBuild) {
		r := newRig(t, build)
		p := r.programmer(t)
		drifts := run(t, p)
		b := full(t)
		b.Services = append(b.Services, services(200)...)
		program(t, p, b)
		eventually(t, 5*time.Second, func(ctx context.Context) error { return ping(ctx, r.ovn, "203.0.113.9") })
		b.Patch = 0
		program(t, p, b)
		r.patch(t, 7)
		b.Patch = 7
		change := program(t, p, b)
		if change.Added+change.Deleted > 30 {
			t.Errorf("a new number of the patch port took %+v", change)
		}
		eventually(t, 5*time.Second, func(ctx context.Context) error { return ping(ctx, r.ovn, "203.0.113.9") })
		repaired(t, p, b)
		quietFor(t, p, drifts, 500*time.Millisecond)
	})
}
