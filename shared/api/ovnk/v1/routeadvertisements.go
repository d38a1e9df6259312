// SPDX-License-Identifier: Apache-2.0

package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// RouteAdvertisements says which networks are advertised by BGP from which nodes in which VRF.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type RouteAdvertisements struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   RouteAdvertisementsSpec   `json:"spec"`
	Status RouteAdvertisementsStatus `json:"status,omitempty"`
}

// RouteAdvertisementsSpec is the part of the spec that decides a network's routing domain.
type RouteAdvertisementsSpec struct {
	// TargetVRF is empty or "default" for the default VRF, "auto" for the network's own one.
	TargetVRF        string               `json:"targetVRF,omitempty"`
	NetworkSelectors []NetworkSelector    `json:"networkSelectors,omitempty"`
	NodeSelector     metav1.LabelSelector `json:"nodeSelector"`
	// Advertisements is a list of "PodNetwork" and "EgressIP".
	Advertisements []string `json:"advertisements,omitempty"`
}

// NetworkSelector selects networks of one kind.
type NetworkSelector struct {
	NetworkSelectionType string `json:"networkSelectionType"`

	ClusterUserDefinedNetworkSelector *ClusterUserDefinedNetworkSelector `json:"clusterUserDefinedNetworkSelector,omitempty"`
}

// ClusterUserDefinedNetworkSelector selects CUDNs by label.
type ClusterUserDefinedNetworkSelector struct {
	NetworkSelector metav1.LabelSelector `json:"networkSelector"`
}

// RouteAdvertisementsStatus holds the Accepted condition.
type RouteAdvertisementsStatus struct {
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// RouteAdvertisementsList is a list of RouteAdvertisements.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type RouteAdvertisementsList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []RouteAdvertisements `json:"items"`
}
