// SPDX-License-Identifier: Apache-2.0

// Package core is a read-only view of built-in objects: only the fields that are used. The full types would link
// the whole core API into light agents.
package core

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// SchemeGroupVersion is the group and version of every type in this package.
var SchemeGroupVersion = schema.GroupVersion{Version: "v1"}

// AddToScheme adds this package's types to a scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(SchemeGroupVersion, &Pod{}, &PodList{})
	metav1.AddToGroupVersion(scheme, SchemeGroupVersion)
	return nil
}

// Phases of a pod that has ended for good.
const (
	PodSucceeded = "Succeeded"
	PodFailed    = "Failed"
)

// Pod is where a pod runs, and whether it still does.
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

// DeepCopyObject implements runtime.Object.
func (p *Pod) DeepCopyObject() runtime.Object {
	meta := p.ObjectMeta
	return &Pod{TypeMeta: p.TypeMeta, ObjectMeta: *meta.DeepCopy(), Spec: p.Spec, Status: p.Status}
}

// PodList is a list of pods.
type PodList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Pod `json:"items"`
}

// DeepCopyObject implements runtime.Object.
func (l *PodList) DeepCopyObject() runtime.Object {
	out := *l
	out.Items = make([]Pod, len(l.Items))
	for i := range l.Items {
		out.Items[i] = *l.Items[i].DeepCopyObject().(*Pod)
	}
	return &out
}
