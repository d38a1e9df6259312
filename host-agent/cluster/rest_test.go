// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	ovnk "github.com/ovn-uplink/ovn-uplink/shared/api/ovnk/v1"
	"github.com/ovn-uplink/ovn-uplink/shared/api/v1alpha1"
	"github.com/ovn-uplink/ovn-uplink/test/lab"
	"k8s.io/client-go/rest"
)

// writes counts the requests that are no reads.
type writes struct {
	next http.RoundTripper
	n    *atomic.Int64
}

func (w writes) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet {
		w.n.Add(1)
	}
	return w.next.RoundTrip(r)
}

// Ten thousand passes over what is as it should be send nothing but reads of the own memory.
func TestNoWritesAtRest(t *testing.T) {
	l := lab.ForTest(t, lab.Options{})
	for _, dir := range []string{"chart/crds", "ovn-kubernetes-crds"} {
		must(t, l.ApplyFile(t.Context(), "../../deploy/host/"+dir))
	}
	must(t, l.CreateNode(t.Context(), "worker-a", nil))
	must(t, l.Apply(t.Context(), `
apiVersion: k8s.ovn.org/v1alpha1
kind: Uplink
metadata: {name: blue}
spec: {nodeConfigs: [{type: OVSBridge, nodeSelector: {}, hostInterfaceName: e0}]}
---
apiVersion: k8s.ovn.org/v1
kind: ClusterUserDefinedNetwork
metadata: {name: tenant}
spec:
  namespaceSelector: {matchLabels: {tenant: tenant}}
  uplinks: [blue]
  network: {topology: Layer3, layer3: {role: Primary, subnets: [{cidr: 10.200.0.0/16}]}}`))

	var sent atomic.Int64
	rc := rest.CopyConfig(l.RESTConfig())
	rc.Wrap(func(next http.RoundTripper) http.RoundTripper { return writes{next, &sent} })
	role, err := New(rc, Config{Component: "test", Instance: "test", SharedGateway: true, Settle: time.Second, Resync: time.Hour, Grace: time.Hour})
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = role.Run(ctx)
	}()
	defer func() { cancel(); <-done }()
	must(t, lab.Eventually(t.Context(), 20*time.Second, func(ctx context.Context) error { return settled(ctx, role) }))

	before := sent.Load()
	passes := newTerm(role) // beside the one that runs, as a replica would be that believes to lead too
	defer func() { cancel(); passes.run(ctx) }()
	for i := range 10_000 {
		if _, err := passes.reconcileUplink(t.Context(), "blue"); err != nil {
			t.Fatal(i, err)
		}
		if _, err := passes.reconcileNetwork(t.Context(), "tenant"); err != nil {
			t.Fatal(i, err)
		}
		if _, err := passes.reconcileNode(t.Context(), "worker-a"); err != nil {
			t.Fatal(i, err)
		}
	}
	if n := sent.Load() - before; n != 0 {
		t.Errorf("%d writes in 10 000 passes", n)
	}
}

// settled is nil once both conditions are what they should be and the finalizer is there, by what the watches brought.
func settled(ctx context.Context, role *Role) error {
	uplink, err := role.api.uplinks.Get(ctx, "blue")
	if err != nil {
		return err
	}
	network, err := role.api.networks.Get(ctx, "tenant")
	if err != nil {
		return err
	}
	if len(uplink.Finalizers) != 1 || len(uplink.Status.Conditions) != 1 || len(network.Status.Conditions) != 1 {
		return fmt.Errorf("finalizers %v, conditions %v and %v", uplink.Finalizers, uplink.Status.Conditions, network.Status.Conditions)
	}
	if u, n := latest[*v1alpha1.Uplink](role.uplinks, "blue"), latest[*ovnk.ClusterUserDefinedNetwork](role.networks, "tenant"); u == nil || n == nil ||
		u.ResourceVersion != uplink.ResourceVersion || n.ResourceVersion != network.ResourceVersion {
		return fmt.Errorf("the watches are behind")
	}
	return nil
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
