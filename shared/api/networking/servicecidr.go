// SPDX-License-Identifier: Apache-2.0

// Package networking is a read-only view of objects of networking.k8s.io/v1: only the fields that are used. See package
// core.
package networking

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// SchemeGroupVersion is the group and version of every type in this package.
var SchemeGroupVersion = schema.GroupVersion{Group: "networking.k8s.io", Version: "v1"}

// AddToScheme adds this package's types to a scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(SchemeGroupVersion, &ServiceCIDR{}, &ServiceCIDRList{})
	metav1.AddToGroupVersion(scheme, SchemeGroupVersion)
	return nil
}

// ServiceCIDR is a range that the API server takes the addresses of Services from.
type ServiceCIDR struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ServiceCIDRSpec `json:"spec,omitempty"`
}

// ServiceCIDRSpec has at most one prefix per family.
type ServiceCIDRSpec struct {
	CIDRs []string `json:"cidrs,omitempty"`
}

// DeepCopyObject implements runtime.Object.
func (s *ServiceCIDR) DeepCopyObject() runtime.Object {
	meta := s.ObjectMeta
	return &ServiceCIDR{TypeMeta: s.TypeMeta, ObjectMeta: *meta.DeepCopy(), Spec: ServiceCIDRSpec{CIDRs: slices.Clone(s.Spec.CIDRs)}}
}

// ServiceCIDRList is a list of service ranges.
type ServiceCIDRList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ServiceCIDR `json:"items"`
}

// DeepCopyObject implements runtime.Object.
func (l *ServiceCIDRList) DeepCopyObject() runtime.Object {
	out := *l
	out.Items = make([]ServiceCIDR, len(l.Items))
	for i := range l.Items {
		out.Items[i] = *l.Items[i].DeepCopyObject().(*ServiceCIDR)
	}
	return &out
}
