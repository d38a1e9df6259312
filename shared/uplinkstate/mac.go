// SPDX-License-Identifier: Apache-2.0

package uplinkstate

import "net"

// UsableMAC tells whether an address identifies one Ethernet station: 6 bytes, not zero, the group bit clear
// (which excludes broadcast too). All others mean "not set", wherever they are read: InfiniBand's 20 bytes,
// devlink's 00:00:00:00:00:00 for functions that nobody gave an address.
func UsableMAC(mac net.HardwareAddr) bool {
	if len(mac) != 6 || mac[0]&1 != 0 {
		return false
	}
	for _, b := range mac {
		if b != 0 {
			return true
		}
	}
	return false
}
