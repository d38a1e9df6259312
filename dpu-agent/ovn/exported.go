// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"net/netip"
	"strings"
)

// LocalnetPort is the name of the logical switch port that ovn-controller joins to the bridge of an Uplink on a node.
func LocalnetPort(uplink, node string) string { return names{uplink, node}.localnet() }

// IsLocalnetPort tells whether a name is the LocalnetPort of some Uplink on a node.
func IsLocalnetPort(name, node string) bool {
	before, after, _ := strings.Cut(LocalnetPort("\x00", node), "\x00")
	return strings.HasPrefix(name, before) && strings.HasSuffix(name, after) && len(name) > len(before)+len(after)
}

// Unroutable are the ranges that are never on the wire: those of services, and those of the gateways' own.
func (r Ranges) Unroutable() []netip.Prefix {
	r = r.withDefaults()
	var all []netip.Prefix
	for _, own := range r.named() {
		all = append(all, own.prefixes...)
	}
	return normalised(append(all, r.ServiceCIDRs...))
}

// RouterPort is the port of a network's gateway router towards the edge router: it is bound to the node's chassis, so
// that ovn-controller shows by it that it has taken the router up. The prefix is that of Network.
func RouterPort(uplink, node, prefix string) string { return names{uplink, node}.gatewayEdge(prefix) }

// IsOwnZone tells whether a key of the integration bridge's external_ids is the conntrack zone of a port of this
// package's.
func IsOwnZone(key string) bool { return strings.HasPrefix(key, "ct-zone-uplink_") }
