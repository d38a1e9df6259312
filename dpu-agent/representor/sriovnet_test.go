// SPDX-License-Identifier: Apache-2.0

package representor

import (
	"testing"

	"github.com/k8snetworkplumbingwg/sriovnet"
	"github.com/k8snetworkplumbingwg/sriovnet/pkg/utils/netlinkops"
	"github.com/vishvananda/netlink"
)

// dump answers sriovnet's devlink requests with given ports.
type dump struct {
	netlinkops.NetlinkOps
	ports []*netlink.DevlinkPort
}

func (d dump) DevLinkGetAllPortList() ([]*netlink.DevlinkPort, error) { return d.ports, nil }

func (d dump) DevLinkGetDevicePortList(bus, device string) ([]*netlink.DevlinkPort, error) {
	var found []*netlink.DevlinkPort
	for _, p := range d.ports {
		if p.BusName == bus && p.DeviceName == device {
			found = append(found, p)
		}
	}
	return found, nil
}

// TestAgreesWithSriovnet compares the index with sriovnet, which dumps all ports for every question, on a card of
// two ECPFs that serves two hosts.
func TestAgreesWithSriovnet(t *testing.T) {
	var ports []Port
	for controller := range uint32(2) {
		for i, device := range []string{ecpf0, ecpf1} {
			n := uint32(i)
			name := string(rune('a'+2*controller+n)) + "_"
			ports = append(ports, pf(device, controller+1, n, name+"pf", mac(int(10*controller+n))))
			for v := range uint32(3) {
				ports = append(ports, vf(device, controller+1, n, v, name+"vf"+string(rune('0'+v)), zeroMAC),
					sf(device, controller+1, n, v, name+"sf"+string(rune('0'+v)), zeroMAC))
			}
		}
	}
	narrow := func(n *uint32) *uint16 {
		if n == nil {
			return nil
		}
		return new(uint16(*n))
	}
	var fake dump
	for _, p := range ports {
		fake.ports = append(fake.ports, &netlink.DevlinkPort{
			BusName: p.Bus, DeviceName: p.Device, PortIndex: p.Index, NetdeviceName: p.Netdev, PortFlavour: uint16(p.Flavour),
			Fn: &netlink.DevlinkPortFn{HwAddr: p.HWAddr}, PfNumber: narrow(p.PF), VfNumber: narrow(p.VF), SfNumber: p.SF,
			ControllerNumber: p.Controller, External: p.External,
		})
	}
	netlinkops.SetNetlinkOps(fake)
	t.Cleanup(netlinkops.ResetNetlinkOps)

	x := build(ports)
	for _, p := range ports {
		if p.Flavour != sriovnet.PORT_FLAVOUR_PCI_PF {
			continue
		}
		params, err := sriovnet.GetPFRepresentorPortParamsFromMAC(p.HWAddr)
		if err != nil {
			t.Fatal(err)
		}
		want, err := sriovnet.GetPfRepresentorFromPortParams(params)
		compare(t, x, Query{Function: hostFunction(p.HWAddr, int32(*p.PF), -1, -1)}, want, err)
		for n := range 3 {
			want, err := sriovnet.GetVfRepresentorFromPortParams(params, uint32(n))
			compare(t, x, Query{Function: hostFunction(p.HWAddr, int32(*p.PF), n, -1)}, want, err)
			want, err = sriovnet.GetSfRepresentorFromPortParams(params, uint32(n))
			compare(t, x, Query{Function: hostFunction(p.HWAddr, int32(*p.PF), -1, n)}, want, err)
		}
	}
}

func compare(t *testing.T, x *Index, q Query, want string, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	got, err := x.Resolve(q)
	if err != nil || got.Netdev != want {
		t.Errorf("%+v: %s, %v; sriovnet says %s", q.Function, got.Netdev, err, want)
	}
}
