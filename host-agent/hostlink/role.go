// SPDX-License-Identifier: Apache-2.0

// Package hostlink is the host role: it reads one Linux interface per Uplink that selects this node, and
// publishes what it saw as the host half of the UplinkState. It knows nothing of Open vSwitch or OVN.
package hostlink

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/ovn-uplink/ovn-uplink/shared/api/v1alpha1"
	"github.com/ovn-uplink/ovn-uplink/shared/kernel"
	"github.com/ovn-uplink/ovn-uplink/shared/kube"
	"github.com/ovn-uplink/ovn-uplink/shared/reconcile"
	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/rest"
)

// Config is what the role needs to know.
type Config struct {
	// Node is the name of this node's Node object.
	Node string
	// Settle is how long a change must last before it is published.
	Settle time.Duration
	// Resync is how often everything is looked at although no event came.
	Resync time.Duration
	// SysfsRoot is where sysfs is mounted, normally /sys.
	SysfsRoot string
}

// Role is the host role. It implements agent.Role.
type Role struct {
	config    Config
	client    kube.Resource[*v1alpha1.UplinkState]
	uplinks   *kube.Informer[*v1alpha1.Uplink]
	states    *kube.Informer[*v1alpha1.UplinkState]
	nodes     *kube.Informer[*metav1.PartialObjectMetadata]
	intruders *uplinkstate.Intruders
	kernel    *kernel.Monitor
	functions FunctionReader
	loop      *reconcile.Loop
	settle    *reconcile.Settle[decision]
	said      map[string]string    // why nothing is published, by Uplink; touched by the loop alone
	leaving   map[string]time.Time // since when a state, by UID, is seen marked; touched by the loop alone
}

// New makes the role; Run starts it.
func New(rc *rest.Config, config Config) (*Role, error) {
	uplinks, err := kube.Uplinks(rc)
	if err != nil {
		return nil, err
	}
	client, err := kube.UplinkStates(rc)
	if err != nil {
		return nil, err
	}
	nodes, err := kube.NewNodeInformer(rc, config.Node)
	if err != nil {
		return nil, err
	}
	r := &Role{
		config:    config,
		client:    client,
		uplinks:   kube.NewInformer(uplinks, nil),
		states:    kube.NewInformer(client, fields.OneTermEqualSelector("spec.nodeName", config.Node)),
		nodes:     nodes,
		intruders: &uplinkstate.Intruders{},
		kernel:    kernel.NewMonitor(kernel.Options{Metrics: kernel.Prometheus(), Resync: config.Resync}),
		functions: NewFunctionReader(config.SysfsRoot),
		settle:    reconcile.NewSettle(config.Settle, sameDecision),
		said:      map[string]string{},
		leaving:   map[string]time.Time{},
	}
	r.loop = reconcile.New("host", config.Resync, r.keys, r.reconcile)
	r.states.SetGuard(r.intruders)
	r.uplinks.OnChange(func(u *v1alpha1.Uplink) { r.loop.Add(u.Name) })
	r.states.OnChange(func(s *v1alpha1.UplinkState) { r.loop.Add(s.Spec.UplinkName) })
	r.nodes.OnChange(func(*metav1.PartialObjectMetadata) { r.loop.AddAll() })
	r.kernel.OnChange(r.loop.AddAll)
	return r, nil
}

// Name implements agent.Role.
func (r *Role) Name() string { return "host" }

// Run implements agent.Role.
func (r *Role) Run(ctx context.Context) error {
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { r.uplinks.Run(ctx) })
	running.Go(func() { r.states.Run(ctx) })
	running.Go(func() { r.nodes.Run(ctx) })
	running.Go(func() { _ = r.kernel.Run(ctx) })
	if err := kube.WaitReady(ctx, r.uplinks, r.states, r.nodes, r.intruders, r.kernel); err != nil {
		return nil
	}
	r.loop.AddAll()
	r.loop.Run(ctx)
	return nil
}

// Ready implements agent.Role.
func (r *Role) Ready() error {
	if r.nodes.Ready() == nil {
		if _, ok := r.nodes.Get(r.config.Node); !ok {
			return fmt.Errorf("waiting for Node %s, which the cluster does not have; is --node-name right?", r.config.Node)
		}
	}
	return kube.AllReady(r.uplinks, r.states, r.nodes, r.intruders, r.kernel)
}

// Healthy implements agent.Role.
func (r *Role) Healthy(now time.Time) error {
	if err := r.kernel.Healthy(now); err != nil {
		return err
	}
	return r.loop.Healthy(now)
}

// keys are the names of all Uplinks that there are or that a state of this node is of.
func (r *Role) keys() []string {
	var names []string
	for _, uplink := range r.uplinks.List() {
		names = append(names, uplink.Name)
	}
	for _, state := range r.states.List() {
		names = append(names, state.Spec.UplinkName)
	}
	return names
}

func sameDecision(a, b decision) bool {
	return a.verb == b.verb && a.half.Equal(b.half)
}
