// SPDX-License-Identifier: Apache-2.0

// Command allinone is what the bench compares the agents with: an agent of the usual making, that has client-go's
// typed clients, keeps every Node, Pod, Service, EndpointSlice, Namespace, Uplink and UplinkState of the cluster,
// and can talk to Open vSwitch. It does nothing with any of it, so that a real one is bigger. It is built from the
// libraries and in the frame of the real agents, trimming of memory included.
package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/ovn-uplink/ovn-uplink/dpu-agent/ovsdb"
	"github.com/ovn-uplink/ovn-uplink/shared/agent"
	"github.com/ovn-uplink/ovn-uplink/shared/api/v1alpha1"
	"github.com/ovn-uplink/ovn-uplink/shared/kube"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

var events = promauto.NewCounter(prometheus.CounterOpts{
	Name: "allinone_uplinkstate_events_total",
	Help: "Events of UplinkStates of all nodes.",
})

func main() {
	options := agent.Options{Component: "allinone", HealthAddress: "127.0.0.1:9983"}
	var database string
	root := &cobra.Command{
		Use:   "allinone",
		Short: "Watch everything, for comparison",
		Args:  agent.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := options.Validate(); err != nil {
				return err
			}
			config, err := kube.Config(options.Kubeconfig, "allinone", agent.Version)
			if err != nil {
				return err
			}
			r, err := newRole(config, database)
			if err != nil {
				return err
			}
			return agent.Run(cmd.Context(), options, r)
		},
	}
	options.AddFlags(root.Flags())
	root.Flags().StringVar(&database, "ovs-db", "", "`endpoint` of the OVSDB server to follow; empty for none")
	agent.Main(root)
}

// role watches. It implements agent.Role.
type role struct {
	builtin informers.SharedInformerFactory
	synced  []func() bool
	uplinks *kube.Informer[*v1alpha1.Uplink]
	states  *kube.Informer[*v1alpha1.UplinkState]
	ovs     *ovsdb.Client // nil without one
}

func newRole(config *rest.Config, database string) (*role, error) {
	// Built-in kinds come in the smaller encoding, as agents of this making ask for it.
	typed := rest.CopyConfig(config)
	typed.ContentType = "application/vnd.kubernetes.protobuf"
	client, err := kubernetes.NewForConfig(typed)
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	r := &role{builtin: informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(slim))}
	r.synced = []func() bool{
		r.builtin.Core().V1().Nodes().Informer().HasSynced,
		r.builtin.Core().V1().Pods().Informer().HasSynced,
		r.builtin.Core().V1().Services().Informer().HasSynced,
		r.builtin.Core().V1().Namespaces().Informer().HasSynced,
		r.builtin.Discovery().V1().EndpointSlices().Informer().HasSynced,
	}
	uplinks, err := kube.Uplinks(config)
	if err != nil {
		return nil, err
	}
	states, err := kube.UplinkStates(config)
	if err != nil {
		return nil, err
	}
	r.uplinks, r.states = kube.NewInformer(uplinks, nil), kube.NewInformer(states, nil)
	r.states.OnChange(func(*v1alpha1.UplinkState) { events.Inc() })
	if database != "" {
		r.ovs, err = ovsdb.New(ovsdb.Config{
			Endpoint: database, Database: "Open_vSwitch", Root: "Open_vSwitch",
			Tables: map[string]any{"Open_vSwitch": &openVSwitch{}, "Bridge": &bridge{}},
		})
	}
	return r, err
}

type (
	openVSwitch struct {
		UUID        string            `ovsdb:"_uuid"`
		ExternalIDs map[string]string `ovsdb:"external_ids"`
	}
	bridge struct {
		UUID string `ovsdb:"_uuid"`
		Name string `ovsdb:"name"`
	}
)

// slim drops what the real agents drop, too.
func slim(object any) (any, error) {
	if o, ok := object.(metav1.Object); ok {
		o.SetManagedFields(nil)
	}
	return object, nil
}

// Name implements agent.Role.
func (r *role) Name() string { return "allinone" }

// Run implements agent.Role.
func (r *role) Run(ctx context.Context) error {
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { r.uplinks.Run(ctx) })
	running.Go(func() { r.states.Run(ctx) })
	if r.ovs != nil {
		running.Go(func() { _ = r.ovs.Run(ctx) })
	}
	r.builtin.Start(ctx.Done())
	<-ctx.Done()
	r.builtin.Shutdown()
	return nil
}

// Ready implements agent.Role.
func (r *role) Ready() error {
	for i, synced := range r.synced {
		if !synced() {
			return fmt.Errorf("waiting for list %d of built-in kinds", i)
		}
	}
	return kube.AllReady(r.uplinks, r.states)
}

// Healthy implements agent.Role.
func (r *role) Healthy(time.Time) error { return nil }
