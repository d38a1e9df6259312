// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
	"github.com/ovn-uplink/ovn-uplink/test/lab"
	"github.com/ovn-uplink/ovn-uplink/test/manifests"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The agents do all their work with the rights of deploy/host: the host and its card as two identities, a regular
// node as one.
func TestAgentsWithTheirOwnRights(t *testing.T) {
	t.Parallel()
	c := newGuardedCluster(t)
	p := c.pair("worker-b")
	n := c.regular("worker-a", lab.RegularSpec{})
	selected := map[string]string{"uplink": "blue"}
	for _, node := range []string{"worker-a", "worker-b"} {
		c.must(c.SetNodeLabels(t.Context(), node, selected))
	}
	agents := []*lab.Process{
		c.startAs(p.Host, c.podOf(manifests.HostAccount, "worker-b"), "host-agent", "--node-name", "worker-b", "--sysfs-root", p.Host.SysfsRoot()),
		c.startAs(p.Card, c.dpuOf("worker-b"), "dpu-agent", cardArgs(p)...),
		c.startAs(n.Node, c.podOf(manifests.NodeAccount, "worker-a"), "dpu-agent", regularArgs(n)...),
	}
	c.ready(p.Host, hostHealth)
	c.ready(p.Card, dpuHealth)
	c.ready(n.Node, dpuHealth)

	c.uplink("host-side", nodeConfig("ens1f0", selected)) // not found on worker-a
	c.uplink("node-side", nodeConfig("ovsbr1", selected)) // not found on worker-b
	for _, side := range []struct {
		uplink, node string
		addresses    string
		move         func()
		moved        string
		take, give   func()
	}{
		{"host-side", "worker-b", "172.28.0.3/16",
			func() { c.ip(p.Host, "addr", "add", "2001:db8::3/64", "dev", "ens1f0", "nodad") }, "172.28.0.3/16 2001:db8::3/64",
			func() { c.vsctl(p.Card, "del-port", "p0") }, func() { c.vsctl(p.Card, "add-port", "br-ext", "p0") }},
		{"node-side", "worker-a", "172.28.0.2/16",
			func() { c.ip(n.Node, "addr", "add", "2001:db8::2/64", "dev", "ovsbr1", "nodad") }, "172.28.0.2/16 2001:db8::2/64",
			func() { c.vsctl(n.Node, "del-port", "up0") }, func() { c.vsctl(n.Node, "add-port", "ovsbr1", "up0") }},
	} {
		c.within(settled, side.uplink, side.node, all(resolved, addresses(side.addresses)))
		side.move()
		c.within(settled, side.uplink, side.node, all(resolved, addresses(strings.Fields(side.moved)...)))
		side.take()
		c.within(settled, side.uplink, side.node, unresolved(uplinkstate.ReasonBridgeUplinkNotFound))
		side.give()
		c.within(settled, side.uplink, side.node, resolved)
		c.must(c.client.K8sV1alpha1().UplinkStates().Delete(t.Context(), uplinkstate.Name(side.uplink, side.node), metav1.DeleteOptions{}))
		c.within(settled, side.uplink, side.node, resolved)
		c.event(uplinkstate.Name(side.uplink, side.node), uplinkstate.ReasonResolved)
		c.event(uplinkstate.Name(side.uplink, side.node), uplinkstate.ReasonBridgeUplinkNotFound)
		c.must(c.SetNodeLabels(t.Context(), side.node, nil))
		c.noState(side.uplink, side.node, settled)
		c.must(c.SetNodeLabels(t.Context(), side.node, selected))
		state := c.within(settled, side.uplink, side.node, resolved)
		// An Uplink that is made anew is another owner.
		c.must(c.client.K8sV1alpha1().Uplinks().Delete(t.Context(), side.uplink, metav1.DeleteOptions{}))
		c.noState(side.uplink, side.node, settled)
		c.uplink(side.uplink, nodeConfig(string(state.Status.HostInterfaceName), selected))
		c.within(settled, side.uplink, side.node, resolved)
	}
	r := c.record()
	c.quiet(r, 2*time.Second) // the other node says that it lacks the interface
	c.atRest(r)
	for _, agent := range agents {
		for line := range strings.Lines(agent.Log(1_000_000)) {
			if strings.Contains(line, "forbidden") || strings.Contains(line, "not allowed") {
				t.Errorf("%s was refused something: %s", agent.Name, line)
			}
		}
	}
}

// An agent whose token names no node changes nothing, says why, and works as soon as it has one that does.
func TestTokenWithoutNode(t *testing.T) {
	t.Parallel()
	c := newGuardedCluster(t)
	n := c.host("worker-a", nil)
	c.uplink("blue", nodeConfig("e0", nil))
	args := []string{"--node-name", "worker-a"}
	agent := c.startAs(n, c.unbound(manifests.HostAccount), "host-agent", args...)
	c.logged(agent, "its credentials name no node")
	c.noState("blue", "worker-a", time.Second)
	c.must(agent.Stop(t.Context()))
	c.startAs(n, c.podOf(manifests.HostAccount, "worker-a"), "host-agent", args...)
	c.within(settled, "blue", "worker-a", hostReady)
}

// An agent on another node than the one it is told to be cannot write.
func TestAgentOfAnotherNode(t *testing.T) {
	t.Parallel()
	c := newGuardedCluster(t)
	n := c.host("worker-a", nil)
	c.uplink("blue", nodeConfig("e0", nil))
	agent := c.startAs(n, c.podOf(manifests.HostAccount, "worker-b"), "host-agent", "--node-name", "worker-a")
	c.logged(agent, "it is of node worker-a")
	c.noState("blue", "worker-a", time.Second)
}

// event waits until there is an Event with a reason about an UplinkState.
func (c *cluster) event(state, reason string) {
	c.t.Helper()
	client, err := c.Client()
	c.must(err)
	c.must(lab.Eventually(c.t.Context(), settled, func(ctx context.Context) error {
		list, err := client.EventsV1().Events(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, e := range list.Items {
			if e.Regarding.Kind == "UplinkState" && e.Regarding.Name == state && e.Reason == reason {
				return nil
			}
		}
		return fmt.Errorf("no Event %s about %s among %d", reason, state, len(list.Items))
	}))
}

// unbound is the kubeconfig of an account with a token that is bound to no pod.
func (c *cluster) unbound(account string) string {
	c.t.Helper()
	client, err := c.Client()
	c.must(err)
	token, err := client.CoreV1().ServiceAccounts(manifests.Namespace).CreateToken(c.t.Context(), account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	c.must(err)
	path, err := c.TokenKubeconfig(account+"-unbound", token.Status.Token)
	c.must(err)
	return path
}
