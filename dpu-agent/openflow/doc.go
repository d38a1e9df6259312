// SPDX-License-Identifier: Apache-2.0

// Package openflow is what the agent programs on the bridge of an Uplink: the flows by which the host and OVN share
// one MAC and one address of a family on one wire, the port configuration that keeps floods out of OVN, and the
// conntrack zone. Rendering is pure; programming sends the difference in one atomic bundle; what others change is
// noticed by a flow monitor.
//
// Only flows with the package's cookie are read, changed and deleted. Their priorities are unusual, because a flow is
// identified by table, priority and match, and one of an administrator with the same three would be replaced; for
// the same reason there is no match-all flow in table 0.
//
// A packet passes conntrack on the bridge once, unless it is the first of a connection and a fragment: every pass is
// a table of the hardware, and the userspace datapath drops what recirculates more than six times, OVN's passes
// included.
//
// Flows and messages are those of ovs-ofctl(8), fields those of ovs-fields(7), actions those of ovs-actions(7).
package openflow
