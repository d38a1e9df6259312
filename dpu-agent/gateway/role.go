// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ovn-uplink/ovn-uplink/dpu-agent/locate"
	"github.com/ovn-uplink/ovn-uplink/dpu-agent/openflow"
	"github.com/ovn-uplink/ovn-uplink/dpu-agent/ovn"
	"github.com/ovn-uplink/ovn-uplink/dpu-agent/routeimport"
	"github.com/ovn-uplink/ovn-uplink/dpu-agent/service"
	"github.com/ovn-uplink/ovn-uplink/dpu-agent/vrf"
	"github.com/ovn-uplink/ovn-uplink/shared/api/v1alpha1"
	"github.com/ovn-uplink/ovn-uplink/shared/events"
	"github.com/ovn-uplink/ovn-uplink/shared/kube"
	"github.com/ovn-uplink/ovn-uplink/shared/reconcile"
	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
	"k8s.io/client-go/rest"
)

// Role is the gateway role. It implements agent.Role.
type Role struct {
	config    Config
	rest      *rest.Config
	client    kube.Resource[*v1alpha1.UplinkState]
	observer  *locate.Observer
	flows     *openflow.Programmer
	routing   *routing
	importer  *routeimport.Importer
	loop      *reconcile.Loop
	nudge     *nudge
	intruders uplinkstate.Intruders
	current   atomic.Pointer[world] // set once the node's name is known

	// Set before the loop runs, and used by it alone.
	*world
	// withoutOVN is for a command where there is no OVN any more.
	withoutOVN bool

	seen     bool // the northbound database was there since the start
	activity activity
	waits    waits
	outcomes map[string]ovn.Outcome                             // what OVN had last, by Uplink
	bridges  map[string]string                                  // where the flows of each Uplink are
	said     map[string]string                                  // service conflicts that were logged, by Uplink
	noted    map[string]string                                  // what was logged about imported routes, by Uplink
	checks   map[string]map[service.Place][]service.HealthCheck // health checks to answer, by Uplink
}

// New makes the role; Run starts it. An error is a mistake in the Config.
func New(rc *rest.Config, observer *locate.Observer, config Config) (*Role, error) {
	client, err := kube.UplinkStates(rc)
	if err != nil {
		return nil, err
	}
	r := newRole(observer, config)
	r.rest, r.client = rc, client
	r.loop = reconcile.New("gateway", config.Resync, r.keys, r.reconcile)
	r.nudge = &nudge{pass: r.loop.AddAll}
	observer.OVS.OnChange((&outlook{ovs: observer.OVS, pass: r.nudge.now}).changed)
	observer.OnCardChange(r.nudge.now)
	r.flows.OnDrift(func(string) { r.nudge.now() })
	r.importer = routeimport.New(routeimport.Config{
		Grace: config.ImportGrace, Resync: config.Resync, OnChange: r.loop.Add, Metrics: routeimport.Prometheus(),
	})
	return r, nil
}

// newRole makes what also a command needs that does the role's work once.
func newRole(observer *locate.Observer, config Config) *Role {
	r := &Role{
		config: config, observer: observer,
		flows: openflow.New(openflow.Config{
			RunDir: config.OVSRunDir, FirstZone: config.Zones[0], LastZone: config.Zones[1], Logger: slog.Default(),
		}),
		activity: activity{dynamic: config.Dynamic, grace: config.InactiveGrace, left: map[string]time.Time{}},
		waits:    waits{}, outcomes: map[string]ovn.Outcome{}, bridges: map[string]string{},
		said: map[string]string{}, noted: map[string]string{}, checks: map[string]map[service.Place][]service.HealthCheck{},
	}
	r.routing = newRouting(config.VRF, r.drifted)
	return r
}

// drifted is told what others changed on interfaces in VRFs.
func (r *Role) drifted(d vrf.Drift) {
	if w := r.current.Load(); w != nil && (d.Fighting || d.Err != nil) {
		if state, ok := w.states.Get(uplinkstate.Name(d.VRF.Uplink, w.node)); ok {
			w.recorder.Record(about(state), events.Warning, uplinkstate.ReasonUplinkVRFAttachmentFailed, "RepairVRF", drift(d).Message)
		}
	}
	if r.nudge != nil {
		r.nudge.now()
	}
}

// drift is what is wrong with an interface in a VRF.
func drift(d vrf.Drift) *uplinkstate.Problem {
	what := fmt.Sprintf("interface %s in VRF %s: %s", d.Interface, d.VRF.Name, d.What)
	switch {
	case d.Err != nil:
		what += ": " + d.Err.Error()
	case d.Fighting:
		what += "; it was put right again and again, so somebody else undoes it: find out who manages this interface"
	}
	return uplinkstate.Problemf(uplinkstate.ReasonUplinkVRFAttachmentFailed, "%s", what)
}

// Name implements agent.Role.
func (r *Role) Name() string { return "gateway" }

// Run implements agent.Role.
func (r *Role) Run(ctx context.Context) error {
	var running sync.WaitGroup
	defer running.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	node, err := r.observer.WaitNode(ctx)
	if err != nil {
		return nil
	}
	if len(r.config.Ranges.ServiceCIDRs) == 0 {
		if r.config.Ranges.ServiceCIDRs, err = waitServiceCIDRs(ctx, r.rest); err != nil {
			return nil
		}
	}
	if err := r.config.Ranges.Validate(); err != nil {
		return err
	}
	if r.world, err = r.look(node); err != nil {
		return err
	}
	r.current.Store(r.world)
	if err := r.routing.vrfs.Resume(ctx); err != nil {
		slog.Warn("cannot finish what an earlier run began with VRFs; trying again", "error", err)
	}
	for _, run := range r.run {
		running.Go(func() { run(ctx) })
	}
	if kube.WaitReady(ctx, r.sources...) != nil {
		return nil
	}
	slog.Info("programming gateways", "node", node)
	r.loop.AddAll()
	r.loop.Add("") // the sweep
	running.Go(func() { r.loop.Run(ctx) })
	return r.observer.WatchNode(ctx, node)
}

// Ready implements agent.Role.
func (r *Role) Ready() error {
	w := r.current.Load()
	if w == nil {
		return errors.New("starting, or waiting for the node's name or the cluster's service subnets")
	}
	if err := w.nb.Ready(); err != nil {
		return fmt.Errorf("waiting for the northbound database of OVN: %w", err)
	}
	if err := r.importer.Ready(); err != nil {
		return err
	}
	return kube.AllReady(w.sources...)
}

// Healthy implements agent.Role.
func (r *Role) Healthy(now time.Time) error {
	if w := r.current.Load(); w != nil {
		if err := w.nb.Healthy(now); err != nil {
			return err
		}
	}
	if err := r.importer.Healthy(now); err != nil {
		return err
	}
	return r.loop.Healthy(now)
}

// keys are the Uplinks that have a state or anything programmed.
func (r *Role) keys() []string {
	w := r.current.Load()
	if w == nil {
		return nil
	}
	keys := map[string]bool{}
	for _, s := range w.states.List() {
		keys[s.Spec.UplinkName] = true
	}
	for _, uplink := range r.programmed(w.nb) {
		keys[uplink] = true
	}
	return sortedKeys(keys)
}
