// SPDX-License-Identifier: Apache-2.0

package uplinkstate

import (
	"net"
	"net/netip"
	"slices"

	"github.com/ovn-uplink/ovn-uplink/shared/api/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Condition is what a role wishes a condition to say. Times are not part of it: they follow from what is
// published already.
type Condition struct {
	Status  bool
	Reason  string
	Message string
	// Generation is the generation of the Uplink that the finding was made for; 0 leaves it out.
	Generation int64
}

// True is a condition that holds.
func True(reason, message string, generation int64) Condition {
	return Condition{Status: true, Reason: reason, Message: Message(message), Generation: generation}
}

// False is a condition that does not hold, for the reason of a Problem.
func False(p *Problem, generation int64) Condition {
	return Condition{Reason: p.Reason, Message: Message(p.Message), Generation: generation}
}

// status is the status as the API has it.
func (c Condition) status() metav1.ConditionStatus {
	if c.Status {
		return metav1.ConditionTrue
	}
	return metav1.ConditionFalse
}

// HostData is what the host measured on one interface, all of it on that interface and at one time.
type HostData struct {
	Type      v1alpha1.UplinkType
	Interface string
	MAC       net.HardwareAddr
	// Function is the PCI function behind the interface, nil where there is none.
	Function *v1alpha1.HostFunction
	// Addresses holds at most one per family, IPv4 first.
	Addresses []netip.Prefix
	// Gateways holds at most two, IPv4 first, best first; link-local ones without zone.
	Gateways []netip.Addr
}

// HostHalf is the part of an UplinkState that ManagerHost owns.
type HostHalf struct {
	Data  HostData
	Ready Condition
}

// DPUHalf is the part of an UplinkState that ManagerDPU owns.
type DPUHalf struct {
	// Bridge is nil while none is known.
	Bridge   *v1alpha1.OVSBridgeStatus
	Resolved Condition
}

// HostHalfOf reads the host half of a state; ok is false while the host has published none. Text that does
// not parse is left out, as if the host had not written it: the other side of the split is not trusted, and
// the missing part shows in the condition that the reader then sets.
func HostHalfOf(state *v1alpha1.UplinkState) (half HostHalf, ok bool) {
	ready := meta.FindStatusCondition(state.Status.Conditions, HostDataReady)
	if ready == nil {
		return HostHalf{}, false
	}
	half.Ready = conditionOf(ready)
	half.Data = HostData{
		Type:      state.Status.Type,
		Interface: string(state.Status.HostInterfaceName),
		Function:  state.Status.HostFunction.DeepCopy(),
	}
	if mac, err := net.ParseMAC(state.Status.MACAddress); err == nil && UsableMAC(mac) {
		half.Data.MAC = mac
	}
	for _, text := range state.Status.IPAddresses {
		if prefix, err := netip.ParsePrefix(text); err == nil {
			half.Data.Addresses = append(half.Data.Addresses, prefix)
		}
	}
	for _, text := range state.Status.DefaultGateways {
		if gateway, err := netip.ParseAddr(text); err == nil {
			half.Data.Gateways = append(half.Data.Gateways, gateway)
		}
	}
	return half, true
}

// DPUHalfOf reads the dpu half of a state; ok is false while the dpu has published none.
func DPUHalfOf(state *v1alpha1.UplinkState) (half DPUHalf, ok bool) {
	resolved := meta.FindStatusCondition(state.Status.Conditions, Resolved)
	if resolved == nil {
		return DPUHalf{}, false
	}
	return DPUHalf{Bridge: state.Status.OVSBridge.DeepCopy(), Resolved: conditionOf(resolved)}, true
}

// Equal compares two host halves by value.
func (h HostHalf) Equal(o HostHalf) bool {
	return h.Ready == o.Ready && h.Data.Equal(o.Data)
}

// Equal compares two measurements by value; nil and empty lists are the same.
func (d HostData) Equal(o HostData) bool {
	return d.Type == o.Type && d.Interface == o.Interface && slices.Equal(d.MAC, o.MAC) &&
		EqualFunction(d.Function, o.Function) && slices.Equal(d.Addresses, o.Addresses) && slices.Equal(d.Gateways, o.Gateways)
}

// EqualFunction compares two functions by value; nil equals only nil.
func EqualFunction(a, b *v1alpha1.HostFunction) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.PFMAC == b.PFMAC && a.PFID == b.PFID && equalPointee(a.ControllerNumber, b.ControllerNumber) &&
		equalPointee(a.VFID, b.VFID) && equalPointee(a.SFID, b.SFID)
}

// Equal compares two dpu halves by value.
func (h DPUHalf) Equal(o DPUHalf) bool {
	if h.Resolved != o.Resolved || (h.Bridge == nil) != (o.Bridge == nil) {
		return false
	}
	return h.Bridge == nil || (h.Bridge.Name == o.Bridge.Name && h.Bridge.UplinkPort == o.Bridge.UplinkPort &&
		equalPointee(h.Bridge.VLAN, o.Bridge.VLAN))
}

// Leaving tells whether the host asked for the state to be taken down: the mark on which the dpu removes the
// gateway and its half. A state that is deleted without the mark was deleted by accident.
func Leaving(state *v1alpha1.UplinkState) bool {
	ready := meta.FindStatusCondition(state.Status.Conditions, HostDataReady)
	return ready != nil && ready.Status == metav1.ConditionFalse && ready.Reason == ReasonNodeNotSelected
}

// Left tells whether nothing of the dpu's is in the state, so that the host may delete it.
func Left(state *v1alpha1.UplinkState) bool {
	s := state.Status
	return s.OVSBridge == nil && len(s.Networks) == 0 &&
		meta.FindStatusCondition(s.Conditions, Resolved) == nil &&
		meta.FindStatusCondition(s.Conditions, GatewayReady) == nil
}

func conditionOf(c *metav1.Condition) Condition {
	return Condition{
		Status:     c.Status == metav1.ConditionTrue,
		Reason:     c.Reason,
		Message:    c.Message,
		Generation: c.ObservedGeneration,
	}
}

func equalPointee[T comparable](a, b *T) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// OwnedBy tells whether a state is owned by this incarnation of its Uplink.
func OwnedBy(state *v1alpha1.UplinkState, owner *v1alpha1.Uplink) bool {
	return metav1.IsControlledBy(state, owner)
}
