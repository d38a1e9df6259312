// SPDX-License-Identifier: Apache-2.0

package uplinkstate

// Conditions that ManagerCluster sets on other objects, from the UplinkStates of all nodes.
const (
	// Ready, on an Uplink, says whether every selected node has resolved it.
	Ready = "Ready"
	// UplinksReady, on a ClusterUserDefinedNetwork, says whether every active node's gateway covers the network.
	UplinksReady = "UplinksReady"
)

// Finalizer keeps an Uplink while a ClusterUserDefinedNetwork names it.
const Finalizer = "k8s.ovn.org/uplink-protection"

// Reasons of an Uplink's Ready, highest first; ReasonNodeSelectorOverlap comes after ReasonInvalidSpec.
const (
	// ReasonUplinkTerminating: the Uplink is being deleted. On a CUDN: the Uplink that it names is.
	ReasonUplinkTerminating = "UplinkTerminating"
	// ReasonInvalidSpec: a nodeSelector cannot be evaluated.
	ReasonInvalidSpec = "InvalidSpec"
	// ReasonNoMatchingNodes: no nodeConfig selects any node.
	ReasonNoMatchingNodes = "NoMatchingNodes"
	// ReasonMissingUplinkState: a selected node has published nothing.
	ReasonMissingUplinkState = "MissingUplinkState"
	// ReasonUplinkStateIdentityError: the object in the place of a node's state is somebody else's.
	ReasonUplinkStateIdentityError = "UplinkStateIdentityError"
	// ReasonUplinkStateNotResolved: a selected node's state is not Resolved, or not for the Uplink as it is now.
	ReasonUplinkStateNotResolved = "UplinkStateNotResolved"
	// ReasonReady is Ready=True.
	ReasonReady = "Ready"
)

// Details that messages count besides the reasons of UplinkStates: why a state that is there does not count.
const (
	// DetailHostDataStale: the host has not measured since the Uplink's spec changed.
	DetailHostDataStale = "HostDataStale"
	// DetailNodeConfigMismatch: the state is of another interface than the one that the Uplink names.
	DetailNodeConfigMismatch = "NodeConfigMismatch"
	// DetailResolvedStale: the dpu has not looked since the host measured for the Uplink's present spec.
	DetailResolvedStale = "ResolvedStale"
	// DetailResolvedConditionMissing: the dpu has not said anything.
	DetailResolvedConditionMissing = "ResolvedConditionMissing"
)

// Reasons of a CUDN's UplinksReady, in the order in which they are looked for; ReasonUplinkTerminating comes after
// ReasonUplinkNotFound, and the False reasons of GatewayReady follow.
const (
	// ReasonUplinkReferenceConflict: the CUDN names its Uplink in two places that differ, or not in a valid way.
	ReasonUplinkReferenceConflict = "UplinkReferenceConflict"
	// ReasonUplinkUnsupportedGatewayMode: the cluster is not in shared gateway mode.
	ReasonUplinkUnsupportedGatewayMode = "UplinkUnsupportedGatewayMode"
	// ReasonUplinkUnsupportedTransport: the network's transport is EVPN.
	ReasonUplinkUnsupportedTransport = "UplinkUnsupportedTransport"
	// ReasonUplinkUnsupportedTopology: the network is not a primary Layer2 or Layer3 one.
	ReasonUplinkUnsupportedTopology = "UplinkUnsupportedTopology"
	// ReasonUplinkNotFound: the Uplink does not exist.
	ReasonUplinkNotFound = "UplinkNotFound"
	// ReasonUplinkOverlapOnNode: several nodeConfigs of the Uplink select an active node.
	ReasonUplinkOverlapOnNode = "UplinkOverlapOnNode"
	// ReasonUplinkNotFoundForNode: the Uplink does not select an active node.
	ReasonUplinkNotFoundForNode = "UplinkNotFoundForNode"
	// ReasonUplinkNotResolvedForNode: an active node's UplinkState is absent, foreign, stale or not Resolved.
	ReasonUplinkNotResolvedForNode = "UplinkNotResolvedForNode"
	// ReasonUplinksReady is UplinksReady=True.
	ReasonUplinksReady = "UplinksReady"
)
