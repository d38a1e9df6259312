// SPDX-License-Identifier: Apache-2.0

package vrf

import (
	"context"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
)

// watched is an Attacher that watches, with u0 attached to blue, and what it told.
type watched struct {
	*Attacher
	mu   sync.Mutex
	told []Drift
}

func watch(t *testing.T) *watched {
	t.Helper()
	w := &watched{Attacher: newAttacher(t)}
	w.cfg.OnDrift = func(d Drift) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.told = append(w.told, d)
	}
	attach(t, w.Attacher, "u0", blue)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := w.Watch(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { cancel(); running.Wait() })
	return w
}

// await waits until something was told.
func (w *watched) await(t *testing.T, what string, is func(Drift) bool) Drift {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		w.mu.Lock()
		i := slices.IndexFunc(w.told, is)
		told := slices.Clone(w.told)
		w.mu.Unlock()
		if i >= 0 {
			return told[i]
		}
		if time.Now().After(deadline) {
			t.Fatalf("not told: %s; only %+v", what, told)
		}
	}
}

// TestKernelDriftIsRepaired: D16, G2. What others undo is put right, by event, and told.
func TestKernelDriftIsRepaired(t *testing.T) {
	newLink(t, few...)
	w := watch(t)
	inside := settled(t, snapshot)
	for _, c := range []struct{ name, command, what string }{
		{"the interface is taken out", "link set u0 nomaster", "taken out"},
		{"the VRF is deleted", "link del blue", "VRF blue is gone"},
		{"the VRF is set down", "link set blue down", "set down"},
		{"routes are flushed", "route flush vrf blue proto boot", "gone: route"},
	} {
		t.Run(c.name, func(t *testing.T) {
			begin := time.Now()
			ip(t, c.command)
			d := w.await(t, c.what, func(d Drift) bool { return strings.Contains(d.What, c.what) })
			if d.Err != nil || d.Fighting || d.Interface != "u0" || d.VRF != blue {
				t.Errorf("told %+v", d)
			}
			t.Logf("told after %s", time.Since(begin).Round(time.Millisecond))
			wantAsBefore(t, "after the repair", inside, snapshot)
			if d, ok := w.Drifted("u0"); ok {
				t.Errorf("still wrong: %+v", d)
			}
		})
	}
}

// TestKernelChangesAreFollowed: what an administrator changes on an interface while it is attached stays changed, and
// goes with it when it is detached.
func TestKernelChangesAreFollowed(t *testing.T) {
	newLink(t, few...)
	w := watch(t)
	ip(t, "route replace default via 192.0.2.9 vrf blue", "route add 198.51.109.0/24 via 192.0.2.1 vrf blue", "addr add 10.5.0.1/24 dev u0",
		"-6 addr del 2001:db8:1::5/64 dev u0")
	deadline := time.Now().Add(10 * time.Second)
	for recorded := false; !recorded; time.Sleep(20 * time.Millisecond) {
		rec, err := w.journal.read("u0")
		if err != nil {
			t.Fatal(err)
		}
		held, err := rec.held()
		if err != nil {
			t.Fatal(err)
		}
		gone := !slices.ContainsFunc(held.addresses, func(a address) bool { return a.String() == "2001:db8:1::5/64" })
		recorded = gone && slices.ContainsFunc(held.routes, func(r route) bool { return r.dst.String() == "198.51.109.0/24" }) &&
			slices.ContainsFunc(held.addresses, func(a address) bool { return a.String() == "10.5.0.1/24" })
		if time.Now().After(deadline) {
			t.Fatalf("the journal has %+v", held)
		}
	}
	w.mu.Lock()
	if len(w.told) > 0 {
		t.Errorf("taken for drift: %+v", w.told)
	}
	w.mu.Unlock()
	// What was recorded outlasts what happens to the VRF.
	ip(t, "link del blue")
	w.await(t, "that the VRF is gone", func(d Drift) bool { return strings.Contains(d.What, "gone") && d.Err == nil })
	detach(t, w.Attacher, "u0")
	got := strings.Join(mainRoutes(t, "table main"), "\n")
	// The kernel keeps a route to a router that it has no route to any more, and so do we.
	for _, part := range []string{"default via 192.0.2.9", "198.51.109.0/24 via 192.0.2.1", "10.5.0.0/24", "default via 2001:db8:1::1 dev u0"} {
		if !strings.Contains(got, part) {
			t.Errorf("routes lack %q:\n%s", part, got)
		}
	}
	for _, part := range []string{"default via 192.0.2.1", "2001:db8:1::/64"} {
		if strings.Contains(got, part) {
			t.Errorf("routes still have %q:\n%s", part, got)
		}
	}
}

// TestKernelFightsAreTold: somebody who always undoes it is told of, and not outdone at any price.
func TestKernelFightsAreTold(t *testing.T) {
	newLink(t, few...)
	w := watch(t)
	ctx, stop := context.WithCancel(context.Background())
	var other sync.WaitGroup
	other.Go(func() {
		for ctx.Err() == nil {
			_ = exec.Command("ip", "link", "set", "u0", "nomaster").Run()
			time.Sleep(50 * time.Millisecond)
		}
	})
	begin := time.Now()
	w.await(t, "a fight", func(d Drift) bool { return d.Fighting })
	if d, ok := w.Drifted("u0"); !ok || !d.Fighting {
		t.Errorf("what is wrong is %+v, %t", d, ok)
	}
	w.mu.Lock()
	if got := len(w.told); got > 6 {
		t.Errorf("%d repairs within %s", got, time.Since(begin))
	}
	w.mu.Unlock()
	stop()
	other.Wait()
}

// TestKernelGivenAway: D13, G3. An interface that somebody gives another master is his, and a conflict; when he lets go
// it returns.
func TestKernelGivenAway(t *testing.T) {
	newLink(t, few...)
	w := watch(t)
	inside := settled(t, snapshot)
	ip(t, "link add br9 type bridge", "link set u0 master br9")
	d := w.await(t, "a conflict", func(d Drift) bool { return d.Err != nil })
	wantProblem(t, d.Err, uplinkstate.ReasonUplinkConfigurationConflict, "br9", "bridge")
	if _, ok := w.Drifted("u0"); !ok {
		t.Error("nothing is wrong")
	}
	if l, err := openAndFind("u0"); err != nil || l.master == 0 {
		t.Errorf("the interface was taken away from its new master: %+v, %v", l, err)
	}
	ip(t, "link del br9")
	w.await(t, "that it is back", func(d Drift) bool { return d.Err == nil && strings.Contains(d.What, "taken out") })
	wantAsBefore(t, "after its master let go", inside, snapshot)
}

// TestKernelInterfaceGone: D3. What was taken of an interface goes with it, and another one of its name is another one.
func TestKernelInterfaceGone(t *testing.T) {
	newLink(t, few...)
	w := watch(t)
	ip(t, "link del u0")
	w.await(t, "that it is gone", func(d Drift) bool { return d.What == "the interface is gone" })
	if exists(t, "blue") {
		t.Error("its VRF was left")
	}
	if names, err := w.journal.interfaces(); err != nil || len(names) > 0 {
		t.Errorf("the journal has %q, %v", names, err)
	}
	newLink(t, "addr add 192.0.2.77/24 dev u0", "link property add dev u0 altname uplink0", "link set u0 down")
	attach(t, w.Attacher, "uplink0", blue)
	ip(t, "link set u0 up")
	if got := mainRoutes(t, "vrf blue"); len(got) != 1 || !strings.Contains(got[0], "192.0.2.77") {
		t.Errorf("routes in the VRF are %q", got)
	}
	detach(t, w.Attacher, "uplink0")
	if got := mainRoutes(t, "table main"); len(got) != 1 || exists(t, "blue") {
		t.Errorf("routes are %q", got)
	}
}
