// SPDX-License-Identifier: Apache-2.0

package hostlink

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/ovn-uplink/ovn-uplink/shared/kernel"
	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
)

// Discover measures an interface, named by its name or an alternative name, in a snapshot. The data carries the
// name asked for; with a problem it carries nothing else. Type and Function are left to the caller: the one
// comes from the Uplink, the other from sysfs (see Function).
func Discover(s *kernel.Snapshot, iface string) (uplinkstate.HostData, *uplinkstate.Problem) {
	f := examine(s, iface)
	data := uplinkstate.HostData{Interface: iface}
	if f.problem == nil {
		data.MAC = slices.Clone(f.link.HardwareAddr)
		data.Addresses = chosenAddresses(f.addresses)
		data.Gateways = chosenGateways(f.gateways)
	}
	return data, f.problem
}

// finding is all that was seen of an interface, candidate by candidate, and what is wrong with it.
type finding struct {
	// link is the interface, its index 0 if there is none.
	link kernel.Link
	// table is the routing table that the interface is in now.
	table     uint32
	addresses []AddressVerdict
	gateways  []GatewayVerdict
	problem   *uplinkstate.Problem
}

func examine(s *kernel.Snapshot, iface string) finding {
	link, ok := s.LinkByName(iface)
	if !ok {
		return finding{problem: uplinkstate.Problemf(uplinkstate.ReasonHostInterfaceNotFound,
			"interface %s was not found: no link of this node has this name or alternative name; "+
				"create the interface or correct hostInterfaceName", iface)}
	}
	f := finding{link: link, table: s.TableOf(link)}
	f.addresses = judgeAddresses(s.AddrsOf(link.Index))
	f.gateways = judgeGateways(s.DefaultRoutes(f.table), link.Index)
	f.problem = cmp.Or(stateProblem(iface, link), macProblem(iface, link), addressProblem(iface, f.addresses))
	return f
}

func stateProblem(iface string, link kernel.Link) *uplinkstate.Problem {
	seen, remedy := linkDown(link)
	if seen == "" {
		return nil
	}
	return uplinkstate.Problemf(uplinkstate.ReasonInvalidHostInterface,
		"interface %s is down: it must be up and have a carrier, but %s; %s", iface, seen, remedy)
}

// linkDown says why a link carries no packets and what helps; empty if it does carry them. Open vSwitch's
// internal ports do in the operational state "unknown".
func linkDown(link kernel.Link) (seen, remedy string) {
	switch {
	case !link.Up:
		return "it is set down", fmt.Sprintf("set it up (ip link set %s up) and have the node's network configuration do so", link.Name)
	case !link.Carrier:
		return "it has no carrier", "check the cable, the switch port or the link below it"
	case link.OperState != kernel.OperUp && link.OperState != kernel.OperUnknown:
		return fmt.Sprintf("its operational state is %s", link.OperState), "check the link below it and its authentication to the switch"
	}
	return "", ""
}

func macProblem(iface string, link kernel.Link) *uplinkstate.Problem {
	if uplinkstate.UsableMAC(link.HardwareAddr) {
		return nil
	}
	seen := "it has none"
	if len(link.HardwareAddr) > 0 {
		seen = "it has " + link.HardwareAddr.String()
	}
	return uplinkstate.Problemf(uplinkstate.ReasonInvalidHostInterface,
		"interface %s has no usable MAC address: it must have a unicast one of 6 bytes that is not zero, but %s; "+
			"give it one or name an Ethernet interface", iface, seen)
}

// maxListed bounds how many addresses a message names.
const maxListed = 4

func addressProblem(iface string, verdicts []AddressVerdict) *uplinkstate.Problem {
	if slices.ContainsFunc(verdicts, func(v AddressVerdict) bool { return v.Chosen }) {
		return nil
	}
	seen := "it has no address"
	if len(verdicts) > 0 {
		var all []string
		for _, v := range verdicts {
			all = append(all, fmt.Sprintf("%s (%s)", v.Address, v.Why))
		}
		if more := len(all) - maxListed; more > 0 {
			all = append(all[:maxListed], fmt.Sprintf("%d more", more))
		}
		seen = "it has only " + strings.Join(all, ", ")
	}
	return uplinkstate.Problemf(uplinkstate.ReasonGatewayInfoUnavailable,
		"interface %s has no usable IP address: it must have an IPv4 or IPv6 address of global scope, but %s; give it one", iface, seen)
}
