// SPDX-License-Identifier: Apache-2.0

package representor

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/k8snetworkplumbingwg/sriovnet"
)

// printedPort is a port as `devlink -j port show` prints it. Fields that are not used are left out.
type printedPort struct {
	Netdev     string  `json:"netdev"`
	Flavour    string  `json:"flavour"`
	Controller *uint32 `json:"controller"`
	PF         *uint32 `json:"pfnum"`
	VF         *uint32 `json:"vfnum"`
	SF         *uint32 `json:"sfnum"`
	External   *bool   `json:"external"`
	Function   struct {
		HWAddr string `json:"hw_addr"`
	} `json:"function"`
}

// flavours are the names that devlink prints; all others are of no interest.
var flavours = map[string]sriovnet.PortFlavour{
	"physical": sriovnet.PORT_FLAVOUR_PHYSICAL,
	"pcipf":    sriovnet.PORT_FLAVOUR_PCI_PF,
	"pcivf":    sriovnet.PORT_FLAVOUR_PCI_VF,
	"pcisf":    sriovnet.PORT_FLAVOUR_PCI_SF,
}

// ParseDevlinkPorts reads what `devlink -j port show` prints, sorted by handle.
func ParseDevlinkPorts(text []byte) ([]Port, error) {
	var printed struct {
		Port map[string]printedPort `json:"port"`
	}
	if err := json.Unmarshal(text, &printed); err != nil {
		return nil, fmt.Errorf("parse devlink ports: %w", err)
	}
	if printed.Port == nil {
		return nil, errors.New(`parse devlink ports: no object "port"; expected what devlink -j port show prints`)
	}
	ports := make([]Port, 0, len(printed.Port))
	for handle, p := range printed.Port {
		port, err := parseHandle(handle)
		if err != nil {
			return nil, err
		}
		flavour, known := flavours[p.Flavour]
		if !known {
			flavour = sriovnet.PORT_FLAVOUR_UNKNOWN
		}
		port.Flavour, port.Netdev = flavour, p.Netdev
		port.Controller, port.PF, port.VF, port.SF, port.External = p.Controller, p.PF, p.VF, p.SF, p.External
		// Text that is no address is none, as zeros are.
		port.HWAddr, _ = net.ParseMAC(p.Function.HWAddr)
		ports = append(ports, port)
	}
	sortPorts(ports)
	return ports, nil
}

// parseHandle reads "bus/device/index".
func parseHandle(handle string) (Port, error) {
	bus, rest, _ := strings.Cut(handle, "/")
	last := strings.LastIndex(rest, "/")
	if bus == "" || last <= 0 {
		return Port{}, fmt.Errorf("parse devlink ports: %q is not bus/device/index", handle)
	}
	index, err := strconv.ParseUint(rest[last+1:], 10, 32)
	if err != nil {
		return Port{}, fmt.Errorf("parse devlink ports: %q is not bus/device/index", handle)
	}
	return Port{Bus: bus, Device: rest[:last], Index: uint32(index)}, nil
}

func sortPorts(ports []Port) {
	slices.SortFunc(ports, func(a, b Port) int {
		return cmp.Or(cmp.Compare(a.Bus, b.Bus), cmp.Compare(a.Device, b.Device), cmp.Compare(a.Index, b.Index))
	})
}
