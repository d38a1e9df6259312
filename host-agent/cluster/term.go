// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/ovn-uplink/ovn-uplink/shared/reconcile"
	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
)

// term is the work of one time of leading. It begins with nothing but what is observed.
type term struct {
	*Role
	uplinks  *reconcile.Loop // by name of the Uplink: Ready, finalizer, its states
	networks *reconcile.Loop // by name of the CUDN: UplinksReady
	nodes    *reconcile.Loop // by name of a Node that is gone: its states

	// Each is touched by one loop alone.
	uplinkWrites  pace
	networkWrites pace
	deselected    map[string]map[string]time.Time // by Uplink and node, since when the node is seen deselected
}

func newTerm(r *Role) *term {
	t := &term{
		Role:          r,
		uplinkWrites:  newPace(r.config.Settle),
		networkWrites: newPace(r.config.Settle),
		deselected:    map[string]map[string]time.Time{},
	}
	t.uplinks = reconcile.New("uplinks", r.config.Resync, r.world.uplinkNames, t.reconcileUplink)
	t.networks = reconcile.New("networks", r.config.Resync, r.world.networkNames, t.reconcileNetwork)
	t.nodes = reconcile.New("nodes", r.config.Resync, r.world.missingNodes, t.reconcileNode)
	return t
}

func (t *term) loops() []*reconcile.Loop {
	return []*reconcile.Loop{t.uplinks, t.networks, t.nodes}
}

// run works until the context ends, and returns when the last pass is done.
func (t *term) run(ctx context.Context) {
	var running sync.WaitGroup
	for _, loop := range t.loops() {
		loop.AddAll()
		running.Go(func() { loop.Run(ctx) })
	}
	running.Wait()
}

func (t *term) healthy(now time.Time) error {
	var errs []error
	for _, loop := range t.loops() {
		errs = append(errs, loop.Healthy(now))
	}
	return errors.Join(errs...)
}

// pace holds back writes of which only the message is new. While a thousand nodes come up, the count in a message
// changes a thousand times.
type pace struct {
	least  time.Duration
	writes map[string]time.Time
}

func newPace(least time.Duration) pace { return pace{least, map[string]time.Time{}} }

// wait is how long a write has still to wait.
func (p pace) wait(name string, published, wish uplinkstate.Condition, now time.Time) time.Duration {
	if published.Status != wish.Status || published.Reason != wish.Reason || published.Generation != wish.Generation {
		return 0
	}
	return p.writes[name].Add(p.least).Sub(now)
}

func (p pace) wrote(name string, now time.Time) { p.writes[name] = now }

func (p pace) forget(name string) { delete(p.writes, name) }
