// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"fmt"
	"slices"
	"strings"
)

// localnetKey is the key of Port.external_ids by which ovn-controller marks the patch ports that it made for a localnet
// port (ovn-architecture(7)).
const localnetKey = "ovn-localnet-port"

// PatchPort finds the patch port that ovn-controller made on a bridge for a localnet port: by this mark, its type and
// its peer, never by its name, which ovn-controller does not insist on either. 0 is no port yet, and why says which
// link of the chain is missing, as far as Open vSwitch can tell.
func (v *View) PatchPort(bridge, network, localnet string) (ofport uint32, why string) {
	b, found := v.BridgeByName(bridge)
	if !found {
		return 0, fmt.Sprintf("Open vSwitch has no bridge %s", bridge)
	}
	for i := range b.Ports {
		p := &b.Ports[i]
		if p.ExternalIDs[localnetKey] != localnet || len(p.Interfaces) != 1 || p.Interfaces[0].Type != typePatch {
			continue
		}
		iface := &p.Interfaces[0]
		if dead := iface.Dead(); dead != "" {
			return 0, fmt.Sprintf("patch port %s of bridge %s does not work: %s", p.Name, bridge, dead)
		}
		if !v.integrated(iface.Options["peer"]) {
			return 0, fmt.Sprintf("patch port %s has no peer on %s", p.Name, v.IntegrationBridge())
		}
		return uint32(iface.OFPort), ""
	}
	return 0, v.whyNoPatchPort(bridge, network, localnet)
}

// LocalnetBridge is the bridge that ovn-controller has the patch port of a localnet port on, empty if there is none.
func (v *View) LocalnetBridge(localnet string) string {
	for i := range v.Bridges {
		if b := &v.Bridges[i]; b.Name != v.IntegrationBridge() && slices.Contains(v.LocalnetPorts(b.Name), localnet) {
			return b.Name
		}
	}
	return ""
}

// LocalnetPorts are the localnet ports that ovn-controller has patch ports for on a bridge.
func (v *View) LocalnetPorts(bridge string) (names []string) {
	b, found := v.BridgeByName(bridge)
	if !found {
		return nil
	}
	for i := range b.Ports {
		if name := b.Ports[i].ExternalIDs[localnetKey]; name != "" {
			names = append(names, name)
		}
	}
	return names
}

// integrated tells whether the integration bridge has the port.
func (v *View) integrated(port string) bool {
	b, found := v.BridgeByName(v.IntegrationBridge())
	return found && port != "" && b.Port(port) != nil
}

func (v *View) whyNoPatchPort(bridge, network, localnet string) string {
	if there := v.LocalnetBridge(localnet); there != "" && there != bridge {
		return fmt.Sprintf("ovn-controller has the patch port of %s still on bridge %s", localnet, there)
	}
	key, _ := v.Mappings()
	if mapped := v.Mapped(network); mapped != bridge {
		return fmt.Sprintf("external_ids:%s does not map %s to bridge %s", key, network, bridge)
	}
	if _, found := v.BridgeByName(v.IntegrationBridge()); !found {
		return fmt.Sprintf("there is no integration bridge %s; is ovn-controller running?", v.IntegrationBridge())
	}
	why := fmt.Sprintf("ovn-controller has made no patch port for localnet port %s on bridge %s, although external_ids:%s maps it; is ovn-controller running, connected to its southbound database, and is its chassis name %q?",
		localnet, bridge, key, v.Chassis)
	if others := v.otherChassisKeys(key); len(others) > 0 {
		why += fmt.Sprintf(" There are also %s: if that is its chassis, give --chassis", strings.Join(others, ", "))
	}
	return why
}

// otherChassisKeys are the mapping keys of chassis names other than the one that ovn-controller is believed to have.
func (v *View) otherChassisKeys(effective string) []string {
	var keys []string
	for key := range v.ExternalIDs {
		if key != effective && strings.HasPrefix(key, mappingsKey+"-") {
			keys = append(keys, "external_ids:"+key)
		}
	}
	slices.Sort(keys)
	return keys
}

// CarriedOut tells whether ovn-controller has taken up a logical port that is bound to this chassis: it gives each a
// conntrack zone and remembers it in external_ids of the integration bridge (ovn-controller(8), "ct-zone-").
func (v *View) CarriedOut(port string) bool {
	b, found := v.BridgeByName(v.IntegrationBridge())
	return found && b.ExternalIDs["ct-zone-"+port] != ""
}
