// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/ovn-uplink/ovn-uplink/shared/api/v1alpha1"
	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
	"github.com/ovn-uplink/ovn-uplink/test/lab"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// host makes a namespace with an interface e0 (192.0.2.5/24, default route via 192.0.2.1) and its Node.
func (c *cluster) host(name string, labels map[string]string) *lab.Node {
	c.t.Helper()
	ctx := c.t.Context()
	n, err := c.AddNode(ctx, name)
	c.must(err)
	c.node(name, labels)
	c.e0(n)
	return n
}

// e0 makes the interface e0, and its other end far outside.
func (c *cluster) e0(n *lab.Node) {
	c.t.Helper()
	for _, args := range [][]string{
		{"link", "add", "e0", "address", "02:00:5e:00:53:01", "type", "veth", "peer", "name", "far0"},
		{"link", "set", "far0", "up"},
		{"addr", "add", "192.0.2.5/24", "dev", "e0"},
		{"link", "set", "e0", "up"},
		{"route", "add", "default", "via", "192.0.2.1", "dev", "e0"},
	} {
		_, err := n.IP(c.t.Context(), args...)
		c.must(err)
	}
}

func (c *cluster) ip(n *lab.Node, args ...string) {
	c.t.Helper()
	_, err := n.IP(c.t.Context(), args...)
	c.must(err)
}

// The host half follows the interface by events, with one write per change.
func TestHostHalfFollowsTheInterface(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	n := c.host("worker-a", nil)
	c.uplink("blue", nodeConfig("e0", nil))
	c.hostAgent(n)
	c.within(settled, "blue", n.Name, all(hostReady, addresses("192.0.2.5/24"), gateways("192.0.2.1")))
	r := c.record()
	c.quiet(r, time.Second)

	for _, step := range []struct {
		what  string
		do    [][]string
		check func(*v1alpha1.UplinkState) error
	}{
		{"address added in the other family", [][]string{{"addr", "add", "2001:db8::5/64", "dev", "e0", "nodad"}},
			addresses("192.0.2.5/24", "2001:db8::5/64")},
		// In a prefix of its own: in the same one it would be secondary, and go with the first.
		{"address replaced", [][]string{{"addr", "add", "192.0.2.7/25", "dev", "e0"}, {"addr", "del", "192.0.2.5/24", "dev", "e0"}},
			addresses("192.0.2.7/25", "2001:db8::5/64")},
		{"gateway changed", [][]string{{"route", "replace", "default", "via", "192.0.2.126", "dev", "e0"}}, gateways("192.0.2.126")},
		{"MAC changed", [][]string{{"link", "set", "e0", "address", "02:00:5e:00:53:99"}},
			func(s *v1alpha1.UplinkState) error {
				return same("macAddress", []string{s.Status.MACAddress}, []string{"02:00:5e:00:53:99"})
			}},
		{"interface down", [][]string{{"link", "set", "e0", "down"}}, hostFails(uplinkstate.ReasonInvalidHostInterface)},
		{"interface deleted", [][]string{{"link", "del", "e0"}}, hostFails(uplinkstate.ReasonHostInterfaceNotFound)},
	} {
		before := r.count()
		for _, args := range step.do {
			c.ip(n, args...)
		}
		c.within(settled, "blue", n.Name, step.check)
		c.exactly(r, before, 1, step.what)
	}

	before := r.count()
	c.e0(n)
	c.within(settled, "blue", n.Name, all(hostReady, addresses("192.0.2.5/24"), gateways("192.0.2.1")))
	c.exactly(r, before, 1, "interface made again")
	c.atRest(r)
}

// A flap that is over within the settle time is not published (B23, F7).
func TestFlapsAreNotPublished(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	n := c.host("worker-a", map[string]string{"uplink": "blue"})
	c.uplink("blue", nodeConfig("e0", map[string]string{"uplink": "blue"}))
	c.hostAgent(n)
	c.within(settled, "blue", n.Name, hostReady)
	r := c.record()

	for range 5 {
		c.ip(n, "link", "set", "e0", "down")
		c.ip(n, "link", "set", "e0", "up")
	}
	c.ip(n, "route", "replace", "default", "via", "192.0.2.1", "dev", "e0")
	// The label toggles for ten seconds; an autoscaler or a feature discovery does that.
	for i := range 50 {
		labels := map[string]string{"uplink": "blue"}
		if i%2 == 0 {
			labels = nil
		}
		c.must(c.SetNodeLabels(t.Context(), n.Name, labels))
		pause(t, 200*time.Millisecond)
	}
	c.within(settled, "blue", n.Name, all(hostReady, gateways("192.0.2.1")))
	c.quiet(r, 2*time.Second)
	if got := r.count(); got != 0 {
		for _, s := range r.since(0) {
			t.Logf("written: %+v", s.Status)
		}
		t.Errorf("%d writes while the interface and the label flapped", got)
	}
}

// A deselected node's state goes, marked first, and comes back with the selection.
func TestDeselectedStateLeaves(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	n := c.host("worker-a", map[string]string{"uplink": "blue"})
	c.uplink("blue", nodeConfig("e0", map[string]string{"uplink": "blue"}))
	c.hostAgent(n)
	c.within(settled, "blue", n.Name, hostReady)
	r := c.record()

	c.must(c.SetNodeLabels(t.Context(), n.Name, nil))
	c.noState("blue", n.Name, settled)
	marked := slices.ContainsFunc(r.since(0), uplinkstate.Leaving)
	if !marked {
		t.Error("the state was deleted without the mark on which the dpu takes the gateway down")
	}
	c.must(c.SetNodeLabels(t.Context(), n.Name, map[string]string{"uplink": "blue"}))
	c.within(settled, "blue", n.Name, hostReady)
}

// What the dpu has in a state that is leaving is given time to be taken down.
func TestLeavingWaitsForTheDPU(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	n := c.host("worker-a", map[string]string{"uplink": "blue"})
	c.uplink("blue", nodeConfig("e0", map[string]string{"uplink": "blue"}))
	c.hostAgent(n)
	c.within(settled, "blue", n.Name, hostReady)
	c.applyAsDPU("blue", n.Name, `"status":{"ovsBridge":{"name":"br-x"},"conditions":[{"type":"Resolved","status":"True","reason":"Resolved","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}`)

	c.must(c.SetNodeLabels(t.Context(), n.Name, nil))
	c.within(settled, "blue", n.Name, hostFails(uplinkstate.ReasonNodeNotSelected))
	pause(t, 3*time.Second)
	c.within(time.Second, "blue", n.Name, hostFails(uplinkstate.ReasonNodeNotSelected))
	c.applyAsDPU("blue", n.Name, `"status":{}`)
	c.noState("blue", n.Name, settled)
}

// Somebody deletes the state in a loop: it comes back every time, whole (F5).
func TestDeletedStateComesBack(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	n := c.host("worker-a", nil)
	c.uplink("blue", nodeConfig("e0", nil))
	c.hostAgent(n)
	last := c.within(settled, "blue", n.Name, hostReady)
	for range 20 {
		c.must(c.client.K8sV1alpha1().UplinkStates().Delete(t.Context(), last.Name, metav1.DeleteOptions{}))
		uid := last.UID
		last = c.within(settled, "blue", n.Name, all(hostReady, addresses("192.0.2.5/24"), func(s *v1alpha1.UplinkState) error {
			if s.UID == uid {
				return fmt.Errorf("still the deleted object")
			}
			return nil
		}))
	}
	r := c.record()
	c.atRest(r)
}

// Labels and annotations of others stay; the identity cannot be changed; the owner is the Uplink.
func TestStateIsSharedWithOthers(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	n := c.host("worker-a", nil)
	c.uplink("blue", nodeConfig("e0", nil))
	c.hostAgent(n)
	s := c.within(settled, "blue", n.Name, hostReady)
	states := c.client.K8sV1alpha1().UplinkStates()

	_, err := states.Patch(t.Context(), s.Name, types.MergePatchType, []byte(`{"metadata":{"labels":{"cost":"42"},"annotations":{"tool":"x"}}}`), metav1.PatchOptions{})
	c.must(err)
	c.ip(n, "addr", "add", "2001:db8::5/64", "dev", "e0", "nodad")
	s = c.within(settled, "blue", n.Name, addresses("192.0.2.5/24", "2001:db8::5/64"))
	if s.Labels["cost"] != "42" || s.Annotations["tool"] != "x" {
		t.Errorf("labels %v and annotations %v of others are gone", s.Labels, s.Annotations)
	}
	if owner := metav1.GetControllerOf(s); owner == nil || owner.Kind != "Uplink" || owner.Name != "blue" {
		t.Errorf("owner %+v", owner)
	}
	for _, patch := range []string{`{"spec":{"nodeName":"other"}}`, `{"spec":{"uplinkName":"other"}}`} {
		if _, err := states.Patch(t.Context(), s.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); !apierrors.IsInvalid(err) {
			t.Errorf("patch %s: %v, want Invalid", patch, err)
		}
	}
	for field, want := range map[string]int{"spec.uplinkName=blue,spec.nodeName=worker-a": 1, "spec.uplinkName=green": 0, "spec.nodeName=worker-a": 1} {
		list, err := states.List(t.Context(), metav1.ListOptions{FieldSelector: field})
		c.must(err)
		if len(list.Items) != want {
			t.Errorf("field selector %s: %d states, want %d", field, len(list.Items), want)
		}
	}
}

// Two nodeConfigs that select the same node are an error, also when they say the same.
func TestOverlapIsReported(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	n := c.host("worker-a", map[string]string{"rack": "r1"})
	c.uplink("blue", nodeConfig("e0", nil))
	c.hostAgent(n)
	c.within(settled, "blue", n.Name, hostReady)
	c.uplink("blue", nodeConfig("e0", nil), nodeConfig("e0", map[string]string{"rack": "r1"}))
	c.within(settled, "blue", n.Name, all(hostFails(uplinkstate.ReasonNodeSelectorOverlap), addresses(), func(s *v1alpha1.UplinkState) error {
		return same("hostInterfaceName", []string{string(s.Status.HostInterfaceName)}, []string{"e0"})
	}))
	c.uplink("blue", nodeConfig("e0", nil))
	c.within(settled, "blue", n.Name, hostReady)
}

// noState waits until there is no state.
func (c *cluster) noState(uplink, node string, d time.Duration) {
	c.t.Helper()
	c.must(lab.Eventually(c.t.Context(), d, func(ctx context.Context) error {
		s, err := c.state(ctx, uplink, node)
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		return fmt.Errorf("%s is still there: %+v", s.Name, s.Status.Conditions)
	}))
}

// applyAsDPU plays the other side of the split.
func (c *cluster) applyAsDPU(uplink, node, fields string) {
	c.t.Helper()
	name := uplinkstate.Name(uplink, node)
	force := true
	body := fmt.Sprintf(`{"apiVersion":"k8s.ovn.org/v1alpha1","kind":"UplinkState","metadata":{"name":%q},%s}`, name, fields)
	_, err := c.client.K8sV1alpha1().UplinkStates().Patch(c.t.Context(), name, types.ApplyPatchType, []byte(body),
		metav1.PatchOptions{FieldManager: uplinkstate.ManagerDPU, Force: &force})
	c.must(err)
}

// pause lets time pass where time itself is what is tested.
func pause(t *testing.T, d time.Duration) {
	select {
	case <-time.After(d):
	case <-t.Context().Done():
	}
}
