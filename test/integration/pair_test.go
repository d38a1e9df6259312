// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/ovn-uplink/ovn-uplink/shared/api/v1alpha1"
	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
	"github.com/ovn-uplink/ovn-uplink/test/lab"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	hostHealth = "127.0.0.1:9981"
	dpuHealth  = "127.0.0.1:9982"
)

// regular makes a regular node, as the seed's example has it, with its Node object.
func (c *cluster) regular(name string, spec lab.RegularSpec) *lab.Regular {
	c.t.Helper()
	n, err := c.RegularNode(c.t.Context(), name, spec)
	c.must(err)
	c.node(name, nil)
	c.defaultGatewayBridge(n.Node)
	return n
}

// pair makes a host and its card, with the host's Node object.
func (c *cluster) pair(host string) *lab.Pair {
	c.t.Helper()
	p, err := c.Pair(c.t.Context(), host, lab.PairSpec{})
	c.must(err)
	c.node(host, nil)
	c.defaultGatewayBridge(p.Card)
	return p
}

// defaultGatewayBridge sets what OVN-Kubernetes sets: which bridge is the cluster's own.
func (c *cluster) defaultGatewayBridge(n *lab.Node) {
	c.t.Helper()
	c.vsctl(n, "set", "Open_vSwitch", ".", "external_ids:ovn-bridge-mappings=physnet:br-ex")
}

func (c *cluster) vsctl(n *lab.Node, args ...string) {
	c.t.Helper()
	_, err := n.OVS.Vsctl(c.t.Context(), args...)
	c.must(err)
}

// allRoles starts the dpu-agent of a regular node, which does the host's part too.
func (c *cluster) allRoles(n *lab.Regular, args ...string) *lab.Process {
	c.t.Helper()
	p := c.start(n.Node, "dpu-agent", regularArgs(n, args...)...)
	c.ready(n.Node, dpuHealth)
	return p
}

func regularArgs(n *lab.Regular, args ...string) []string {
	return append([]string{"--gateway=false", "--role", "all", "--node-name", n.Name, "--ovs-db", n.OVS.DB()}, args...)
}

// cardAgent starts the dpu-agent of a card.
func (c *cluster) cardAgent(p *lab.Pair, args ...string) *lab.Process {
	c.t.Helper()
	process := c.start(p.Card, "dpu-agent", cardArgs(p, args...)...)
	c.ready(p.Card, dpuHealth)
	return process
}

func cardArgs(p *lab.Pair, args ...string) []string {
	return append([]string{"--gateway=false", "--role", "dpu", "--ovs-db", p.Card.OVS.DB(), "--devlink-ports", p.Card.DevlinkFile(), "--sysfs-root", p.Card.SysfsRoot()}, args...)
}

// What the seed's example shows for worker-a, on a regular node with both roles in one process.
func TestRegularNodeResolves(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	n := c.regular("worker-a", lab.RegularSpec{})
	c.uplink("tenant-blue", nodeConfig("ovsbr1", nil))
	c.allRoles(n)
	c.within(settled, "tenant-blue", "worker-a", resolved)

	list, err := c.client.K8sV1alpha1().UplinkStates().List(t.Context(), metav1.ListOptions{FieldSelector: "spec.uplinkName=tenant-blue,spec.nodeName=worker-a"})
	c.must(err)
	if len(list.Items) != 1 || list.Items[0].Name != "tenant-blue.worker-a" {
		t.Fatalf("got %d states", len(list.Items))
	}
	got := list.Items[0].Status
	want := v1alpha1.UplinkStateStatus{
		Type:              v1alpha1.OVSBridge,
		HostInterfaceName: "ovsbr1",
		OVSBridge:         &v1alpha1.OVSBridgeStatus{Name: "ovsbr1", UplinkPort: "up0"},
		MACAddress:        "02:42:ac:1c:00:02",
		IPAddresses:       []string{"172.28.0.2/16"},
		DefaultGateways:   []string{"172.28.0.1"},
		Conditions:        got.Conditions, // checked above
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	r := c.record()
	c.atRest(r)

	out, err := n.Exec(t.Context(), "curl", "-sS", "-m", "5", "http://"+dpuHealth+"/metrics")
	c.must(err)
	for _, want := range []string{
		`ovn_uplink_condition{condition="HostDataReady",reason="HostDataDiscovered",status="True",uplinkstate="tenant-blue.worker-a"} 1`,
		`ovn_uplink_condition{condition="Resolved",reason="Resolved",status="True",uplinkstate="tenant-blue.worker-a"} 1`,
		`ovn_uplink_netlink_reads_total{outcome="ok"}`,
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no metric %s", want)
		}
	}
}

// The card's side is found from what the host published, and nothing else connects the two.
func TestPairResolves(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	p := c.pair("worker-b")
	c.uplink("tenant-blue", nodeConfig("ens1f0", nil))
	r := c.record()
	c.cardAgent(p)
	c.hostAgent(p.Host)
	c.within(settled, "tenant-blue", "worker-b", all(resolved, func(s *v1alpha1.UplinkState) error {
		if b := s.Status.OVSBridge; b == nil || b.Name != "br-ext" || b.UplinkPort != "p0" || b.VLAN != nil {
			return fmt.Errorf("bridge %+v", b)
		}
		return nil
	}))
	c.quiet(r, time.Second)
	if got := r.count(); got != 2 {
		t.Errorf("%d writes to come up, want one of each side", got)
	}
	c.atRest(r)
}

// Each side's failure shows its own reason, on the one condition that a person looks at, without a fight over it
// (F1): the resource version stays what it is.
func TestMissingInterfaceIsNoFight(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	p := c.pair("worker-b")
	c.uplink("tenant-blue", nodeConfig("does-not-exist", nil))
	c.hostAgent(p.Host)
	c.cardAgent(p)
	c.within(settled, "tenant-blue", "worker-b", all(hostFails(uplinkstate.ReasonHostInterfaceNotFound), unresolved(uplinkstate.ReasonHostInterfaceNotFound)))
	r := c.record()
	c.atRest(r)
}

// A new interface name is never paired with the data of the old one while the host agent is down (F2).
func TestStaleHostHalf(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	p := c.pair("worker-b")
	c.uplink("tenant-blue", nodeConfig("ens1f0", nil))
	host := c.hostAgent(p.Host)
	c.cardAgent(p)
	c.within(settled, "tenant-blue", "worker-b", resolved)
	c.must(host.Stop(t.Context()))
	r := c.record()
	c.uplink("tenant-blue", nodeConfig("ens2f0", nil))
	c.atRest(r) // nobody measured ens2f0: nothing may be said of it
	state, err := c.state(t.Context(), "tenant-blue", "worker-b")
	c.must(err)
	if state.Status.HostInterfaceName != "ens1f0" {
		t.Errorf("the state says %s", state.Status.HostInterfaceName)
	}
	uplink, err := c.client.K8sV1alpha1().Uplinks().Get(t.Context(), "tenant-blue", metav1.GetOptions{})
	c.must(err)
	for _, condition := range state.Status.Conditions {
		if condition.ObservedGeneration >= uplink.Generation {
			t.Errorf("%s claims generation %d of %d", condition.Type, condition.ObservedGeneration, uplink.Generation)
		}
	}
	c.hostAgent(p.Host)
	c.within(settled, "tenant-blue", "worker-b", unresolved(uplinkstate.ReasonHostInterfaceNotFound))
}

// A deselected node: the mark, the dpu's answer, the deletion; and back.
func TestPairLeaves(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	p := c.pair("worker-b")
	c.must(c.SetNodeLabels(t.Context(), "worker-b", map[string]string{"uplink": "blue"}))
	c.uplink("tenant-blue", nodeConfig("ens1f0", map[string]string{"uplink": "blue"}))
	c.hostAgent(p.Host)
	c.cardAgent(p)
	c.within(settled, "tenant-blue", "worker-b", resolved)
	r := c.record()
	c.must(c.SetNodeLabels(t.Context(), "worker-b", nil))
	c.noState("tenant-blue", "worker-b", settled)
	var steps []string
	for _, s := range r.since(0) {
		switch {
		case uplinkstate.Leaving(s) && !uplinkstate.Left(s):
			steps = append(steps, "marked")
		case uplinkstate.Leaving(s):
			steps = append(steps, "answered")
		}
	}
	if got := strings.Join(steps, " "); !strings.HasPrefix(got, "marked answered") {
		t.Errorf("the state went by %q", got)
	}
	c.must(c.SetNodeLabels(t.Context(), "worker-b", map[string]string{"uplink": "blue"}))
	c.within(settled, "tenant-blue", "worker-b", resolved)
}

// Both sides start at once, again and again, and race for the object that is deleted under them (F5, F16).
func TestBothSidesAndDeletions(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	p := c.pair("worker-b")
	c.uplink("tenant-blue", nodeConfig("ens1f0", nil))
	c.hostAgent(p.Host)
	c.cardAgent(p)
	c.within(settled, "tenant-blue", "worker-b", resolved)
	for range 20 {
		err := c.client.K8sV1alpha1().UplinkStates().Delete(t.Context(), "tenant-blue.worker-b", metav1.DeleteOptions{})
		if err != nil && !strings.Contains(err.Error(), "not found") {
			t.Fatal(err)
		}
		pause(t, 500*time.Millisecond)
	}
	c.within(settled, "tenant-blue", "worker-b", resolved)
	r := c.record()
	c.atRest(r)
}

// kill -9 and a new start: the state does not flap, and nothing is written.
func TestRestartWritesNothing(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	p := c.pair("worker-b")
	c.uplink("tenant-blue", nodeConfig("ens1f0", nil))
	host, card := c.hostAgent(p.Host), c.cardAgent(p)
	c.within(settled, "tenant-blue", "worker-b", resolved)
	r := c.record()
	for range 5 {
		c.must(host.Kill(t.Context()))
		c.must(card.Kill(t.Context()))
		host, card = c.hostAgent(p.Host), c.cardAgent(p)
	}
	c.atRest(r)
	if got := r.count(); got != 0 {
		t.Errorf("%d writes over five restarts", got)
	}
}

// The settle time holds over a restart: an agent that starts while something is away for a moment publishes nothing.
func TestRestartDuringAFlap(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	p := c.pair("worker-b")
	c.uplink("tenant-blue", nodeConfig("ens1f0", nil))
	host, card := c.hostAgent(p.Host, "--settle", "10s"), c.cardAgent(p, "--settle", "10s")
	c.within(settled, "tenant-blue", "worker-b", resolved)
	r := c.record()
	c.must(host.Kill(t.Context()))
	c.must(card.Kill(t.Context()))
	c.ip(p.Host, "link", "set", "ens1f0", "down")
	c.vsctl(p.Card, "del-port", "p0")
	c.hostAgent(p.Host, "--settle", "10s")
	c.cardAgent(p, "--settle", "10s")
	c.ip(p.Host, "link", "set", "ens1f0", "up")
	c.ip(p.Host, "route", "replace", "default", "via", "172.28.0.1", "dev", "ens1f0")
	c.vsctl(p.Card, "add-port", "br-ext", "p0")
	c.atRest(r)
	pause(t, 5*time.Second)
	if got := r.count(); got != 0 {
		for _, s := range r.since(0) {
			t.Logf("written: %+v", s.Status)
		}
		t.Errorf("%d writes for a flap during a restart", got)
	}
}
