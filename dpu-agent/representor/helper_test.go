// SPDX-License-Identifier: Apache-2.0

package representor

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/k8snetworkplumbingwg/sriovnet"
	"github.com/ovn-uplink/ovn-uplink/shared/api/v1alpha1"
	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	ecpf0 = "0000:03:00.0"
	ecpf1 = "0000:03:00.1"
)

func mac(last int) net.HardwareAddr { return net.HardwareAddr{0, 0, 0x5e, 0, 0x53, byte(last)} }

var zeroMAC = make(net.HardwareAddr, 6)

// physical, pf, vf and sf make devlink ports; the functions are on a host.
func physical(device, netdev string) Port {
	return Port{Bus: "pci", Device: device, Index: 65535, Flavour: sriovnet.PORT_FLAVOUR_PHYSICAL, Netdev: netdev}
}

func pf(device string, controller, pf uint32, netdev string, hwAddr net.HardwareAddr) Port {
	return Port{
		Bus: "pci", Device: device, Index: 100000*controller + 1000*pf, Flavour: sriovnet.PORT_FLAVOUR_PCI_PF, Netdev: netdev,
		Controller: &controller, PF: &pf, External: new(true), HWAddr: hwAddr,
	}
}

func vf(device string, controller, pfNumber, vf uint32, netdev string, hwAddr net.HardwareAddr) Port {
	p := pf(device, controller, pfNumber, netdev, hwAddr)
	p.Flavour, p.VF, p.Index = sriovnet.PORT_FLAVOUR_PCI_VF, &vf, p.Index+1+vf
	return p
}

func sf(device string, controller, pfNumber, sf uint32, netdev string, hwAddr net.HardwareAddr) Port {
	p := pf(device, controller, pfNumber, netdev, hwAddr)
	p.Flavour, p.SF, p.Index = sriovnet.PORT_FLAVOUR_PCI_SF, &sf, p.Index+500+sf
	return p
}

// local makes the function one of the card's own machine.
func local(p Port) Port {
	p.External = new(false)
	return p
}

// old makes a port as a kernel before 5.10 tells of it.
func old(p Port) Port {
	p.External, p.Controller = nil, nil
	return p
}

// function makes what a host publishes; a number below zero is left out.
func hostFunction(pfMAC net.HardwareAddr, pf int32, vf, sf int) *v1alpha1.HostFunction {
	f := &v1alpha1.HostFunction{PFMAC: pfMAC.String(), PFID: pf}
	if vf >= 0 {
		f.VFID = new(int32(vf))
	}
	if sf >= 0 {
		f.SFID = new(int64(sf))
	}
	return f
}

func onController(f *v1alpha1.HostFunction, controller int32) *v1alpha1.HostFunction {
	f.ControllerNumber = &controller
	return f
}

// build makes an index of ports, with a link for each, and of links that devlink does not know.
func build(ports []Port, others ...Link) *Index {
	in := Input{Ports: ports, Links: others}
	for _, p := range ports {
		given := slices.ContainsFunc(others, func(l Link) bool { return l.Name == p.Netdev })
		if p.Netdev != "" && !given {
			in.Links = append(in.Links, Link{Name: p.Netdev})
		}
	}
	return Build(in)
}

func parseMap(t *testing.T, text string) *Map {
	t.Helper()
	m, err := ParseMap([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// wantProblem checks that an error is BridgeNotFound and that its message has all the given parts.
func wantProblem(t *testing.T, err error, parts ...string) {
	t.Helper()
	var p *uplinkstate.Problem
	if !errors.As(err, &p) || p.Reason != uplinkstate.ReasonBridgeNotFound {
		t.Fatalf("error %v, want BridgeNotFound", err)
	}
	for _, part := range parts {
		if !strings.Contains(p.Message, part) {
			t.Errorf("message lacks %q: %s", part, p.Message)
		}
	}
}

// bigCard is a card with one host PF and n VFs of it.
func bigCard(n int) []Port {
	ports := []Port{physical(ecpf0, "p0"), pf(ecpf0, 1, 0, "pf0hpf", mac(1))}
	for i := range n {
		ports = append(ports, vf(ecpf0, 1, 0, uint32(i), fmt.Sprintf("pf0vf%d", i), net.HardwareAddr{2, 0, 0, 0, byte(i >> 8), byte(i)}))
	}
	return ports
}
