// SPDX-License-Identifier: Apache-2.0

package discovery

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Address types that hold IP addresses.
const (
	IPv4 = "IPv4"
	IPv6 = "IPv6"
)

// Labels of a slice of the cluster's default network.
const (
	LabelServiceName = "kubernetes.io/service-name"
	LabelHeadless    = "service.kubernetes.io/headless"
)

// Of a slice that OVN-Kubernetes made of another one: the same pods, by their addresses in their own network.
const (
	// LabelMirroredServiceName is in the place of LabelServiceName.
	LabelMirroredServiceName = "k8s.ovn.org/service-name"
	// MirroredNetwork is the annotation that names the network.
	MirroredNetwork = "k8s.ovn.org/endpointslice-network"
)

// EndpointSlice is some of the endpoints of a service, of one address family.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type EndpointSlice struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// AddressType is IPv4, IPv6 or FQDN.
	AddressType string     `json:"addressType"`
	Endpoints   []Endpoint `json:"endpoints"`
	// Ports are what every endpoint of the slice listens on.
	Ports []EndpointPort `json:"ports,omitempty"`
}

// Endpoint is mostly a pod.
type Endpoint struct {
	// Addresses after the first have no meaning.
	Addresses  []string           `json:"addresses"`
	Conditions EndpointConditions `json:"conditions,omitempty"`
	NodeName   *string            `json:"nodeName,omitempty"`
}

// EndpointConditions say whether an endpoint takes traffic: Ready and Serving are true where absent, Terminating false.
type EndpointConditions struct {
	Ready       *bool `json:"ready,omitempty"`
	Serving     *bool `json:"serving,omitempty"`
	Terminating *bool `json:"terminating,omitempty"`
}

// EndpointPort is a port of the service, as the number that the endpoints listen on.
type EndpointPort struct {
	// Name is that of the service's port.
	Name *string `json:"name,omitempty"`
	// Protocol is TCP where absent.
	Protocol *string `json:"protocol,omitempty"`
	Port     *int32  `json:"port,omitempty"`
}

// EndpointSliceList is a list of slices.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type EndpointSliceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []EndpointSlice `json:"items"`
}
