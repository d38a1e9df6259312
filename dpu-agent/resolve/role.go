// SPDX-License-Identifier: Apache-2.0

// Package resolve is the first part of the dpu role: from the host half of an UplinkState it finds the OVS bridge
// behind the host's interface, validates it, and publishes it with the Resolved condition. It needs nothing but
// UplinkStates from the API server.
package resolve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ovn-uplink/ovn-uplink/dpu-agent/locate"
	"github.com/ovn-uplink/ovn-uplink/shared/api/v1alpha1"
	"github.com/ovn-uplink/ovn-uplink/shared/events"
	"github.com/ovn-uplink/ovn-uplink/shared/kube"
	"github.com/ovn-uplink/ovn-uplink/shared/reconcile"
	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/rest"
)

// Config is what the role needs to know.
type Config struct {
	// Settle is how long a change must last before it is published.
	Settle time.Duration
	// Resync is how often everything is looked at although no event came.
	Resync    time.Duration
	Component string
}

// Role is the resolve role. It implements agent.Role.
type Role struct {
	config    Config
	rest      *rest.Config
	client    kube.Resource[*v1alpha1.UplinkState]
	observer  *locate.Observer
	loop      *reconcile.Loop
	settle    *reconcile.Settle[uplinkstate.DPUHalf]
	intruders uplinkstate.Intruders
	informer  atomic.Pointer[kube.Informer[*v1alpha1.UplinkState]] // set once the node's name is known

	// Set before the loop runs, and used by it alone.
	states   *kube.Informer[*v1alpha1.UplinkState]
	recorder *events.Recorder
	hosts    map[string]uplinkstate.HostHalf // the host half that what is published was made from
	warned   map[string]string
}

// New makes the role; Run starts it. An error is a mistake in the Config.
func New(rc *rest.Config, observer *locate.Observer, config Config) (*Role, error) {
	client, err := kube.UplinkStates(rc)
	if err != nil {
		return nil, err
	}
	r := &Role{
		config:   config,
		rest:     rc,
		client:   client,
		observer: observer,
		settle:   reconcile.NewSettle(config.Settle, uplinkstate.DPUHalf.Equal),
		hosts:    map[string]uplinkstate.HostHalf{},
		warned:   map[string]string{},
	}
	r.loop = reconcile.New("resolve", config.Resync, r.keys, r.reconcile)
	observer.OnChange(r.loop.AddAll)
	return r, nil
}

// Name implements agent.Role.
func (r *Role) Name() string { return "resolve" }

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
	slog.Info("serving the UplinkStates of a node", "node", node)
	if r.recorder, err = events.NewRecorder(r.rest, r.config.Component, node); err != nil {
		return err
	}
	r.states = kube.NewInformer(r.client, fields.OneTermEqualSelector("spec.nodeName", node))
	r.states.SetGuard(&r.intruders)
	r.states.OnChange(func(s *v1alpha1.UplinkState) { r.loop.Add(s.Name) })
	r.informer.Store(r.states)
	running.Go(func() { r.recorder.Run(ctx) })
	running.Go(func() { r.states.Run(ctx) })
	if kube.WaitReady(ctx, r.states, &r.intruders) != nil {
		return nil
	}
	r.loop.AddAll()
	running.Go(func() { r.loop.Run(ctx) })
	return r.observer.WatchNode(ctx, node)
}

// Ready implements agent.Role.
func (r *Role) Ready() error {
	if err := r.observer.Ready(); err != nil {
		return err
	}
	states := r.informer.Load()
	if states == nil {
		if _, err := r.observer.Node(); err != nil {
			return fmt.Errorf("waiting %w", err)
		}
		return errors.New("starting")
	}
	return kube.AllReady(states, &r.intruders)
}

// Healthy implements agent.Role.
func (r *Role) Healthy(now time.Time) error {
	return r.loop.Healthy(now)
}

// keys are the names of all states of the node.
func (r *Role) keys() []string {
	states := r.informer.Load()
	if states == nil {
		return nil
	}
	var names []string
	for _, s := range states.List() {
		names = append(names, s.Name)
	}
	return names
}
