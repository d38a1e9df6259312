// SPDX-License-Identifier: Apache-2.0

package uplinkstate

import (
	"cmp"
	"slices"
	"time"

	"github.com/ovn-uplink/ovn-uplink/shared/api/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
)

// MaxNetworks is how many networks an UplinkState can hold.
const MaxNetworks = 1024

// GatewayHalf is the part of an UplinkState that ManagerDPUGateway owns.
type GatewayHalf struct {
	// Networks are the active networks, sorted by name.
	Networks []v1alpha1.NetworkStatus
	Ready    Condition
}

// GatewayHalfOf reads the gateway half of a state; ok is false while none is published.
func GatewayHalfOf(state *v1alpha1.UplinkState) (half GatewayHalf, ok bool) {
	ready := meta.FindStatusCondition(state.Status.Conditions, GatewayReady)
	if ready == nil {
		return GatewayHalf{}, false
	}
	return GatewayHalf{Networks: state.Status.Networks, Ready: conditionOf(ready)}, true
}

// Equal compares two gateway halves by value; the order of networks does not count.
func (h GatewayHalf) Equal(o GatewayHalf) bool {
	return h.Ready == o.Ready && slices.Equal(sorted(h.Networks), sorted(o.Networks))
}

// Phase is how far a network is, empty for one that is not covered.
func (h GatewayHalf) Phase(network string) v1alpha1.NetworkPhase {
	for _, n := range h.Networks {
		if n.Name == network {
			return n.Phase
		}
	}
	return ""
}

func sorted(networks []v1alpha1.NetworkStatus) []v1alpha1.NetworkStatus {
	return slices.SortedFunc(slices.Values(networks), func(a, b v1alpha1.NetworkStatus) int {
		return cmp.Compare(a.Name, b.Name)
	})
}

// ApplyGateway is the whole of what ManagerDPUGateway wishes for a state; see ApplyDPU.
func ApplyGateway(state *v1alpha1.UplinkState, half GatewayHalf, now time.Time) Patch {
	patch := newPatch(state.Name, state.UID)
	patch.Status = &v1alpha1.UplinkStateStatus{
		Networks:   half.Networks,
		Conditions: conditions(GatewayReady, half.Ready, state.Status.Conditions, now),
	}
	return patch
}

// CorrectGateway makes the gateway half of a state what was wished, field by field.
func CorrectGateway(state *v1alpha1.UplinkState, half GatewayHalf, now time.Time) Correction {
	fields := map[string]any{"networks": nil}
	if len(half.Networks) > 0 {
		fields["networks"] = half.Networks
	}
	return correct(state, fields, GatewayReady, conditions(GatewayReady, half.Ready, state.Status.Conditions, now))
}

// CorrectNoGateway takes the gateway half out of a state.
func CorrectNoGateway(state *v1alpha1.UplinkState) Correction {
	return correct(state, map[string]any{"networks": nil}, GatewayReady, nil)
}

// HoldsGateway tells whether anything of the gateway half is in a state: what a leaving state has to lose before its
// bridge may be released.
func HoldsGateway(state *v1alpha1.UplinkState) bool {
	return len(state.Status.Networks) > 0 || meta.FindStatusCondition(state.Status.Conditions, GatewayReady) != nil
}
