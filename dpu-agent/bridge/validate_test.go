// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"testing"

	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
)

// change returns the bridge with one interface changed.
func change(b Bridge, iface string, f func(*Interface)) Bridge {
	for i := range b.Ports {
		if found := b.Ports[i].Interface(iface); found != nil {
			f(found)
		}
	}
	return b
}

func TestValidateRefuses(t *testing.T) {
	blue := func() Bridge { return br("br-blue", port("p0", ""), port("pf0vf3", "")) }
	mapped := func(ids map[string]string, bridges ...Bridge) *View {
		v := view(bridges...)
		v.ExternalIDs = ids
		return v
	}
	tests := map[string]struct {
		view   *View
		target Target
		reason string
		parts  []string
	}{
		"no such bridge": {
			view: view(), target: Target{Bridge: "br-blue"}, reason: uplinkstate.ReasonBridgeNotFound,
		},
		"B9: the integration bridge": {
			view: view(br("br-int")), target: Target{Bridge: "br-int"}, reason: uplinkstate.ReasonBridgeInvalid,
			parts: []string{"br-int is OVN's integration bridge"},
		},
		"B9: the integration bridge of another name": {
			view:   mapped(map[string]string{"ovn-bridge": "br-ovn-int"}, br("br-ovn-int")),
			target: Target{Bridge: "br-ovn-int"}, reason: uplinkstate.ReasonBridgeInvalid,
		},
		"B9: the default gateway bridge": {
			view: view(br("br-eth0", port("eth0", ""))), target: Target{Bridge: "br-eth0"},
			reason: uplinkstate.ReasonDefaultGatewayBridgeUnsupported, parts: []string{"ovn-bridge-mappings"},
		},
		"B9: the default gateway bridge by flag": {
			view: view(blue()), target: Target{Bridge: "br-blue", DefaultGatewayBridge: "br-blue"},
			reason: uplinkstate.ReasonDefaultGatewayBridgeUnsupported, parts: []string{"--default-gateway-bridge"},
		},
		"B9: the default gateway bridge is not known yet": {
			view: mapped(nil, blue()), target: Target{Bridge: "br-blue"},
			reason: uplinkstate.ReasonGatewayInfoUnavailable, parts: []string{"physnet", "ovn-bridge-mappings", "--default-gateway-bridge"},
		},
		"B12: the chassis' own mapping hides the other": {
			view:   mapped(map[string]string{"ovn-bridge-mappings": "physnet:br-ex", "ovn-bridge-mappings-c1": "physnet:br-blue"}, blue()),
			target: Target{Bridge: "br-blue"}, reason: uplinkstate.ReasonDefaultGatewayBridgeUnsupported,
			parts: []string{"ovn-bridge-mappings-c1"},
		},
		"B12: the chassis' own mapping is empty": {
			view:   mapped(map[string]string{"ovn-bridge-mappings": "physnet:br-ex", "ovn-bridge-mappings-c1": ""}, blue()),
			target: Target{Bridge: "br-blue"}, reason: uplinkstate.ReasonGatewayInfoUnavailable,
			parts: []string{"ovn-bridge-mappings-c1"},
		},
		"no uplink": {
			view: view(br("br-blue", port("pf0vf3", ""))), target: Target{Bridge: "br-blue", HostPort: "pf0vf3"},
			reason: uplinkstate.ReasonBridgeUplinkNotFound,
		},
		"B8: the host interface is the uplink": {
			view: view(br("br-blue", port("eth1", ""))), target: Target{Bridge: "br-blue", HostPort: "eth1"},
			reason: uplinkstate.ReasonInvalidHostInterface, parts: []string{"eth1", "hostInterfaceName: br-blue"},
		},
		"B8: the host interface is a member of the uplink": {
			view: view(br("br-blue", bond("bond0", "p0", "p1"))), target: Target{Bridge: "br-blue", HostPort: "p1"},
			reason: uplinkstate.ReasonInvalidHostInterface,
		},
		"the host-facing port is not on the bridge": {
			view: view(blue()), target: Target{Bridge: "br-blue", HostPort: "pf0vf4"},
			reason: uplinkstate.ReasonBridgeNotFound, parts: []string{"no port pf0vf4"},
		},
		"the bridge could not be made": {
			view:   view(change(blue(), "br-blue", func(i *Interface) { i.OFPort, i.Error = -1, "no tap" })),
			target: Target{Bridge: "br-blue", HostPort: "pf0vf3"}, reason: uplinkstate.ReasonBridgeInvalid, parts: []string{"no tap"},
		},
		"the bridge is down": {
			view:   view(change(blue(), "br-blue", func(i *Interface) { i.AdminState = "down" })),
			target: Target{Bridge: "br-blue", HostPort: "pf0vf3"}, reason: uplinkstate.ReasonBridgeInvalid,
			parts: []string{"ip link set br-blue up"},
		},
		"the host-facing port is dead": {
			view:   view(change(blue(), "pf0vf3", func(i *Interface) { i.OFPort = -1 })),
			target: Target{Bridge: "br-blue", HostPort: "pf0vf3"}, reason: uplinkstate.ReasonBridgeInvalid, parts: []string{"pf0vf3"},
		},
		"the uplink is administratively down": {
			view:   view(change(blue(), "p0", func(i *Interface) { i.AdminState, i.LinkState = "down", "down" })),
			target: Target{Bridge: "br-blue", HostPort: "pf0vf3"}, reason: uplinkstate.ReasonBridgeUplinkNotFound,
			parts: []string{"p0: administratively down"},
		},
		"the uplink has no carrier": {
			view:   view(change(blue(), "p0", func(i *Interface) { i.AdminState, i.LinkState = "up", "down" })),
			target: Target{Bridge: "br-blue", HostPort: "pf0vf3"}, reason: uplinkstate.ReasonBridgeUplinkNotFound,
			parts: []string{"p0: no carrier"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := Validate(test.view, test.target, card)
			problem(t, err, test.reason, test.parts...)
		})
	}
}

func TestValidateAccepts(t *testing.T) {
	tag := func(b Bridge, port string, tag int, mode string) Bridge {
		p := b.Port(port)
		p.Tag, p.VLANMode = &tag, mode
		return b
	}
	mtu := func(b Bridge, iface string, mtu int) Bridge {
		return change(b, iface, func(i *Interface) { i.MTU = mtu })
	}
	blue := func() Bridge { return br("br-blue", port("p0", ""), port("pf0vf3", "")) }
	tests := map[string]struct {
		bridge   Bridge
		hostPort string
		ofport   int
		vlan     int32
		warning  string
	}{
		"representor":                  {bridge: blue(), hostPort: "pf0vf3", ofport: 20},
		"the bridge itself":            {bridge: blue(), hostPort: "br-blue", ofport: 65534},
		"tagged representor":           {bridge: tag(blue(), "pf0vf3", 100, ""), hostPort: "pf0vf3", ofport: 20, vlan: 100},
		"tagged bridge":                {bridge: tag(blue(), "br-blue", 4094, "access"), hostPort: "br-blue", ofport: 65534, vlan: 4094},
		"native VLAN":                  {bridge: tag(blue(), "pf0vf3", 5, "native-untagged"), hostPort: "pf0vf3", ofport: 20, vlan: 5},
		"another port's tag":           {bridge: tag(blue(), "p0", 100, ""), hostPort: "pf0vf3", ofport: 20},
		"tag 0 is no VLAN":             {bridge: tag(blue(), "pf0vf3", 0, ""), hostPort: "pf0vf3", ofport: 20},
		"tag 4095 is no VLAN":          {bridge: tag(blue(), "pf0vf3", 4095, ""), hostPort: "pf0vf3", ofport: 20},
		"a trunk has no VLAN":          {bridge: tag(blue(), "pf0vf3", 7, "trunk"), hostPort: "pf0vf3", ofport: 20},
		"the same MTU":                 {bridge: mtu(mtu(blue(), "p0", 9000), "pf0vf3", 9000), hostPort: "pf0vf3", ofport: 20},
		"one member of the bond is up": {bridge: change(br("br-blue", bond("bond0", "p0", "p1")), "p0", func(i *Interface) { i.LinkState = "down" }), hostPort: "br-blue", ofport: 65534},
		"different MTUs": {
			bridge: mtu(mtu(mtu(blue(), "p0", 9000), "br-blue", 1500), "pf0vf3", 9000), hostPort: "pf0vf3", ofport: 20,
			warning: "the MTUs differ, so that large packets may be lost: uplink p0 has 9000, bridge br-blue has 1500, host-facing port pf0vf3 has 9000; set them alike",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r, err := Validate(view(test.bridge), Target{Bridge: "br-blue", HostPort: test.hostPort}, card)
			if err != nil {
				t.Fatal(err)
			}
			if value(r.VLAN) != test.vlan || r.HostOFPort != test.ofport || r.Warning != test.warning {
				t.Errorf("VLAN %d, ofport %d, warning %q; want %d, %d, %q", value(r.VLAN), r.HostOFPort, r.Warning, test.vlan, test.ofport, test.warning)
			}
		})
	}
}
