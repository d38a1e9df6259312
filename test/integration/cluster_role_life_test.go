// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
	"github.com/ovn-uplink/ovn-uplink/test/lab"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// An Uplink that a network names stays; once none does it goes within a second, and none of its states is left.
// Whoever begins to name it while it is terminating does not prolong it.
func TestUplinkIsProtected(t *testing.T) {
	t.Parallel()
	c := newClusterWithNetworks(t)
	c.clusterRole("control", alone)
	c.node("worker-a", nil)
	c.node("worker-b", nil)
	uplinks := c.client.K8sV1alpha1().Uplinks()

	c.uplink("blue", nodeConfig("e0", nil))
	c.network("red", "blue")
	c.network("green", "blue")
	c.resolve("blue", "worker-a", "worker-b")
	c.protected("blue", true)
	c.must(uplinks.Delete(t.Context(), "blue", metav1.DeleteOptions{}))
	c.uplinkIs("blue", no("UplinkTerminating", "the Uplink is being deleted; it stays until no ClusterUserDefinedNetwork names it: green, red"))
	c.network("late", "blue")
	c.networkIs("late", no("UplinkTerminating", "Uplink blue is being deleted"))
	c.deleteNetwork("red")
	c.uplinkIs("blue", no("UplinkTerminating", "the Uplink is being deleted; it stays until no ClusterUserDefinedNetwork names it: green"))
	if _, err := c.state(t.Context(), "blue", "worker-a"); err != nil {
		t.Errorf("a state of an Uplink that is in use is gone: %v", err)
	}
	c.deleteNetwork("green")
	c.gone("blue", aggregated)
	c.noStates("blue", aggregated)
	c.networkIs("late", no("UplinkNotFound", "Uplink blue does not exist; create it"))

	// One that nobody names goes within a second. The best of a few counts, since the machine may be busy.
	best := time.Hour
	for range 5 {
		c.uplink("lonely", nodeConfig("e0", nil))
		c.resolve("lonely", "worker-a", "worker-b")
		c.protected("lonely", false)
		start := time.Now()
		c.must(uplinks.Delete(t.Context(), "lonely", metav1.DeleteOptions{}))
		c.gone("lonely", aggregated)
		c.noStates("lonely", aggregated)
		best = min(best, time.Since(start))
	}
	if best > time.Second {
		t.Errorf("an Uplink that nobody names and its states were gone after %s at best", best)
	}

	// Protection goes with the last network, also when nobody deletes the Uplink.
	c.uplink("kept", nodeConfig("e0", nil))
	c.network("user", "kept")
	c.protected("kept", true)
	_, err := uplinks.Patch(t.Context(), "kept", types.MergePatchType, []byte(`{"metadata":{"finalizers":["k8s.ovn.org/uplink-protection","example.com/mine"]}}`), metav1.PatchOptions{})
	c.must(err)
	c.deleteNetwork("user")
	c.protected("kept", false)
	u, err := uplinks.Get(t.Context(), "kept", metav1.GetOptions{})
	c.must(err)
	if !slices.Equal(u.Finalizers, []string{"example.com/mine"}) {
		t.Errorf("finalizers of others: %v", u.Finalizers)
	}
}

// protected waits until an Uplink has the finalizer or has it not.
func (c *cluster) protected(uplink string, want bool) {
	c.t.Helper()
	c.must(lab.Eventually(c.t.Context(), aggregated, func(ctx context.Context) error {
		u, err := c.client.K8sV1alpha1().Uplinks().Get(ctx, uplink, metav1.GetOptions{})
		if err == nil && slices.Contains(u.Finalizers, uplinkstate.Finalizer) != want {
			err = fmt.Errorf("finalizers are %v", u.Finalizers)
		}
		return err
	}))
}

// noStates waits until there is no state of an Uplink.
func (c *cluster) noStates(uplink string, d time.Duration) {
	c.t.Helper()
	c.must(lab.Eventually(c.t.Context(), d, func(ctx context.Context) error {
		list, err := c.client.K8sV1alpha1().UplinkStates().List(ctx, metav1.ListOptions{FieldSelector: "spec.uplinkName=" + uplink})
		if err == nil && len(list.Items) > 0 {
			err = fmt.Errorf("%d states are left", len(list.Items))
		}
		return err
	}))
}

// States that nobody is responsible for any more are collected while the role runs: their Node or Uplink is gone, or
// the node is deselected and its host agent did not do it in time.
func TestStaleStatesAreCollected(t *testing.T) {
	t.Parallel()
	c := newClusterWithNetworks(t)
	for _, node := range []string{"worker-a", "worker-b", "worker-c"} {
		c.node(node, blue)
	}
	c.uplink("blue", nodeConfig("e0", blue))
	c.uplink("short-lived", nodeConfig("e0", nil))
	c.resolve("short-lived", "worker-a")
	c.resolve("blue", "worker-a", "worker-b", "worker-c")
	c.must(c.client.K8sV1alpha1().Uplinks().Delete(t.Context(), "short-lived", metav1.DeleteOptions{}))

	c.clusterRole("control", alone, "--deselected-state-grace", "4s")
	c.noState("short-lived", "worker-a", aggregated)
	c.uplinkIs("blue", yes("Ready", allResolved))
	c.must(c.DeleteNode(t.Context(), "worker-c"))
	c.noState("blue", "worker-c", aggregated)
	c.must(c.SetNodeLabels(t.Context(), "worker-b", nil))
	pause(t, 2*time.Second)
	if _, err := c.state(t.Context(), "blue", "worker-b"); err != nil {
		t.Errorf("a deselected node's own agents were given no time: %v", err)
	}
	c.noState("blue", "worker-b", 2*aggregated)
	c.uplinkIs("blue", yes("Ready", allResolved))
}

// All roles run, somebody deletes the state twenty times in ten seconds: in the end everything is as it was (F5).
func TestDeletionsWithAllRoles(t *testing.T) {
	t.Parallel()
	c := newClusterWithNetworks(t)
	p := c.pair("worker-b")
	c.clusterRole("control", alone)
	c.uplink("tenant-blue", nodeConfig("ens1f0", nil))
	c.network("tenant", "tenant-blue")
	c.hostAgent(p.Host)
	c.cardAgent(p)
	c.within(settled, "tenant-blue", "worker-b", resolved)
	c.uplinkIs("tenant-blue", yes("Ready", allResolved))
	for range 20 {
		err := c.client.K8sV1alpha1().UplinkStates().Delete(t.Context(), "tenant-blue.worker-b", metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
		pause(t, 500*time.Millisecond)
	}
	c.within(settled, "tenant-blue", "worker-b", resolved)
	c.uplinkIs("tenant-blue", yes("Ready", allResolved))
	c.networkIs("tenant", no("GatewayConfigurationPending", "1 of 1 active nodes are not ready: GatewayConfigurationPending 1 (worker-b)"))
	r := c.record()
	c.atRest(r)

	// Its end: no host agent brings back a state of an Uplink that is terminating.
	c.must(c.client.K8sV1alpha1().Uplinks().Delete(t.Context(), "tenant-blue", metav1.DeleteOptions{}))
	c.uplinkIs("tenant-blue", no("UplinkTerminating", "the Uplink is being deleted; it stays until no ClusterUserDefinedNetwork names it: tenant"))
	c.deleteNetwork("tenant")
	c.gone("tenant-blue", time.Second)
	c.noStates("tenant-blue", aggregated)
	pause(t, 2*time.Second)
	c.noStates("tenant-blue", 500*time.Millisecond)
}
