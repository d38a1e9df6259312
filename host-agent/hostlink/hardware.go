// SPDX-License-Identifier: Apache-2.0

package hostlink

import (
	"context"
	"fmt"
	"path"

	"github.com/Mellanox/rdmamap"
	"github.com/jaypipes/ghw"
	"github.com/jaypipes/ghw/pkg/pci"
	"github.com/jaypipes/pcidb"
	"github.com/ovn-uplink/ovn-uplink/shared/kernel"
)

// Hardware is the card behind an interface, for people to read.
type Hardware struct {
	PCIAddress string `json:"pciAddress"`
	Driver     string `json:"driver,omitempty"`
	// VendorID and ProductID are hexadecimal; the names are there where the machine has a pci.ids database.
	VendorID  string `json:"vendorID,omitempty"`
	Vendor    string `json:"vendor,omitempty"`
	ProductID string `json:"productID,omitempty"`
	Product   string `json:"product,omitempty"`
	// RDMADevices are the names of its RDMA devices. Not read below another root than /sys, which is all
	// that rdmamap knows.
	RDMADevices []string `json:"rdmaDevices,omitempty"`
}

// readHardware looks at the card behind an interface. It is nil for an interface that is on none.
func readHardware(ctx context.Context, sysfs *kernel.Sysfs, link kernel.Link) (*Hardware, error) {
	device, err := deviceOf(ctx, sysfs, link)
	if err != nil {
		return nil, fmt.Errorf("find the card of %s: %w", link.Name, err)
	}
	address, ok := nearestPCI(device)
	if !ok {
		return nil, nil
	}
	hardware := &Hardware{PCIAddress: address.String()}
	driver, err := sysfs.Resolve(ctx, device, "driver")
	if err == nil {
		hardware.Driver = path.Base(driver)
	}
	modalias, err := sysfs.ReadAttr(ctx, pciDevices, address.String(), "modalias")
	if err != nil {
		return hardware, fmt.Errorf("identify the card of %s: %w", link.Name, err)
	}
	if err := hardware.identify(modalias); err != nil {
		return hardware, fmt.Errorf("identify the card of %s: %w", link.Name, err)
	}
	if sysfs.IsReal() {
		hardware.RDMADevices, err = rdmaDevices(ctx, sysfs, path.Base(device))
	}
	return hardware, err
}

// identify names vendor and product of a PCI modalias. ghw only decodes it: it is pointed at no sysfs, which it
// would scan whole, and the database of names is read from the machine, never fetched.
func (h *Hardware) identify(modalias string) error {
	fetch := false
	names, err := pcidb.New(&pcidb.WithOption{EnableNetworkFetch: &fetch})
	if err != nil {
		names = &pcidb.PCIDB{} // No database here: numbers must do.
	}
	decoder, err := pci.New(ghw.WithPCIDB(names), ghw.WithPathOverrides(map[string]string{"/sys": "/nonexistent"}),
		ghw.WithDisableTopology(), ghw.WithDisableTools(), ghw.WithDisableWarnings())
	if err != nil {
		return err
	}
	device := decoder.ParseDevice(h.PCIAddress, modalias)
	if device == nil {
		return fmt.Errorf("modalias %q is not that of a PCI device", modalias)
	}
	h.VendorID, h.ProductID = device.Vendor.ID, device.Product.ID
	if len(names.Vendors) > 0 {
		h.Vendor, h.Product = device.Vendor.Name, device.Product.Name
	}
	return nil
}

// rdmaDevices lists the RDMA devices of a PCI or auxiliary device.
func rdmaDevices(ctx context.Context, sysfs *kernel.Sysfs, device string) ([]string, error) {
	return kernel.Access(ctx, sysfs, "RDMA devices of "+device, func() ([]string, error) {
		if _, ok := parsePCIAddress(device); ok {
			return rdmamap.GetRdmaDevicesForPcidev(device), nil
		}
		return rdmamap.GetRdmaDevicesForAuxdev(device), nil
	})
}
