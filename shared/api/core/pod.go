// SPDX-License-Identifier: Apache-2.0

package core

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Phases of a pod that has ended for good.
const (
	PodSucceeded = "Succeeded"
	PodFailed    = "Failed"
)

// Pod is where a pod runs, and whether it still does.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type Pod struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   PodSpec   `json:"spec,omitempty"`
	Status PodStatus `json:"status,omitempty"`
}

// PodSpec is the part of a pod's spec that is used.
type PodSpec struct {
	// NodeName is empty until the pod is scheduled.
	NodeName string `json:"nodeName,omitempty"`
}

// PodStatus is the part of a pod's status that is used.
type PodStatus struct {
	Phase string `json:"phase,omitempty"`
}

// PodList is a list of pods.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type PodList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Pod `json:"items"`
}
