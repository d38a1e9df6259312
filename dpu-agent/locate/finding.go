// SPDX-License-Identifier: Apache-2.0

package locate

import (
	"fmt"
	"strings"
)

// Finding is the chain from the host's interface to the wire.
type Finding struct {
	// Bridge is the OVS bridge, Port its host-facing port: the bridge's own name when that is its internal one.
	Bridge string
	Port   string
	// Method is how the port was found.
	Method string
	// Unverified is true when no MAC could be read that confirms the match by function numbers.
	Unverified bool
	// UplinkPort is the OVS port to the wire; Via are the patch ports and bridges in between.
	UplinkPort string
	Via        []string
	// VLAN is the tag of the host-facing port.
	VLAN *int32
	// Warnings do not keep the uplink from working as far as one can tell from here.
	Warnings []string
}

// String is the message of Resolved=True.
func (f Finding) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "bridge %s found by %s, uplink port %s", f.Bridge, f.Method, f.UplinkPort)
	if len(f.Via) > 0 {
		fmt.Fprintf(&b, " via %s", strings.Join(f.Via, ", "))
	}
	if f.Unverified {
		b.WriteString("; identity not verified by MAC")
	}
	return b.String()
}
