// SPDX-License-Identifier: Apache-2.0

package locate

import (
	"errors"
	"net"
	"testing"

	"github.com/ovn-uplink/ovn-uplink/dpu-agent/bridge"
	"github.com/ovn-uplink/ovn-uplink/dpu-agent/representor"
	"github.com/ovn-uplink/ovn-uplink/shared/api/v1alpha1"
	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
)

const (
	hostMAC = "00:00:5e:00:53:07"
	hostPF  = "00:00:5e:00:53:01"
)

// card is a BlueField with a host PF and VF 7, and a local VF 7 whose name is easily mistaken for it.
const card = `{"port":{
 "pci/0000:03:00.0/65535":{"type":"eth","netdev":"p0","flavour":"physical","port":0},
 "pci/0000:03:00.0/1":{"type":"eth","netdev":"pf0hpf","flavour":"pcipf","controller":1,"pfnum":0,"external":true,"function":{"hw_addr":"00:00:5e:00:53:01"}},
 "pci/0000:03:00.0/2":{"type":"eth","netdev":"c1pf0vf7","flavour":"pcivf","controller":1,"pfnum":0,"vfnum":7,"external":true,"function":{"hw_addr":"00:00:00:00:00:00"}},
 "pci/0000:03:00.0/3":{"type":"eth","netdev":"pf0vf7","flavour":"pcivf","controller":0,"pfnum":0,"vfnum":7,"external":false,"function":{"hw_addr":"00:00:00:00:00:00"}}
}}`

func seen(t *testing.T, bridges ...bridge.Bridge) sight {
	t.Helper()
	ports, err := representor.ParseDevlinkPorts([]byte(card))
	if err != nil {
		t.Fatal(err)
	}
	links := []representor.Link{{Name: "eth1"}} // a plain network card
	for _, p := range ports {
		links = append(links, representor.Link{Name: p.Netdev})
	}
	return sight{
		ovs:      &bridge.View{ExternalIDs: map[string]string{"ovn-bridge-mappings": "physnet:br-ex"}, Bridges: bridges},
		card:     representor.Build(representor.Input{Ports: ports, Links: links}),
		defaults: "",
	}
}

// ovsBridge makes a bridge with its own port and member ports that are all up.
func ovsBridge(name string, members ...string) bridge.Bridge {
	b := bridge.Bridge{Name: name}
	for i, port := range append([]string{name}, members...) {
		iface := bridge.Interface{Name: port, OFPort: i + 1, AdminState: "up", LinkState: "up"}
		if port == name {
			iface.Type = "internal"
		}
		b.Ports = append(b.Ports, bridge.Port{Name: port, Interfaces: []bridge.Interface{iface}})
	}
	return b
}

func mac(t *testing.T, text string) net.HardwareAddr {
	t.Helper()
	m, err := net.ParseMAC(text)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func vf(number int32) *v1alpha1.HostFunction {
	return &v1alpha1.HostFunction{PFMAC: hostPF, PFID: 0, VFID: &number}
}

func TestFind(t *testing.T) {
	for name, tc := range map[string]struct {
		locate  locator
		bridges []bridge.Bridge
		host    uplinkstate.HostData
		bridge  string
		port    string
		reason  string
	}{
		"VF whose MAC the card does not know (A1)": {
			onCard, []bridge.Bridge{ovsBridge("br-vm", "c1pf0vf7", "p0")},
			uplinkstate.HostData{Interface: "ens1f0v7", MAC: mac(t, hostMAC), Function: vf(7)}, "br-vm", "c1pf0vf7", ""},
		"the card's own VF 7 is not the host's (A5)": {
			onCard, []bridge.Bridge{ovsBridge("br-vm", "pf0vf7", "p0")},
			uplinkstate.HostData{Interface: "ens1f0v7", MAC: mac(t, hostMAC), Function: vf(7)}, "", "", uplinkstate.ReasonBridgeNotFound},
		"PF by MAC alone": {
			onCard, []bridge.Bridge{ovsBridge("br-ext", "p0", "pf0hpf")},
			uplinkstate.HostData{Interface: "ens1f0", MAC: mac(t, hostPF)}, "br-ext", "pf0hpf", ""},
		"a zero MAC matches no function that has none (A2)": {
			onCard, []bridge.Bridge{ovsBridge("br-vm", "c1pf0vf7", "p0")},
			uplinkstate.HostData{Interface: "ens1f0v7", MAC: make(net.HardwareAddr, 6)}, "", "", uplinkstate.ReasonBridgeNotFound},
		"only representors on the bridge (B4)": {
			onCard, []bridge.Bridge{ovsBridge("br-x", "c1pf0vf7")},
			uplinkstate.HostData{Interface: "ens1f0v7", MAC: mac(t, hostMAC), Function: vf(7)}, "", "", uplinkstate.ReasonBridgeUplinkNotFound},
		"regular node, bridge of that name": {
			onNode, []bridge.Bridge{ovsBridge("ovsbr1", "eth1")},
			uplinkstate.HostData{Interface: "ovsbr1", MAC: mac(t, hostMAC)}, "ovsbr1", "ovsbr1", ""},
		"regular node, the physical port itself (B8)": {
			onNode, []bridge.Bridge{ovsBridge("ovsbr1", "eth1")},
			uplinkstate.HostData{Interface: "eth1", MAC: mac(t, hostMAC)}, "", "", uplinkstate.ReasonInvalidHostInterface},
		"regular node, SmartNIC VF by its local representor": {
			onNode, []bridge.Bridge{ovsBridge("br-nic", "pf0vf7", "p0")},
			uplinkstate.HostData{Interface: "ens1f0v7", MAC: mac(t, hostMAC), Function: &v1alpha1.HostFunction{PFID: 0, VFID: vf(7).VFID}}, "br-nic", "pf0vf7", ""},
		"regular node, no bridge": {
			onNode, []bridge.Bridge{ovsBridge("ovsbr1", "eth1")},
			uplinkstate.HostData{Interface: "eth9", MAC: mac(t, hostMAC)}, "", "", uplinkstate.ReasonBridgeNotFound},
		"default gateway bridge": {
			onNode, []bridge.Bridge{ovsBridge("br-ex", "eth1")},
			uplinkstate.HostData{Interface: "br-ex", MAC: mac(t, hostMAC)}, "", "", uplinkstate.ReasonDefaultGatewayBridgeUnsupported},
		"integration bridge": {
			onNode, []bridge.Bridge{ovsBridge("br-int", "eth1")},
			uplinkstate.HostData{Interface: "br-int", MAC: mac(t, hostMAC)}, "", "", uplinkstate.ReasonBridgeInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			finding, report, err := find(seen(t, tc.bridges...), tc.locate, tc.host)
			if tc.reason == "" {
				if err != nil || finding.Bridge != tc.bridge || finding.Port != tc.port {
					t.Errorf("got %+v, %v", finding, err)
				}
				return
			}
			var problem *uplinkstate.Problem
			if !errors.As(err, &problem) || problem.Reason != tc.reason || report.Reason != tc.reason {
				t.Errorf("got %v, want %s", err, tc.reason)
			}
		})
	}
}

// The uplink port of a DPDK bridge has no network interface in the kernel (B2).
func TestPortsWithoutNetdev(t *testing.T) {
	b := ovsBridge("br-ovn", "dpdk-p0", "pf0hpf")
	b.Ports[1].Interfaces[0].Type, b.Ports[2].Interfaces[0].Type = "dpdk", "dpdk"
	finding, _, err := find(seen(t, b), onCard, uplinkstate.HostData{Interface: "ens1f0", MAC: mac(t, hostPF)})
	if err != nil || finding.UplinkPort != "dpdk-p0" {
		t.Errorf("got %+v, %v", finding, err)
	}
}
