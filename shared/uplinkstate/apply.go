// SPDX-License-Identifier: Apache-2.0

package uplinkstate

import (
	"time"

	"github.com/ovn-uplink/ovn-uplink/shared/api/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Patch is the body of a server-side apply: exactly the fields that are set are wished for, and those that
// the manager applied before and no longer sends are dropped by the API server.
type Patch struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        PatchMetadata               `json:"metadata"`
	Spec            *v1alpha1.UplinkStateSpec   `json:"spec,omitempty"`
	Status          *v1alpha1.UplinkStateStatus `json:"status,omitempty"`
}

// PatchMetadata is the part of the metadata that a Patch may carry.
type PatchMetadata struct {
	Name string `json:"name"`
	// UID ties the patch to one incarnation of the object; without it the patch may create the object.
	UID             types.UID               `json:"uid,omitempty"`
	OwnerReferences []metav1.OwnerReference `json:"ownerReferences,omitempty"`
}

// ApplyHost is the whole of what ManagerHost wishes for a state: identity, owner and the host half, in one
// apply, so that interface, MAC and addresses always belong together. It also creates the object; the API
// server refuses it where an object of that name has another identity (the spec is immutable). existing may
// be nil.
func ApplyHost(owner *v1alpha1.Uplink, node string, half HostHalf, existing *v1alpha1.UplinkState, now time.Time) Patch {
	controller := true
	patch := newPatch(Name(owner.Name, node), "")
	patch.Metadata.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: v1alpha1.SchemeGroupVersion.String(),
		Kind:       "Uplink",
		Name:       owner.Name,
		UID:        owner.UID,
		Controller: &controller,
	}}
	patch.Spec = &v1alpha1.UplinkStateSpec{UplinkName: owner.Name, NodeName: node}
	patch.Status = hostStatus(half)
	patch.Status.Conditions = conditions(HostDataReady, half.Ready, conditionsOf(existing), now)
	return patch
}

// ApplyLeaving marks a state as one to be taken down, keeping what it says of the interface.
func ApplyLeaving(state *v1alpha1.UplinkState, half HostHalf, now time.Time) Patch {
	patch := newPatch(state.Name, state.UID)
	patch.Metadata.OwnerReferences = state.OwnerReferences
	patch.Spec = state.Spec.DeepCopy()
	patch.Status = hostStatus(half)
	patch.Status.Conditions = conditions(HostDataReady, half.Ready, state.Status.Conditions, now)
	return patch
}

// ApplyDPU is the whole of what ManagerDPU wishes for a state. It carries the UID of the object that it is
// meant for, so that it never creates one, nor writes into a successor of the same name.
func ApplyDPU(state *v1alpha1.UplinkState, half DPUHalf, now time.Time) Patch {
	patch := newPatch(state.Name, state.UID)
	patch.Status = &v1alpha1.UplinkStateStatus{
		OVSBridge:  half.Bridge,
		Conditions: conditions(Resolved, half.Resolved, state.Status.Conditions, now),
	}
	return patch
}

// ApplyNothing releases every field that the manager applying it owns: how the dpu answers a state that is
// leaving.
func ApplyNothing(state *v1alpha1.UplinkState) Patch {
	return newPatch(state.Name, state.UID)
}

func newPatch(name string, uid types.UID) Patch {
	return Patch{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "UplinkState"},
		Metadata: PatchMetadata{Name: name, UID: uid},
	}
}

func hostStatus(half HostHalf) *v1alpha1.UplinkStateStatus {
	status := &v1alpha1.UplinkStateStatus{
		Type:              half.Data.Type,
		HostInterfaceName: v1alpha1.InterfaceName(half.Data.Interface),
		HostFunction:      half.Data.Function,
	}
	if len(half.Data.MAC) > 0 {
		status.MACAddress = half.Data.MAC.String()
	}
	for _, prefix := range half.Data.Addresses {
		status.IPAddresses = append(status.IPAddresses, prefix.String())
	}
	for _, gateway := range half.Data.Gateways {
		status.DefaultGateways = append(status.DefaultGateways, gateway.String())
	}
	return status
}

// conditions keeps the time of the last transition while the status stays what it is.
func conditions(kind string, c Condition, published []metav1.Condition, now time.Time) []metav1.Condition {
	status := c.status()
	since := metav1.NewTime(now)
	if old := meta.FindStatusCondition(published, kind); old != nil && old.Status == status {
		since = old.LastTransitionTime
	}
	return []metav1.Condition{{
		Type:               kind,
		Status:             status,
		ObservedGeneration: c.Generation,
		LastTransitionTime: since,
		Reason:             c.Reason,
		Message:            c.Message,
	}}
}

func conditionsOf(state *v1alpha1.UplinkState) []metav1.Condition {
	if state == nil {
		return nil
	}
	return state.Status.Conditions
}
