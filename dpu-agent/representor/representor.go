// SPDX-License-Identifier: Apache-2.0

package representor

import (
	"net"

	"github.com/k8snetworkplumbingwg/sriovnet"
	"github.com/ovn-uplink/ovn-uplink/shared/kernel"
)

// Side is on which machine the function behind a representor is.
type Side string

const (
	// Host is another machine than the one that the card's ports are on.
	Host Side = "host"
	// Local is the machine itself: the card's own processor, or a server with a card in it.
	Local Side = "local"
	// Unsaid is for kernels that do not tell: their pf0vf3 is a host's on a DPU, and the server's own in a server.
	Unsaid Side = "unsaid"
)

// Representor is an interface of the card that stands for a PCI function.
type Representor struct {
	// Netdev is empty while the representor has no network interface here.
	Netdev   string   `json:"netdev,omitempty"`
	AltNames []string `json:"altNames,omitempty"`
	// Port is the devlink port, bus/device/index; empty if devlink does not have it.
	Port string `json:"port,omitempty"`
	// Device is the card's PCI function that the port belongs to as bus/device, or where devlink does not say it
	// the switch as "switch/" and phys_switch_id.
	Device     string  `json:"device"`
	Side       Side    `json:"side"`
	Controller *uint32 `json:"controller,omitempty"`
	PF         uint32  `json:"pf"`
	VF         *uint32 `json:"vf,omitempty"`
	SF         *uint32 `json:"sf,omitempty"`
	// PeerMAC is the MAC address of the function, empty if the card does not know it.
	PeerMAC string `json:"peerMAC,omitempty"`
	// Source is what the numbers were read from: devlink, phys_port_name, or an alternative name.
	Source string `json:"source"`

	key functionKey
	mac net.HardwareAddr // PeerMAC, nil if it is unusable
}

// pfKey identifies a PF as the card sees it.
type pfKey struct {
	device     string
	controller uint32
	pf         uint32
}

// pf is the PF that the representor's function belongs to.
func (r *Representor) pf() pfKey {
	return pfKey{r.Device, number(r.Controller), r.PF}
}

// number is what an attribute says, 0 where the kernel leaves it out.
func number(attribute *uint32) uint32 {
	if attribute == nil {
		return 0
	}
	return *attribute
}

// sideOf believes devlink's external attribute; kernels before 5.10 have none, and neither controller numbers.
func sideOf(p Port, name kernel.PortName, named bool) Side {
	switch {
	case p.External != nil && *p.External:
		return Host
	case p.External != nil:
		return Local
	case named:
		return sideOfName(name)
	case p.Flavour == sriovnet.PORT_FLAVOUR_PCI_PF:
		return Host
	}
	return Unsaid
}

// sideOfName: only functions of other machines have a controller in their name. A machine has no representor of
// its own PF.
func sideOfName(name kernel.PortName) Side {
	if name.Controller != nil || name.Flavour == sriovnet.PORT_FLAVOUR_PCI_PF {
		return Host
	}
	return Unsaid
}
