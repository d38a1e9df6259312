// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"testing"
	"time"

	"github.com/ovn-uplink/ovn-uplink/shared/api/v1alpha1"
	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A server-side apply cannot remove what another manager owns too. Whoever edited a state or restored it from a
// backup is corrected, and keeps nothing there.
func TestFieldsThatOthersOwnToo(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	p := c.pair("worker-b")
	c.must(c.SetNodeLabels(t.Context(), "worker-b", map[string]string{"uplink": "blue"}))
	c.uplink("blue", nodeConfig("ens1f0", map[string]string{"uplink": "blue"}))
	c.hostAgent(p.Host)
	c.cardAgent(p)
	state := c.within(settled, "blue", "worker-b", all(resolved, onBridge("br-ext", "p0", 0)))

	// Somebody edits.
	states := c.client.K8sV1alpha1().UplinkStates()
	_, err := states.Patch(t.Context(), state.Name, types.MergePatchType,
		[]byte(`{"status":{"ovsBridge":{"vlan":77},"hostFunction":{"vfID":3}}}`), metav1.PatchOptions{FieldManager: "kubectl-edit"})
	c.must(err)
	function := func(s *v1alpha1.UplinkState) error {
		if f := s.Status.HostFunction; f == nil || f.VFID != nil {
			return fmt.Errorf("function %+v", f)
		}
		return nil
	}
	c.within(settled, "blue", "worker-b", all(resolved, onBridge("br-ext", "p0", 0), function))

	// A backup is restored: all of the state has a second owner.
	state, err = c.state(t.Context(), "blue", "worker-b")
	c.must(err)
	backup := uplinkstate.Patch{
		TypeMeta: metav1.TypeMeta{APIVersion: "k8s.ovn.org/v1alpha1", Kind: "UplinkState"},
		Metadata: uplinkstate.PatchMetadata{Name: state.Name},
		Status:   &state.Status,
	}
	c.must(c.tryPatch("restore", backup))
	c.ip(p.Host, "link", "set", "ens1f0", "down")
	c.within(settled, "blue", "worker-b", all(unresolved(uplinkstate.ReasonInvalidHostInterface), addresses(), gateways(), func(s *v1alpha1.UplinkState) error {
		if s.Status.MACAddress != "" || s.Status.OVSBridge != nil || s.Status.HostFunction != nil {
			return fmt.Errorf("something is left: %+v", s.Status)
		}
		return nil
	}))
	r := c.record()
	c.atRest(r)

	// And restored once more before the node is deselected: it still leaves at once.
	c.must(c.tryPatch("restore", backup))
	c.must(c.SetNodeLabels(t.Context(), "worker-b", nil))
	c.noState("blue", "worker-b", 30*time.Second)
}

// A state that no host agent made is not resolved beside the real one.
func TestStatesOfOtherNames(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	p := c.pair("worker-b")
	c.uplink("blue", nodeConfig("ens1f0", nil))
	c.hostAgent(p.Host)
	c.cardAgent(p)
	real := c.within(settled, "blue", "worker-b", resolved)
	states := c.client.K8sV1alpha1().UplinkStates()
	fake := real.DeepCopy()
	fake.ObjectMeta = metav1.ObjectMeta{Name: "evil"}
	fake.Status.OVSBridge, fake.Status.Conditions = nil, fake.Status.Conditions[:1]
	_, err := states.Create(t.Context(), fake, metav1.CreateOptions{})
	c.must(err)
	r := c.record()
	c.atRest(r)
	fake.Name, fake.Spec.UplinkName = "evil2", "../../x"
	if _, err := states.Create(t.Context(), fake, metav1.CreateOptions{}); err == nil {
		t.Error("the API server took an Uplink name that no Uplink can have")
	}
}
