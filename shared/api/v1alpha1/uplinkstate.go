// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// UplinkState is what one node found for one Uplink, and how far its gateway is. It has no status
// subresource: identity and first findings are created in one write. Each status field and each condition
// has exactly one writer, given with the field; package uplinkstate holds the rules.
//
// +genclient
// +genclient:nonNamespaced
// +genclient:noStatus
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=uplinkstates,scope=Cluster,singular=uplinkstate
// +kubebuilder:selectablefield:JSONPath=`.spec.uplinkName`
// +kubebuilder:selectablefield:JSONPath=`.spec.nodeName`
// +kubebuilder:printcolumn:name="Uplink",type=string,JSONPath=`.spec.uplinkName`
// +kubebuilder:printcolumn:name="Node",type=string,JSONPath=`.spec.nodeName`
// +kubebuilder:printcolumn:name="Resolved",type=string,JSONPath=`.status.conditions[?(@.type=="Resolved")].status`
// +kubebuilder:printcolumn:name="Gateway",type=string,JSONPath=`.status.conditions[?(@.type=="GatewayReady")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Resolved")].reason`
// +kubebuilder:printcolumn:name="Interface",type=string,priority=1,JSONPath=`.status.hostInterfaceName`
// +kubebuilder:printcolumn:name="Bridge",type=string,priority=1,JSONPath=`.status.ovsBridge.name`
// +kubebuilder:printcolumn:name="MAC",type=string,priority=1,JSONPath=`.status.macAddress`
type UplinkState struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the identity: the name of the object is never parsed.
	// +required
	Spec UplinkStateSpec `json:"spec"`
	// status is what was found and programmed.
	// +optional
	Status UplinkStateStatus `json:"status,omitempty"`
}

// UplinkStateSpec is the identity of an UplinkState.
type UplinkStateSpec struct {
	// uplinkName is the name of the Uplink.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="uplinkName is immutable"
	UplinkName string `json:"uplinkName"`
	// nodeName is the name of the Node, on a DPU the name of the host's Node.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="nodeName is immutable"
	NodeName string `json:"nodeName"`
}

// UplinkStateStatus is what was found and programmed on the node.
type UplinkStateStatus struct {
	// type is the kind of path that the host looked for. Writer: host.
	// +optional
	Type UplinkType `json:"type,omitempty"`
	// hostInterfaceName is the interface on which the rest of the host's data was measured. Writer: host.
	// +optional
	HostInterfaceName InterfaceName `json:"hostInterfaceName,omitempty"`
	// ovsBridge is the bridge behind the interface. Writer: dpu.
	// +optional
	OVSBridge *OVSBridgeStatus `json:"ovsBridge,omitempty"`
	// macAddress is the MAC address of the interface: 6 bytes, unicast, not zero. Writer: host.
	// +optional
	// +kubebuilder:validation:MaxLength=17
	// +kubebuilder:validation:Pattern=`^([0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}$`
	MACAddress string `json:"macAddress,omitempty"`
	// hostFunction is the PCI function behind the interface; absent where there is none. Writer: host.
	// +optional
	HostFunction *HostFunction `json:"hostFunction,omitempty"`
	// ipAddresses are the gateway's addresses with prefix length, at most one per family. Writer: host.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=2
	// +kubebuilder:validation:items:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.all(a, isCIDR(a))",message="every entry must be an IP address with prefix length"
	IPAddresses []string `json:"ipAddresses,omitempty"`
	// defaultGateways are the next hops of the interface's default routes, best first, IPv4 before IPv6.
	// Writer: host.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=2
	// +kubebuilder:validation:items:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.all(a, isIP(a))",message="every entry must be an IP address"
	DefaultGateways []string `json:"defaultGateways,omitempty"`
	// networks are the ClusterUserDefinedNetworks that this node's gateway covers. Writer: dpu-gateway.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=1024
	Networks []NetworkStatus `json:"networks,omitempty"`
	// conditions are HostDataReady (writer: host), Resolved (dpu) and GatewayReady (dpu-gateway).
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// OVSBridgeStatus is the Open vSwitch bridge of an uplink.
type OVSBridgeStatus struct {
	// name is the name of the bridge.
	// +required
	Name InterfaceName `json:"name"`
	// uplinkPort is the name of the OVS port that leads to the wire, a bond's name when it is an OVS bond.
	// It is the port of the bridge at the end of the chain when the path goes through patch ports.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	UplinkPort string `json:"uplinkPort,omitempty"`
	// vlan is the 802.1Q tag of the host-facing port, read from OVS, never set there.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=4094
	VLAN *int32 `json:"vlan,omitempty"`
}

// HostFunction identifies a PCI function of the host in a way that the card can find again.
type HostFunction struct {
	// pfMAC is the MAC address of the physical function, which the card knows too: pf, vf and sf numbers
	// alone name several functions where a card serves several hosts or a host has several cards.
	// +optional
	// +kubebuilder:validation:MaxLength=17
	// +kubebuilder:validation:Pattern=`^([0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}$`
	PFMAC string `json:"pfMAC,omitempty"`
	// controllerNumber is the devlink controller, where the host can tell it.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ControllerNumber *int32 `json:"controllerNumber,omitempty"`
	// pfID is the PCI physical function number.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=65535
	PFID int32 `json:"pfID"`
	// vfID is the virtual function's index in its physical function; absent for a PF or SF.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=65535
	VFID *int32 `json:"vfID,omitempty"`
	// sfID is the scalable function's number; absent for a PF or VF.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=4294967295
	SFID *int64 `json:"sfID,omitempty"`
}

// NetworkPhase is how far the gateway of one network is on one node.
//
// +kubebuilder:validation:Enum=Pending;Ready;Failed
type NetworkPhase string

const (
	// NetworkPending is a network that is not programmed completely yet.
	NetworkPending NetworkPhase = "Pending"
	// NetworkReady is a network whose gateway is complete.
	NetworkReady NetworkPhase = "Ready"
	// NetworkFailed is a network whose gateway could not be programmed; reason and message say why.
	NetworkFailed NetworkPhase = "Failed"
)

// NetworkStatus is the gateway of one ClusterUserDefinedNetwork on one node.
type NetworkStatus struct {
	// name is the name of the ClusterUserDefinedNetwork.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// phase is how far the gateway is.
	// +required
	Phase NetworkPhase `json:"phase"`
	// reason is one of the False reasons of GatewayReady.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason,omitempty"`
	// message says what is missing and what to do.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}

// UplinkStateList is a list of UplinkStates.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
type UplinkStateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []UplinkState `json:"items"`
}
