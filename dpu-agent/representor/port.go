// SPDX-License-Identifier: Apache-2.0

package representor

import (
	"fmt"
	"net"

	"github.com/k8snetworkplumbingwg/sriovnet"
)

// Port is a devlink port (devlink-port(8)). Pointers are nil where the kernel does not say.
type Port struct {
	Bus, Device string
	Index       uint32
	Flavour     sriovnet.PortFlavour
	// Netdev is empty while the port has no network interface here.
	Netdev string
	// Controller is the number of the host that the function is on, as the card counts them.
	Controller *uint32
	// PF is set for every function, VF or SF besides for those.
	PF, VF, SF *uint32
	// External tells whether the function is on another machine than the card's own processor.
	External *bool
	// HWAddr is the MAC address of the function, as far as the card knows it: firmware and administrators set it,
	// and it reads as zero for a function that only its own host gave an address.
	HWAddr net.HardwareAddr
}

// Handle is the name of the port as devlink prints it.
func (p Port) Handle() string { return fmt.Sprintf("%s/%s/%d", p.Bus, p.Device, p.Index) }

// Link is what the index needs to know of a network interface.
type Link struct {
	Name     string
	AltNames []string
	// Alias is the ifalias.
	Alias string
	MAC   net.HardwareAddr

	// PortName and SwitchID are phys_port_name and phys_switch_id, empty for an interface that is no port of a switch.
	PortName, SwitchID string
	// Unreadable is why PortName and SwitchID could not be told.
	Unreadable error
}
