// SPDX-License-Identifier: Apache-2.0

// Package cluster is the cluster role: what no node can say alone. It sets Ready on Uplinks and UplinksReady on the
// networks that name them, keeps an Uplink while a network needs it, and deletes UplinkStates that nobody is
// responsible for any more.
package cluster

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ovn-uplink/ovn-uplink/shared/api/core"
	ovnk "github.com/ovn-uplink/ovn-uplink/shared/api/ovnk/v1"
	"github.com/ovn-uplink/ovn-uplink/shared/api/v1alpha1"
	"github.com/ovn-uplink/ovn-uplink/shared/events"
	"github.com/ovn-uplink/ovn-uplink/shared/kube"
	"github.com/ovn-uplink/ovn-uplink/shared/lease"
	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/rest"
)

// Config is what the role needs to know.
type Config struct {
	// Component and Instance are who Events are from.
	Component, Instance string
	// SharedGateway is false in a cluster in local gateway mode, where no network can have an Uplink.
	SharedGateway bool
	// Dynamic is true with Dynamic UDN: a network is active only on nodes with a pod of its namespaces.
	Dynamic bool
	// Lease is campaigned for; nil: this is the only replica.
	Lease *lease.Config
	// Settle is the least time between two writes to an object of which only the message changes.
	Settle time.Duration
	// Resync is how often everything is looked at although no event came.
	Resync time.Duration
	// Grace is how long a state of a deselected node is left to the node's host agent, which has the gateway taken
	// down first; longer than uplinkstate.LeaveAnswerTimeout.
	Grace time.Duration
}

// QPS and burst of requests to the API server: one process writes for the whole cluster.
const (
	qps   = 100
	burst = 200
)

// source is something that is watched, see whole before anything is concluded.
type source interface {
	kube.Source
	Run(ctx context.Context)
}

// Role is the cluster role. It implements agent.Role.
type Role struct {
	config    Config
	world     *world
	uplinks   *kube.Informer[*v1alpha1.Uplink]
	networks  *kube.Informer[*ovnk.ClusterUserDefinedNetwork]
	sources   []source
	intruders *uplinkstate.Intruders
	elector   *lease.Elector // nil without election
	recorder  *events.Recorder
	api       api
	term      atomic.Pointer[term] // while leading
}

// api is what the role writes to, and asks before it deletes.
type api struct {
	uplinks  kube.Resource[*v1alpha1.Uplink]
	states   kube.Resource[*v1alpha1.UplinkState]
	networks kube.Resource[*ovnk.ClusterUserDefinedNetwork]
	nodes    kube.Metadata
}

// New makes the role; Run starts it.
func New(rc *rest.Config, config Config) (*Role, error) {
	rc = rest.CopyConfig(rc)
	rc.QPS, rc.Burst = qps, burst
	r := &Role{config: config, intruders: &uplinkstate.Intruders{}}
	if err := r.connect(rc); err != nil {
		return nil, err
	}
	r.world = newWorld(config.SharedGateway, config.Dynamic, listeners{
		uplink:  func(name string) { r.whileLeading(func(t *term) { t.uplinks.Add(name) }) },
		network: func(name string) { r.whileLeading(func(t *term) { t.networks.Add(name) }) },
		node:    func(name string) { r.whileLeading(func(t *term) { t.nodes.Add(name) }) },
	})
	r.uplinks = kube.NewInformer(r.api.uplinks, nil)
	r.uplinks.OnChange(func(u *v1alpha1.Uplink) { r.world.setUplink(u.Name, latest(r.uplinks, u.Name)) })
	r.networks = kube.NewInformer(r.api.networks, nil)
	r.networks.OnChange(func(n *ovnk.ClusterUserDefinedNetwork) { r.world.setNetwork(n.Name, latest(r.networks, n.Name)) })
	r.sources = []source{
		r.uplinks,
		r.networks,
		kube.NewMetadataFeed(r.api.nodes, nodes{r.world}),
		kube.NewFeed(r.api.states, nil, states{r.world, r.intruders}),
	}
	return r, r.watchActivity(rc)
}

// connect makes the clients.
func (r *Role) connect(rc *rest.Config) (err error) {
	if r.api.uplinks, err = kube.Uplinks(rc); err != nil {
		return err
	}
	if r.api.states, err = kube.UplinkStates(rc); err != nil {
		return err
	}
	if r.api.networks, err = kube.ClusterUserDefinedNetworks(rc); err != nil {
		return err
	}
	if r.api.nodes, err = kube.NewMetadata(rc, "nodes"); err != nil {
		return err
	}
	if r.recorder, err = events.NewRecorder(rc, r.config.Component, r.config.Instance); err != nil {
		return err
	}
	if r.config.Lease != nil {
		r.elector, err = lease.New(rc, *r.config.Lease)
	}
	return err
}

// watchActivity adds what only Dynamic UDN needs.
func (r *Role) watchActivity(rc *rest.Config) error {
	if !r.config.Dynamic {
		return nil
	}
	all, err := kube.NewMetadata(rc, "namespaces")
	if err != nil {
		return err
	}
	scheduled, err := kube.Pods(rc)
	if err != nil {
		return err
	}
	// The API server leaves out those that no network is active for; one that ends is seen as deleted.
	selector := fields.ParseSelectorOrDie("spec.nodeName!=,status.phase!=" + core.PodSucceeded + ",status.phase!=" + core.PodFailed)
	r.sources = append(r.sources,
		kube.NewMetadataFeed(all, namespaces{r.world}),
		kube.NewFeed(scheduled, selector, pods{r.world}))
	return nil
}

// latest is what an informer has of an object, nil if nothing.
func latest[T kube.Object](i *kube.Informer[T], name string) T {
	object, ok := i.Get(name)
	if !ok {
		var none T
		return none
	}
	return object
}

// Name implements agent.Role.
func (r *Role) Name() string { return "cluster" }

// Run implements agent.Role.
func (r *Role) Run(ctx context.Context) error {
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { r.recorder.Run(ctx) })
	for _, s := range r.sources {
		running.Go(func() { s.Run(ctx) })
	}
	// Also a replica that only stands by sees everything, so that a hand-over takes no time.
	if kube.WaitReady(ctx, r.required()...) != nil {
		return nil
	}
	r.world.goLive()
	if r.elector == nil {
		r.lead(ctx)
		return nil
	}
	r.elector.Run(ctx, r.lead)
	return nil
}

func (r *Role) required() []kube.Source {
	required := []kube.Source{r.intruders}
	for _, s := range r.sources {
		required = append(required, s)
	}
	return required
}

// lead works until the context ends.
func (r *Role) lead(ctx context.Context) {
	t := newTerm(r)
	r.term.Store(t)
	defer r.term.Store(nil)
	t.run(ctx)
}

func (r *Role) whileLeading(f func(*term)) {
	if t := r.term.Load(); t != nil {
		f(t)
	}
}

// Ready implements agent.Role. A replica that stands by is ready.
func (r *Role) Ready() error {
	if err := kube.AllReady(r.required()...); err != nil {
		return err
	}
	if r.elector != nil {
		return r.elector.Ready()
	}
	return nil
}

// Healthy implements agent.Role.
func (r *Role) Healthy(now time.Time) error {
	var err error
	r.whileLeading(func(t *term) { err = t.healthy(now) })
	return err
}
