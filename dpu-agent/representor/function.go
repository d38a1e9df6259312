// SPDX-License-Identifier: Apache-2.0

package representor

import (
	"fmt"
	"math"
	"net"
	"strings"

	"github.com/ovn-uplink/ovn-uplink/shared/api/v1alpha1"
	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
)

// kind is the kind of a PCI function.
type kind string

const (
	kindPF kind = "PF"
	kindVF kind = "VF"
	kindSF kind = "SF"
)

// functionKey is what functions are looked up by. It is no identity: every host of a card has a VF 3 of PF 0.
type functionKey struct {
	kind   kind
	pf     uint32
	number uint32 // of the VF or SF; 0 for a PF
}

// function is a host's function as somebody outside the card names it.
type function struct {
	key functionKey
	// controller is nil if it is not known.
	controller *uint32
	// pfMAC is nil if it is not known.
	pfMAC net.HardwareAddr
}

// functionOf takes the function out of an UplinkState; false if it cannot be one.
func functionOf(f *v1alpha1.HostFunction) (function, bool) {
	if f == nil || f.PFID < 0 || f.VFID != nil && f.SFID != nil || f.SFID != nil && (*f.SFID < 0 || *f.SFID > math.MaxUint32) {
		return function{}, false
	}
	out := function{key: functionKey{kind: kindPF, pf: uint32(f.PFID)}}
	if f.VFID != nil {
		out.key.kind, out.key.number = kindVF, uint32(*f.VFID)
	}
	if f.SFID != nil {
		out.key.kind, out.key.number = kindSF, uint32(*f.SFID)
	}
	if f.ControllerNumber != nil {
		controller := uint32(*f.ControllerNumber)
		out.controller = &controller
	}
	if mac, err := net.ParseMAC(f.PFMAC); err == nil && uplinkstate.UsableMAC(mac) {
		out.pfMAC = mac
	}
	return out, true
}

func (f function) String() string {
	var b strings.Builder
	if f.key.kind != kindPF {
		fmt.Fprintf(&b, "%s %d of ", f.key.kind, f.key.number)
	}
	fmt.Fprintf(&b, "PF %d", f.key.pf)
	if f.pfMAC != nil {
		fmt.Fprintf(&b, " (%s)", f.pfMAC)
	}
	if f.controller != nil {
		fmt.Fprintf(&b, ", controller %d", *f.controller)
	}
	return b.String()
}

// includes tells whether a function that may leave out controller and PF MAC is the other one.
func (f function) includes(other function) bool {
	return f.key == other.key &&
		(f.controller == nil || other.controller != nil && *f.controller == *other.controller) &&
		(f.pfMAC == nil || f.pfMAC.String() == other.pfMAC.String())
}
