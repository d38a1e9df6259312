// SPDX-License-Identifier: Apache-2.0

package hostlink

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"

	"github.com/k8snetworkplumbingwg/sriovnet"
	"github.com/ovn-uplink/ovn-uplink/shared/api/v1alpha1"
	"github.com/ovn-uplink/ovn-uplink/shared/kernel"
	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
)

// onPhysical describes a physical function. netdev is its interface, "" if that is to be found; there may be
// none, in another network namespace or while the function is passed to a virtual machine.
func (r FunctionReader) onPhysical(ctx context.Context, s *kernel.Snapshot, address, netdev string) (*v1alpha1.HostFunction, error) {
	pci, ok := parsePCIAddress(address)
	if !ok {
		return nil, fmt.Errorf("%q is not the address of a PCI function", address)
	}
	function := &v1alpha1.HostFunction{PFID: int32(pci.function)}
	if netdev == "" {
		var err error
		if netdev, err = r.netdevOf(ctx, address); err != nil {
			return nil, err
		}
		if netdev == "" {
			return function, nil
		}
	}
	port, err := r.portName(ctx, netdev)
	if err != nil {
		return nil, err
	}
	// The port number is what the card itself calls the function, and stays when a hypervisor gives the
	// function another address. mlx5 calls both ends by mlx5_get_dev_index, which is native_port_num - 1, or
	// the PCI function number where firmware has none.
	if name, ok := kernel.ParsePortName(port); ok && name.Flavour == sriovnet.PORT_FLAVOUR_PHYSICAL && name.Number <= math.MaxUint16 {
		function.PFID = int32(name.Number)
	}
	if function.PFMAC, err = r.anchorMAC(ctx, s, netdev); err != nil {
		return nil, err
	}
	return function, nil
}

// portName reads the phys_port_name of an interface, "" if it has none.
func (r FunctionReader) portName(ctx context.Context, netdev string) (string, error) {
	port, err := r.sysfs.ReadAttr(ctx, netDevices, netdev, "phys_port_name")
	if errors.Is(err, kernel.ErrAbsent) {
		return "", nil
	}
	return port, err
}

// netdevOf finds the interface of a physical function, "" if it has none here. In switchdev mode it is the
// uplink representor among the others, which sriovnet tells by devlink; else it is the only one.
func (r FunctionReader) netdevOf(ctx context.Context, pf string) (string, error) {
	uplink, err := kernel.Access(ctx, r.sysfs, "uplink of "+pf, func() (string, error) { return sriovnet.GetUplinkRepresentor(pf) })
	if err == nil || errors.Is(err, kernel.ErrTimeout) {
		return uplink, err
	}
	names, err := r.sysfs.List(ctx, pciDevices, pf, "net")
	if errors.Is(err, kernel.ErrAbsent) || len(names) > 1 {
		return "", nil
	}
	if err != nil || len(names) == 0 {
		return "", err
	}
	return names[0], nil
}

// anchorMAC is the MAC address by which the card knows a physical function, "" if it cannot be told. It is the
// permanent address: the card's end reads the factory-programmed one (mlx5_esw_vport_enable, permanent_address
// of the NIC vport context), and bonds give several functions one current address. The current address stands
// in where the driver reports no permanent one.
func (r FunctionReader) anchorMAC(ctx context.Context, s *kernel.Snapshot, netdev string) (string, error) {
	link, _ := s.LinkByName(netdev)
	for _, mac := range []net.HardwareAddr{link.PermanentAddr, link.HardwareAddr} {
		if uplinkstate.UsableMAC(mac) {
			return mac.String(), nil
		}
	}
	// Not among this namespace's links: a simulated card.
	address, err := r.sysfs.ReadAttr(ctx, netDevices, netdev, "address")
	if errors.Is(err, kernel.ErrAbsent) {
		return "", nil
	}
	return usableMAC(address), err
}

// usableMAC normalises the text of a MAC address, "" if it is of no use.
func usableMAC(text string) string {
	mac, err := net.ParseMAC(text)
	if err != nil || !uplinkstate.UsableMAC(mac) {
		return ""
	}
	return mac.String()
}
