// SPDX-License-Identifier: Apache-2.0

package locate

import (
	"errors"

	"github.com/ovn-uplink/ovn-uplink/dpu-agent/bridge"
	"github.com/ovn-uplink/ovn-uplink/dpu-agent/representor"
	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
)

// sight is what the monitors saw, at one moment each.
type sight struct {
	ovs      *bridge.View
	card     *representor.Index
	defaults string // name of the default gateway bridge, if given
}

// locator finds the bridge and the port of it that face the host's interface. The report has what it looked at.
type locator func(s sight, host uplinkstate.HostData, report *Report) (bridge.Target, error)

// Report is the whole chain from the host's interface to the wire, with what was rejected on the way.
type Report struct {
	Interface string `json:"interface"`
	MAC       string `json:"mac,omitempty"`
	// Representor is how the host's function was found, nil where no representor was looked for.
	Representor *representor.Resolution `json:"representor,omitempty"`
	// Method is how the bridge was found.
	Method string `json:"method,omitempty"`
	// Bridge is nil where none was found.
	Bridge *bridge.Report `json:"bridge,omitempty"`
	// Reason and Message are those of Resolved=False; empty for a chain that holds.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Unknown is what could not be read, so that nothing can be said.
	Unknown  string   `json:"unknown,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
}

// find follows the chain from what the host published.
func find(s sight, locate locator, host uplinkstate.HostData) (Finding, Report, error) {
	report := Report{Interface: host.Interface, MAC: host.MAC.String(), Warnings: s.card.Warnings()}
	finding, err := follow(s, locate, host, &report)
	var problem *uplinkstate.Problem
	switch {
	case errors.As(err, &problem):
		report.Reason, report.Message = problem.Reason, problem.Message
	case err != nil:
		report.Unknown = err.Error()
	}
	return finding, report, err
}

func follow(s sight, locate locator, host uplinkstate.HostData, report *Report) (Finding, error) {
	target, err := locate(s, host, report)
	if err != nil {
		return Finding{}, err
	}
	target.DefaultGatewayBridge = s.defaults
	checked, err := bridge.Validate(s.ovs, target, s.classify)
	report.Bridge = &checked
	if checked.Warning != "" {
		report.Warnings = append(report.Warnings, checked.Warning)
	}
	return Finding{
		Bridge:     checked.Bridge,
		Port:       checked.HostPort,
		Method:     report.Method,
		Unverified: report.Representor != nil && !report.Representor.Verified,
		UplinkPort: checked.Uplink.Port,
		Via:        checked.Uplink.Via,
		VLAN:       checked.VLAN,
		Warnings:   report.Warnings,
	}, err
}

// onCard finds the representor of the host's function, and the bridge that it is a port of.
func onCard(s sight, host uplinkstate.HostData, report *Report) (bridge.Target, error) {
	return s.representor(representor.Query{Function: host.Function, MAC: host.MAC}, host.Interface, report)
}

// onNode finds the bridge on the machine that the interface is on too: the bridge of that name, the bridge that
// has it as a port, or the bridge of the representor of the interface's VF or SF.
func onNode(s sight, host uplinkstate.HostData, report *Report) (bridge.Target, error) {
	// The Uplink may go by an alternative name, which Open vSwitch does not know.
	names := s.card.Names(host.Interface)
	for _, name := range names {
		if b, ok := s.ovs.BridgeByName(name); ok {
			report.Method = "its name"
			return bridge.Target{Bridge: b.Name, HostPort: b.Name}, nil
		}
	}
	for _, name := range names {
		if b, _, ok := s.ovs.BridgeOfPort(name); ok {
			report.Method = "its port " + name
			return bridge.Target{Bridge: b.Name, HostPort: name}, nil
		}
	}
	if f := host.Function; f == nil || (f.VFID == nil && f.SFID == nil) {
		return bridge.Target{}, uplinkstate.Problemf(uplinkstate.ReasonBridgeNotFound,
			"no OVS bridge is named %s, none has it as a port, and it is no VF or SF with a representor; name the bridge's internal interface, or add the interface's representor to a bridge", host.Interface)
	}
	return s.representor(representor.Query{Function: host.Function, MAC: host.MAC, Local: true}, host.Interface, report)
}

func (s sight) representor(query representor.Query, iface string, report *Report) (bridge.Target, error) {
	found, err := s.card.Resolve(query)
	report.Representor = &found
	if err != nil {
		return bridge.Target{}, err
	}
	report.Method = string(found.Method)
	b, _, ok := s.ovs.BridgeOfPort(found.Netdev)
	if !ok {
		return bridge.Target{}, uplinkstate.Problemf(uplinkstate.ReasonBridgeNotFound,
			"representor %s of interface %s is a port of no OVS bridge; add it: ovs-vsctl add-port BRIDGE %s", found.Netdev, iface, found.Netdev)
	}
	return bridge.Target{Bridge: b.Name, HostPort: found.Netdev}, nil
}

// classify asks the card what the interfaces on a bridge are.
func (s sight) classify(iface string) bridge.Class {
	switch s.card.Classify(iface) {
	case representor.Physical:
		return bridge.Physical
	case representor.HostFacing:
		return bridge.HostFacing
	case representor.LocalFunction:
		return bridge.LocalFunction
	case representor.Unclassified:
		return bridge.Unclassified
	case representor.Absent:
		return bridge.Absent
	case representor.Plain:
	}
	return bridge.Plain
}
