// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ovn-uplink/ovn-uplink/test/lab"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Two replicas, one leads. The leader is killed, the API server goes away and comes back, the leader stops orderly:
// work goes on each time, and conditions that are right are not touched.
func TestLeaderHandOver(t *testing.T) {
	t.Parallel()
	c := newClusterWithNetworks(t)
	elect := []string{"--leader-elect-lease-namespace", "default"}
	n1, p1 := c.clusterRole("control-1", elect...)
	n2, p2 := c.clusterRole("control-2", elect...)
	c.node("worker-a", nil)
	c.uplink("blue", nodeConfig("e0", nil))
	c.network("tenant", "blue")
	c.resolve("blue", "worker-a")
	c.gateway("blue", "worker-a", covered("tenant"))
	c.networkIs("tenant", yes("UplinksReady", allCovered))
	c.uplinkIs("blue", yes("Ready", allResolved))
	before := c.versions("tenant", "blue")

	c.must(c.led("control-1")) // the first that came
	c.must(p1.Kill(t.Context()))
	c.must(lab.Eventually(t.Context(), 30*time.Second, func(context.Context) error { return c.led("control-2") }))
	c.works("works-1", 30*time.Second)

	p1 = c.startClusterRole(n1, elect...)
	c.ready(n1, clusterHealth)
	c.must(p2.Stop(t.Context()))
	// Given back, so that nobody has to wait for it to run out.
	c.must(lab.Eventually(t.Context(), 8*time.Second, func(context.Context) error { return c.led("control-1") }))
	c.works("works-2", 30*time.Second)

	p2 = c.startClusterRole(n2, elect...)
	c.ready(n2, clusterHealth)
	c.must(c.StopAPIServer(t.Context()))
	c.logged(p1, "no longer leading")
	c.healthy(n1, clusterHealth)
	c.must(c.StartAPIServer(t.Context()))
	c.must(lab.Eventually(t.Context(), 40*time.Second, func(ctx context.Context) error {
		return errors.Join(readyz(ctx, n1, clusterHealth), readyz(ctx, n2, clusterHealth))
	}))
	c.works("works-3", 90*time.Second) // a watch of client-go backs off to a minute while there is no API server

	if after := c.versions("tenant", "blue"); after != before {
		t.Errorf("network and Uplink were written when the leader changed: %s, before %s", after, before)
	}
	for _, p := range []*lab.Process{p1, p2} {
		c.must(p.Stop(t.Context()))
	}
}

// kill -9 and a new start, with many objects to read: no condition and no finalizer is touched.
func TestClusterRoleRestartWritesNothing(t *testing.T) {
	t.Parallel()
	c := newClusterWithNetworks(t)
	c.node("worker-a", nil)
	var networks, uplinks []string
	for i := range 30 {
		networks, uplinks = append(networks, fmt.Sprintf("network-%d", i)), append(uplinks, fmt.Sprintf("uplink-%d", i))
		c.uplink(uplinks[i], nodeConfig("e0", nil))
		c.network(networks[i], uplinks[i])
	}
	n, p := c.clusterRole("control", alone)
	for i := range uplinks {
		c.protected(uplinks[i], true)
		c.uplinkIs(uplinks[i], no("MissingUplinkState", "1 of 1 selected nodes are not ready: MissingUplinkState 1 (worker-a)"))
		c.networkIs(networks[i], no("UplinkNotResolvedForNode", "1 of 1 active nodes are not ready: UplinkNotResolvedForNode 1 (worker-a)"))
	}
	all := func() (versions []string) {
		for i := range uplinks {
			versions = append(versions, c.versions(networks[i], uplinks[i]))
		}
		return versions
	}
	before := all()
	for range 3 {
		c.must(p.Kill(t.Context()))
		p = c.startClusterRole(n, alone)
		c.ready(n, clusterHealth)
		pause(t, 2*time.Second)
	}
	if after := all(); !slices.Equal(after, before) {
		t.Errorf("written at a restart:\n%v\n%v", before, after)
	}
}

// Nothing is there at boot: no API server, then no CRDs. The role waits, says for what, stays healthy, and begins as
// soon as it is there.
func TestClusterRoleBootsWithoutAnything(t *testing.T) {
	t.Parallel()
	c := &cluster{Lab: lab.ForTest(t, lab.Options{NoAPIServer: true}), t: t}
	c.connect()
	n, err := c.AddNode(t.Context(), "control")
	c.must(err)
	p := c.startClusterRole(n, "--leader-elect-lease-namespace", "default", "--dynamic-udn")
	c.logged(p, "the API server cannot be reached")
	c.unready(n, clusterHealth)
	c.healthy(n, clusterHealth)
	c.must(c.StartAPIServer(t.Context()))
	c.installCRDs()
	c.logged(p, "resource=clusteruserdefinednetworks cause=\"the CRD is not installed\"")
	c.healthy(n, clusterHealth)
	c.must(c.ApplyFile(t.Context(), ovnKubernetesCRDs))
	c.ready(n, clusterHealth)
	c.works("blue", 30*time.Second)
}

// led is nil once a replica holds the Lease.
func (c *cluster) led(by string) error {
	client, err := c.Client()
	if err != nil {
		return err
	}
	l, err := client.CoordinationV1().Leases("default").Get(c.t.Context(), "ovn-uplink-cluster", metav1.GetOptions{})
	if err != nil {
		return err
	}
	if holder := l.Spec.HolderIdentity; holder == nil || !strings.HasPrefix(*holder, by+"_") {
		return fmt.Errorf("held by %v", holder)
	}
	return nil
}

// works makes an Uplink and waits until somebody has set its Ready.
func (c *cluster) works(uplink string, d time.Duration) {
	c.t.Helper()
	c.uplink(uplink, nodeConfig("e0", nil))
	c.must(lab.Eventually(c.t.Context(), d, func(ctx context.Context) error {
		u, err := c.client.K8sV1alpha1().Uplinks().Get(ctx, uplink, metav1.GetOptions{})
		if err == nil && len(u.Status.Conditions) == 0 {
			err = errors.New("no condition")
		}
		return err
	}))
}

// versions are the resource versions of a network and an Uplink.
func (c *cluster) versions(network, uplink string) string {
	c.t.Helper()
	n, err := c.networks().Get(c.t.Context(), network, metav1.GetOptions{})
	c.must(err)
	u, err := c.client.K8sV1alpha1().Uplinks().Get(c.t.Context(), uplink, metav1.GetOptions{})
	c.must(err)
	return n.GetResourceVersion() + " " + u.ResourceVersion
}

// foreignState is a state that OVN-Kubernetes' own implementation writes.
const foreignState = `{"apiVersion":"k8s.ovn.org/v1alpha1","kind":"UplinkState","metadata":{"name":"blue.worker-b"},"spec":{"uplinkName":"blue","nodeName":"worker-b"},"status":{"macAddress":"02:00:5e:00:53:07"}}`

// Where another implementation of the API writes UplinkStates no role begins, and each says why; once that is over,
// all do.
func TestForeignImplementation(t *testing.T) {
	t.Parallel()
	c := newClusterWithNetworks(t)
	p := c.pair("worker-b")
	c.uplink("blue", nodeConfig("ens1f0", nil))
	force := true
	states := c.client.K8sV1alpha1().UplinkStates()
	_, err := states.Patch(t.Context(), "blue.worker-b", types.ApplyPatchType, []byte(foreignState),
		metav1.PatchOptions{FieldManager: "ovnkube-node-uplink-controller-dpu-host", Force: &force})
	c.must(err)
	r := c.record()

	control, err := c.AddNode(t.Context(), "control")
	c.must(err)
	roles := map[string]*lab.Process{
		dpuHealth:     c.start(p.Card, "dpu-agent", cardArgs(p)...),
		hostHealth:    c.start(p.Host, "host-agent", "--node-name", "worker-b", "--sysfs-root", p.Host.SysfsRoot()),
		clusterHealth: c.startClusterRole(control, alone),
	}
	where := map[string]*lab.Node{dpuHealth: p.Card, hostHealth: p.Host, clusterHealth: control}
	for health, process := range roles {
		c.logged(process, "another implementation of this API writes UplinkStates")
		if why := c.unready(where[health], health); !strings.Contains(why, "ovnkube-node-uplink-controller-dpu-host") {
			t.Errorf("%s says %q", health, why)
		}
		c.healthy(where[health], health)
	}
	c.atRest(r)
	c.must(states.Delete(t.Context(), "blue.worker-b", metav1.DeleteOptions{}))
	for health := range roles {
		c.ready(where[health], health)
	}
	c.within(settled, "blue", "worker-b", resolved)
	c.uplinkIs("blue", yes("Ready", allResolved))
}
