// SPDX-License-Identifier: Apache-2.0

// Package gateway is the second part of the dpu role: from a resolved Uplink and the networks that are active on it
// to packets on the wire. It decides what OVN, the bridge mapping and the flows of the bridge should be, has the
// packages ovn, bridge and openflow make it so, and publishes how far that is: the condition GatewayReady and the
// networks of the UplinkState.
//
// One pass over an Uplink does everything, whatever the event was; each step compares first, so that a pass over what
// is right writes nothing. What cannot be seen at the moment is left as it is. Only a wish takes anything down: the
// Uplink no longer selects the node, a network is deleted or has moved away, or the cleanup command.
package gateway
