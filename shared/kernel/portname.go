// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"regexp"
	"strconv"

	"github.com/k8snetworkplumbingwg/sriovnet"
)

// portNames are the names that the kernel gives ports of a switching card (net/core/devlink.c,
// __devlink_port_phys_port_name_get): physical ports, and representors with the controller before them where the
// function is on another machine.
var (
	physicalName    = regexp.MustCompile(`^p(\d+)$`)
	representorName = regexp.MustCompile(`^(?:c(\d+))?pf(\d+)(?:(vf|sf)(\d+))?$`)
)

// PortName is what a phys_port_name says.
type PortName struct {
	Flavour sriovnet.PortFlavour
	// Number is that of a physical port.
	Number uint32
	// Controller is nil where the name has none.
	Controller *uint32
	PF         uint32
	// VF and SF are nil unless the port represents one.
	VF, SF *uint32
}

// ParsePortName reads a phys_port_name. It is false for anything that is not such a name as a whole.
func ParsePortName(text string) (PortName, bool) {
	if m := physicalName.FindStringSubmatch(text); m != nil {
		number, ok := parseNumber(m[1])
		return PortName{Flavour: sriovnet.PORT_FLAVOUR_PHYSICAL, Number: number}, ok
	}
	m := representorName.FindStringSubmatch(text)
	if m == nil {
		return PortName{}, false
	}
	name := PortName{Flavour: sriovnet.PORT_FLAVOUR_PCI_PF}
	pf, ok := parseNumber(m[2])
	name.PF = pf
	if m[1] != "" {
		controller, valid := parseNumber(m[1])
		name.Controller, ok = &controller, ok && valid
	}
	if m[3] != "" {
		number, valid := parseNumber(m[4])
		ok = ok && valid
		if m[3] == "vf" {
			name.Flavour, name.VF = sriovnet.PORT_FLAVOUR_PCI_VF, &number
		} else {
			name.Flavour, name.SF = sriovnet.PORT_FLAVOUR_PCI_SF, &number
		}
	}
	if !ok {
		return PortName{}, false
	}
	return name, true
}

func parseNumber(digits string) (uint32, bool) {
	n, err := strconv.ParseUint(digits, 10, 32)
	return uint32(n), err == nil
}
