// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// UplinkType is the kind of external path that a nodeConfig names.
//
// +kubebuilder:validation:Enum=OVSBridge
type UplinkType string

// OVSBridge is an Open vSwitch bridge that an administrator built, with a physical port on it.
const OVSBridge UplinkType = "OVSBridge"

// InterfaceName is the name of a Linux network interface: at most 15 bytes (IFNAMSIZ less the final NUL),
// no slash, no white space, neither "." nor ".." (Linux dev_valid_name()).
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=15
// +kubebuilder:validation:Pattern=`^[^/\s]+$`
// +kubebuilder:validation:XValidation:rule="self != '.' && self != '..'",message="must not be '.' or '..'"
type InterfaceName string

// Uplink names an external path out of a group of nodes, for the ClusterUserDefinedNetworks that refer to it.
// It creates nothing on the nodes: the bridge, its physical port and the interface exist before it.
//
// +genclient
// +genclient:nonNamespaced
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=uplinks,scope=Cluster,shortName=uplink,singular=uplink
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63 && self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name must be a DNS-1123 label: lower case letters, digits and '-', at most 63 characters, no dots; a ClusterUserDefinedNetwork can refer to no other name"
type Uplink struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says which interface is the uplink on which nodes.
	// +required
	Spec UplinkSpec `json:"spec"`
	// status is what the cluster role observed over all selected nodes.
	// +optional
	Status UplinkStatus `json:"status,omitempty"`
}

// UplinkSpec says which interface is the uplink on which nodes.
type UplinkSpec struct {
	// nodeConfigs are groups of nodes with the interface that is their uplink. A node that several
	// entries select is an error that is reported, not a race that the first entry wins.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	NodeConfigs []UplinkNodeConfig `json:"nodeConfigs"`
}

// UplinkNodeConfig is one group of nodes.
type UplinkNodeConfig struct {
	// type is the kind of path behind the interface.
	// +required
	Type UplinkType `json:"type"`
	// nodeSelector selects the nodes of this group by label; {} selects every node.
	// +required
	NodeSelector metav1.LabelSelector `json:"nodeSelector"`
	// hostInterfaceName is the interface, as the host sees it, that carries the gateway's MAC and IP
	// addresses: the internal interface of the bridge on a regular node, the PF, VF or SF netdevice of
	// an accelerated one. It is never the physical port of the bridge.
	// +required
	HostInterfaceName InterfaceName `json:"hostInterfaceName"`
}

// UplinkStatus is what the cluster role observed over all selected nodes.
type UplinkStatus struct {
	// conditions has one type, Ready.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// UplinkList is a list of Uplinks.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
type UplinkList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Uplink `json:"items"`
}
