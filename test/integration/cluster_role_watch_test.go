// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
	"github.com/ovn-uplink/ovn-uplink/test/lab"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
)

// history is what a watch saw of one condition of every object of a kind, each time that it changed.
type history struct {
	mu   sync.Mutex
	seen map[string][]string // by object, as "True/Reason"
}

// watchCondition records until the test ends.
func (c *cluster) watchCondition(resource dynamic.ResourceInterface, kind string) *history {
	c.t.Helper()
	list, err := resource.List(c.t.Context(), metav1.ListOptions{})
	c.must(err)
	w, err := resource.Watch(c.t.Context(), metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
	c.must(err)
	h := &history{seen: map[string][]string{}}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for e := range w.ResultChan() {
			if object, ok := e.Object.(*unstructured.Unstructured); ok {
				h.add(object, kind)
			}
		}
	}()
	c.t.Cleanup(func() {
		w.Stop()
		<-done
	})
	return h
}

func (h *history) add(object *unstructured.Unstructured, kind string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	step := "none"
	if found := meta.FindStatusCondition(conditionsOf(object), kind); found != nil {
		step = fmt.Sprintf("%s/%s", found.Status, found.Reason)
	}
	steps := h.seen[object.GetName()]
	if len(steps) == 0 || steps[len(steps)-1] != step {
		h.seen[object.GetName()] = append(steps, step)
	}
}

func (h *history) of(name string) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.seen[name])
}

// A network that comes to an Uplink on which the gateway is ready for others is never shown ready before every
// active node covers it, over everything that a watch sees (L43).
func TestNewNetworkIsNeverReadyFirst(t *testing.T) {
	t.Parallel()
	c := newClusterWithNetworks(t)
	c.clusterRole("control", alone)
	c.node("worker-a", nil)
	c.node("worker-b", nil)
	c.uplink("blue", nodeConfig("e0", nil))
	c.network("first", "blue")
	c.resolve("blue", "worker-a", "worker-b")
	for _, node := range []string{"worker-a", "worker-b"} {
		c.gateway("blue", node, covered("first"))
	}
	c.networkIs("first", yes("UplinksReady", allCovered))

	h := c.watchCondition(c.networks(), uplinkstate.UplinksReady)
	for i := range 5 {
		name := fmt.Sprintf("second-%d", i)
		c.network(name, "blue")
		c.networkIs(name, no("GatewayConfigurationPending", "2 of 2 active nodes are not ready: GatewayConfigurationPending 2 (worker-a, worker-b)"))
		c.gateway("blue", "worker-a", covered("first"), covered(name))
		c.networkIs(name, no("GatewayConfigurationPending", "1 of 2 active nodes are not ready: GatewayConfigurationPending 1 (worker-b)"))
		c.gateway("blue", "worker-b", covered("first"), covered(name))
		c.networkIs(name, yes("UplinksReady", allCovered))
		want := []string{"none", "False/GatewayConfigurationPending", "True/UplinksReady"}
		c.must(lab.Eventually(t.Context(), aggregated, func(context.Context) error { // the watch may be behind
			if got := h.of(name); !slices.Equal(got, want) {
				return fmt.Errorf("%s went %v, want %v", name, got, want)
			}
			return nil
		}))
		c.gateway("blue", "worker-a", covered("first"))
		c.gateway("blue", "worker-b", covered("first"))
		c.deleteNetwork(name)
	}
	if got := h.of("first"); len(got) > 0 {
		t.Errorf("the neighbour that was ready all the time changed: %v", got)
	}
}

// With Dynamic UDN a network is active where its pods are: two networks on one Uplink, on different nodes, do not
// wait for each other's nodes.
func TestDynamicActivity(t *testing.T) {
	t.Parallel()
	c := newClusterWithNetworks(t)
	c.clusterRole("control", alone, "--dynamic-udn")
	for _, node := range []string{"worker-a", "worker-b", "worker-c"} {
		c.node(node, nil)
	}
	for _, tenant := range []string{"red", "green"} {
		c.must(c.Apply(t.Context(), fmt.Sprintf("apiVersion: v1\nkind: Namespace\nmetadata: {name: %s, labels: {tenant: %s}}", tenant, tenant)))
	}
	c.uplink("blue", nodeConfig("e0", nil))
	c.network("red", "blue")
	c.network("green", "blue")
	for _, network := range []string{"red", "green"} {
		c.networkIs(network, yes("UplinksReady", "the network is active on no node"))
	}

	c.pod("red", "p0", "worker-a")
	c.pod("green", "p0", "worker-b")
	c.networkIs("red", no("UplinkNotResolvedForNode", "1 of 1 active nodes are not ready: UplinkNotResolvedForNode 1 (worker-a)"))
	c.resolve("blue", "worker-a")
	c.networkIs("red", no("GatewayConfigurationPending", "1 of 1 active nodes are not ready: GatewayConfigurationPending 1 (worker-a)"))
	c.gateway("blue", "worker-a", covered("red"))
	c.networkIs("red", yes("UplinksReady", allCovered))
	c.networkIs("green", no("UplinkNotResolvedForNode", "1 of 1 active nodes are not ready: UplinkNotResolvedForNode 1 (worker-b)"))

	// A second node becomes active, and ceases to be when its only pod has ended.
	c.pod("red", "p1", "worker-c")
	c.networkIs("red", no("UplinkNotResolvedForNode", "1 of 2 active nodes are not ready: UplinkNotResolvedForNode 1 (worker-c)"))
	c.endPod("red", "p1")
	c.networkIs("red", yes("UplinksReady", allCovered))
	// A namespace that is not the tenant's any more takes its pods along.
	c.must(c.Apply(t.Context(), "apiVersion: v1\nkind: Namespace\nmetadata: {name: green, labels: {tenant: red}}"))
	c.networkIs("green", yes("UplinksReady", "the network is active on no node"))
	c.networkIs("red", no("UplinkNotResolvedForNode", "1 of 2 active nodes are not ready: UplinkNotResolvedForNode 1 (worker-b)"))
	c.uplinkIs("blue", no("MissingUplinkState", "2 of 3 selected nodes are not ready: MissingUplinkState 2 (worker-b, worker-c)"))
}

// pod makes a pod that is scheduled to a node.
func (c *cluster) pod(namespace, name, node string) {
	c.t.Helper()
	c.must(c.Apply(c.t.Context(), fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: %s, namespace: %s}
spec:
  nodeName: %s
  containers: [{name: c, image: example.com/none}]`, name, namespace, node)))
}

// endPod marks a pod as ended for good, as its kubelet does.
func (c *cluster) endPod(namespace, name string) {
	c.t.Helper()
	client, err := c.Client()
	c.must(err)
	pod, err := client.CoreV1().Pods(namespace).Get(c.t.Context(), name, metav1.GetOptions{})
	c.must(err)
	pod.Status.Phase = "Succeeded"
	_, err = client.CoreV1().Pods(namespace).UpdateStatus(c.t.Context(), pod, metav1.UpdateOptions{})
	c.must(err)
}
