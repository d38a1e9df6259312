// SPDX-License-Identifier: Apache-2.0

package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ClusterUserDefinedNetwork is a tenant's network over the namespaces that it selects (CUDN).
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type ClusterUserDefinedNetwork struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ClusterUserDefinedNetworkSpec   `json:"spec"`
	Status ClusterUserDefinedNetworkStatus `json:"status,omitempty"`
}

// ClusterUserDefinedNetworkSpec is the part of a CUDN's spec that decides its gateway.
type ClusterUserDefinedNetworkSpec struct {
	// NamespaceSelector selects the namespaces whose pods are on the network.
	NamespaceSelector metav1.LabelSelector `json:"namespaceSelector"`
	// Uplinks names the Uplinks that are the network's way out; at most one for now.
	Uplinks []string `json:"uplinks,omitempty"`
	// Network is the shape of the network.
	Network NetworkSpec `json:"network"`
}

// NetworkTopology is the kind of network that OVN-Kubernetes builds.
type NetworkTopology string

// Topologies that a CUDN may have. Only primary Layer2 and Layer3 networks can use an Uplink.
const (
	Layer2   NetworkTopology = "Layer2"
	Layer3   NetworkTopology = "Layer3"
	Localnet NetworkTopology = "Localnet"
)

// Network roles and transports as OVN-Kubernetes spells them.
const (
	RolePrimary   = "Primary"
	TransportEVPN = "EVPN"
)

// NetworkSpec is the shape of a network.
type NetworkSpec struct {
	Topology NetworkTopology `json:"topology"`
	// Transport is empty for the overlay of OVN-Kubernetes.
	Transport string        `json:"transport,omitempty"`
	Layer2    *Layer2Config `json:"layer2,omitempty"`
	Layer3    *Layer3Config `json:"layer3,omitempty"`
}

// Layer2Config is one flat network over all nodes.
type Layer2Config struct {
	Role        string   `json:"role"`
	Subnets     []string `json:"subnets,omitempty"`
	JoinSubnets []string `json:"joinSubnets,omitempty"`
}

// Layer3Config is a network with a subnet of its own per node.
type Layer3Config struct {
	Role        string         `json:"role"`
	Subnets     []Layer3Subnet `json:"subnets,omitempty"`
	JoinSubnets []string       `json:"joinSubnets,omitempty"`
}

// Layer3Subnet is a subnet that nodes get parts of.
type Layer3Subnet struct {
	CIDR string `json:"cidr"`
	// HostSubnet is the prefix length of a node's part.
	HostSubnet int32 `json:"hostSubnet,omitempty"`
}

// ClusterUserDefinedNetworkStatus holds the conditions of all writers.
type ClusterUserDefinedNetworkStatus struct {
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ClusterUserDefinedNetworkList is a list of CUDNs.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type ClusterUserDefinedNetworkList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ClusterUserDefinedNetwork `json:"items"`
}
