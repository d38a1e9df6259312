// SPDX-License-Identifier: Apache-2.0

package hostlink

import (
	"fmt"
	"path"
	"regexp"
	"strconv"
)

// pciAddress is the address of a PCI function: 0000:03:00.1. Domains above ffff exist (Intel VMD).
type pciAddress struct {
	domain                uint32
	bus, device, function uint8
}

// pciAddressText is how the kernel writes it (pci_setup_device, "%04x:%02x:%02x.%d").
var pciAddressText = regexp.MustCompile(`^([0-9a-f]{4}|[1-9a-f][0-9a-f]{4,7}):([0-9a-f]{2}):([01][0-9a-f])\.([0-7])$`)

// parsePCIAddress reads an address as sysfs writes it; ok is false for anything else.
func parsePCIAddress(text string) (address pciAddress, ok bool) {
	parts := pciAddressText.FindStringSubmatch(text)
	if parts == nil {
		return pciAddress{}, false
	}
	number := func(i, bits int) uint64 {
		n, err := strconv.ParseUint(parts[i], 16, bits)
		ok = ok && err == nil
		return n
	}
	ok = true
	address = pciAddress{uint32(number(1, 32)), uint8(number(2, 8)), uint8(number(3, 8)), uint8(number(4, 8))}
	return address, ok
}

func (a pciAddress) String() string {
	return fmt.Sprintf("%04x:%02x:%02x.%d", a.domain, a.bus, a.device, a.function)
}

// nearestPCI is the PCI function that a sysfs device path is of or below. sriovnet's GetPfPciFromAux and
// GetPciFromNetDevice would say the same, but never return for a device without one.
func nearestPCI(devicePath string) (pciAddress, bool) {
	for p := devicePath; p != "." && p != "/"; p = path.Dir(p) {
		if address, ok := parsePCIAddress(path.Base(p)); ok {
			return address, true
		}
	}
	return pciAddress{}, false
}
