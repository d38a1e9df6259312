// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	"github.com/ovn-uplink/ovn-uplink/dpu-agent/ovn"
	"github.com/ovn-uplink/ovn-uplink/dpu-agent/service"
	"github.com/ovn-uplink/ovn-uplink/shared/api/networking"
	ovnk "github.com/ovn-uplink/ovn-uplink/shared/api/ovnk/v1"
	"github.com/ovn-uplink/ovn-uplink/shared/api/v1alpha1"
	"github.com/ovn-uplink/ovn-uplink/shared/events"
	"github.com/ovn-uplink/ovn-uplink/shared/kube"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/rest"
)

// world is what the role sees that depends on the name of the node.
type world struct {
	node      string
	nb        *ovn.DB
	states    *kube.Informer[*v1alpha1.UplinkState]
	cudns     *kube.Informer[*ovnk.ClusterUserDefinedNetwork]
	services  *service.Index
	listeners *service.Health
	occupancy *occupancy
	// advertising decides the routing domains of networks.
	advertising *advertising
	recorder    *events.Recorder
	sources     []kube.Source
	run         []func(context.Context)
}

// look makes the monitors for a node.
func (r *Role) look(node string) (*world, error) {
	w := &world{node: node, listeners: service.NewHealth(), occupancy: newOccupancy(r.nudge.now)}
	w.services = service.NewIndex(node, r.config.EndpointSource, func([]string) { r.nudge.now() })
	var err error
	if w.nb, err = ovn.New(ovn.Config{Endpoint: r.config.Northbound, Node: node, Ranges: r.config.Ranges}); err != nil {
		return nil, err
	}
	w.nb.OnChange(r.nudge.now)
	if w.recorder, err = events.NewRecorder(r.rest, r.config.Component, node); err != nil {
		return nil, err
	}
	w.states = kube.NewInformer(r.client, fields.OneTermEqualSelector("spec.nodeName", node))
	w.states.SetGuard(&r.intruders)
	w.states.OnChange(func(*v1alpha1.UplinkState) { r.loop.AddAll() }) // two may be on one bridge
	cudns, err := kube.ClusterUserDefinedNetworks(r.rest)
	if err != nil {
		return nil, err
	}
	w.cudns = kube.NewInformer(cudns, nil)
	w.cudns.OnChange(func(*ovnk.ClusterUserDefinedNetwork) { r.loop.AddAll() })
	w.sources = []kube.Source{w.states, &r.intruders, w.cudns}
	w.run = []func(context.Context){
		w.states.Run, w.cudns.Run, w.recorder.Run, w.listeners.Run,
		func(ctx context.Context) { _ = w.nb.Run(ctx) },
		func(ctx context.Context) { _ = r.flows.Run(ctx) },
		func(ctx context.Context) { _ = r.routing.vrfs.Watch(ctx) },
		func(ctx context.Context) { _ = r.importer.Run(ctx) },
	}
	if err := w.advertise(r.rest, r.nudge.now); err != nil {
		return nil, err
	}
	return w, r.feed(w)
}

// feed has the API server's objects brought to those who keep what they need of them.
func (r *Role) feed(w *world) error {
	services, err := kube.Services(r.rest)
	if err != nil {
		return err
	}
	slices, err := kube.EndpointSlices(r.rest, r.config.EndpointSource.Selector())
	if err != nil {
		return err
	}
	namespaces, err := kube.NewMetadata(r.rest, "namespaces")
	if err != nil {
		return err
	}
	w.add(kube.NewFeed(services, nil, w.services.ServiceSink()))
	w.add(kube.NewFeed(slices, nil, w.services.EndpointSliceSink()))
	w.add(kube.NewMetadataFeed(namespaces, tee[*metav1.PartialObjectMetadata]{w.services.NamespaceSink(), namespaceSink{w.occupancy}}))
	if !r.config.Dynamic {
		return nil
	}
	pods, err := kube.Pods(r.rest)
	if err != nil {
		return err
	}
	w.add(kube.NewFeed(pods, fields.OneTermEqualSelector("spec.nodeName", w.node), podSink{w.occupancy}))
	return nil
}

// add has a feed run, and waited for.
func (w *world) add(feed interface {
	kube.Source
	Run(context.Context)
}) {
	w.sources = append(w.sources, feed)
	w.run = append(w.run, feed.Run)
}

// tee passes objects to several sinks.
type tee[T kube.Object] []kube.Sink[T]

// Replace implements kube.Sink.
func (t tee[T]) Replace(all []T) {
	for _, s := range t {
		s.Replace(all)
	}
}

// Put implements kube.Sink.
func (t tee[T]) Put(object T) {
	for _, s := range t {
		s.Put(object)
	}
}

// Remove implements kube.Sink.
func (t tee[T]) Remove(object T) {
	for _, s := range t {
		s.Remove(object)
	}
}

// waitServiceCIDRs asks the API server for the cluster's service subnets until it knows. An error is the context's.
func waitServiceCIDRs(ctx context.Context, rc *rest.Config) ([]netip.Prefix, error) {
	resource, err := kube.ServiceCIDRs(rc)
	if err != nil {
		return nil, err
	}
	said := false
	for {
		prefixes, err := serviceCIDRs(ctx, resource)
		if err == nil {
			slog.Info("service subnets of the cluster", "subnets", prefixes)
			return prefixes, nil
		}
		if !said {
			said = true
			slog.Warn("waiting for the cluster's service subnets; give --service-cidrs if its API server does not know them", "cause", err)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(2 * time.Second):
		}
	}
}

func serviceCIDRs(ctx context.Context, resource kube.Resource[*networking.ServiceCIDR]) ([]netip.Prefix, error) {
	objects, err := resource.List(ctx)
	if err != nil {
		return nil, err
	}
	var prefixes []netip.Prefix
	for _, o := range objects {
		for _, text := range o.Spec.CIDRs {
			p, err := netip.ParsePrefix(text)
			if err != nil {
				return nil, fmt.Errorf("ServiceCIDR %s: %w", o.Name, err)
			}
			prefixes = append(prefixes, p.Masked())
		}
	}
	if len(prefixes) == 0 {
		return nil, errors.New("the API server has no ServiceCIDR")
	}
	return prefixes, nil
}
