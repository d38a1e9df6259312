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

	"github.com/ovn-uplink/ovn-uplink/shared/api/v1alpha1"
	"github.com/ovn-uplink/ovn-uplink/shared/events"
	"github.com/ovn-uplink/ovn-uplink/shared/kube"
	"github.com/ovn-uplink/ovn-uplink/shared/reconcile"
	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
)

// hostNodeNameKey is the external_ids key by which OVN-Kubernetes names the host of a DPU.
const hostNodeNameKey = "host-k8s-nodename"

// Config is what the role needs to know.
type Config struct {
	// Node is the name of the Node whose states to resolve; empty: what Open vSwitch says of the host.
	Node string
	// Regular is true where Open vSwitch runs on the same machine as the workload.
	Regular bool
	System  System
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
	eyes      *eyes
	locate    locator
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
func New(rc *rest.Config, config Config) (*Role, error) {
	client, err := kube.UplinkStates(rc)
	if err != nil {
		return nil, err
	}
	config.System.Resync = config.Resync
	e, err := open(config.System)
	if err != nil {
		return nil, err
	}
	r := &Role{
		config: config,
		rest:   rc,
		client: client,
		eyes:   e,
		locate: onCard,
		settle: reconcile.NewSettle(config.Settle, uplinkstate.DPUHalf.Equal),
		hosts:  map[string]uplinkstate.HostHalf{},
		warned: map[string]string{},
	}
	if config.Regular {
		r.locate = onNode
	}
	r.loop = reconcile.New("resolve", config.Resync, r.keys, r.reconcile)
	e.onChange(r.loop.AddAll)
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
	running.Go(func() { r.eyes.run(ctx) })

	node, err := r.waitForNode(ctx)
	if err != nil {
		return nil
	}
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
	return r.watchNode(ctx, node)
}

// waitForNode returns the name of the Node whose states to resolve, and says what it waits for.
func (r *Role) waitForNode(ctx context.Context) (string, error) {
	var said string
	for {
		name, err := r.node()
		if err == nil {
			slog.Info("serving the UplinkStates of a node", "node", name)
			return name, nil
		}
		if said != err.Error() {
			said = err.Error()
			slog.Warn("waiting", "cause", err)
		}
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// watchNode ends the role when Open vSwitch names another host: everything has to be started anew then.
func (r *Role) watchNode(ctx context.Context, node string) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Second):
		}
		if now, err := r.node(); err == nil && now != node {
			return fmt.Errorf("the host of this DPU changed from %s to %s; starting anew", node, now)
		}
	}
}

// node is the name given with a flag, else the one that Open vSwitch has.
func (r *Role) node() (string, error) {
	if r.config.Node != "" {
		return r.config.Node, nil
	}
	view, known := r.eyes.ovs.Latest()
	if !known {
		return "", fmt.Errorf("for Open vSwitch, to learn the host's node name: %w", r.eyes.ovs.Ready())
	}
	name := view.ExternalIDs[hostNodeNameKey]
	if name == "" {
		return "", fmt.Errorf("for the host's node name: set it with 'ovs-vsctl set Open_vSwitch . external_ids:%s=NODE', or give --host-node-name", hostNodeNameKey)
	}
	if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
		return "", fmt.Errorf("for a valid host node name: external_ids:%s is %q", hostNodeNameKey, name)
	}
	return name, nil
}

// Ready implements agent.Role.
func (r *Role) Ready() error {
	if err := r.eyes.ovs.Ready(); err != nil {
		return fmt.Errorf("waiting for Open vSwitch: %w", err)
	}
	if err := kube.AllReady(r.eyes.card, r.eyes.links); err != nil {
		return err
	}
	states := r.informer.Load()
	if states == nil {
		if _, err := r.node(); err != nil {
			return fmt.Errorf("waiting %w", err)
		}
		return errors.New("starting")
	}
	return kube.AllReady(states, &r.intruders)
}

// Healthy implements agent.Role.
func (r *Role) Healthy(now time.Time) error {
	if err := r.eyes.healthy(now); err != nil {
		return err
	}
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

// find follows the chain with what is seen now.
func (r *Role) find(host uplinkstate.HostData) (Finding, error) {
	seen, err := r.eyes.look()
	if err != nil {
		return Finding{}, err
	}
	finding, _, err := find(seen, r.locate, host)
	return finding, err
}
