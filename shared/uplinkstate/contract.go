// SPDX-License-Identifier: Apache-2.0

// Package uplinkstate is the contract between the roles: how an UplinkState is named and identified, which
// half of it belongs to whom, which conditions and reasons there are. Every rule about the object is here
// and only here; the roles meet nowhere else.
package uplinkstate

import (
	"fmt"
	"time"
)

// Field managers of server-side apply. One writer per field and per condition: a role applies, forced, only
// with its own manager, and every apply names all fields that the manager wants to keep.
const (
	ManagerHost       = "ovn-uplink-host"
	ManagerDPU        = "ovn-uplink-dpu"
	ManagerDPUGateway = "ovn-uplink-dpu-gateway"
	ManagerCluster    = "ovn-uplink-cluster"
)

// Condition types of an UplinkState.
const (
	// HostDataReady says whether the host half is complete. Writer: ManagerHost.
	HostDataReady = "HostDataReady"
	// Resolved says whether the bridge behind the host's interface was found and is fit. Writer: ManagerDPU.
	Resolved = "Resolved"
	// GatewayReady says whether the gateway covers every active network. Writer: ManagerDPUGateway.
	GatewayReady = "GatewayReady"
)

// Reasons of HostDataReady.
const (
	// ReasonHostDataDiscovered is HostDataReady=True.
	ReasonHostDataDiscovered = "HostDataDiscovered"
	// ReasonHostInterfaceNotFound: no link has the name, nor the alternative name.
	ReasonHostInterfaceNotFound = "HostInterfaceNotFound"
	// ReasonInvalidHostInterface: the link exists but cannot carry a gateway (down, no usable MAC), or it is
	// the bridge's physical port (then set on Resolved).
	ReasonInvalidHostInterface = "InvalidHostInterface"
	// ReasonGatewayInfoUnavailable: the link has no usable address; on Resolved: the cluster's default
	// gateway bridge is not known, so that it cannot be told apart from the uplink's.
	ReasonGatewayInfoUnavailable = "GatewayInfoUnavailable"
	// ReasonNodeSelectorOverlap: several nodeConfigs of the Uplink select the node.
	ReasonNodeSelectorOverlap = "NodeSelectorOverlap"
	// ReasonNodeNotSelected is the wish to leave: the Uplink no longer selects the node.
	ReasonNodeNotSelected = "NodeNotSelected"
)

// IsHostReason tells whether a reason is one of HostDataReady=False, which passes through to Resolved.
func IsHostReason(reason string) bool {
	switch reason {
	case ReasonHostInterfaceNotFound, ReasonInvalidHostInterface, ReasonGatewayInfoUnavailable, ReasonNodeSelectorOverlap, ReasonNodeNotSelected:
		return true
	}
	return false
}

// Reasons of Resolved, besides the False reasons of HostDataReady, which pass through.
const (
	// ReasonResolved is Resolved=True.
	ReasonResolved = "Resolved"
	// ReasonWaitingForDPUHost: the host half is absent, incomplete or unusable.
	ReasonWaitingForDPUHost = "WaitingForDPUHost"
	// ReasonBridgeNotFound: no OVS bridge belongs to the host's interface, or more than one may.
	ReasonBridgeNotFound = "BridgeNotFound"
	// ReasonBridgeInvalid: the bridge cannot be an uplink, for example the integration bridge.
	ReasonBridgeInvalid = "BridgeInvalid"
	// ReasonDefaultGatewayBridgeUnsupported: the bridge is the cluster's default gateway bridge.
	ReasonDefaultGatewayBridgeUnsupported = "DefaultGatewayBridgeUnsupported"
	// ReasonBridgeUplinkNotFound: the bridge has no usable physical uplink port, or several and no hint.
	ReasonBridgeUplinkNotFound = "BridgeUplinkNotFound"
)

// Reasons of GatewayReady.
const (
	ReasonGatewayConfigured              = "GatewayConfigured"
	ReasonGatewayConfigurationPending    = "GatewayConfigurationPending"
	ReasonUplinkConfigurationConflict    = "UplinkConfigurationConflict"
	ReasonUplinkVRFAttachmentFailed      = "UplinkVRFAttachmentFailed"
	ReasonUplinkBridgeMappingFailed      = "UplinkBridgeMappingFailed"
	ReasonUplinkGatewayProgrammingFailed = "UplinkGatewayProgrammingFailed"
)

// LeaveAnswerTimeout is how long the host waits, after it marked a state NodeNotSelected, for the dpu
// to take its half down before it deletes the object all the same.
const LeaveAnswerTimeout = 60 * time.Second

// Problem is a finding that becomes a False condition: a reason of the fixed vocabulary and a message that
// names the thing, what was expected, what was seen and what to do. It is about the world, not about a failed
// read: a read that failed is any other error and is retried.
type Problem struct {
	Reason  string
	Message string
}

// Error makes a Problem usable as an error.
func (p *Problem) Error() string { return p.Reason + ": " + p.Message }

// Problemf makes a Problem.
func Problemf(reason, format string, args ...any) *Problem {
	return &Problem{Reason: reason, Message: fmt.Sprintf(format, args...)}
}
