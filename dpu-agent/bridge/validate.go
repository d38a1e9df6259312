// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
)

// Target is the bridge that was found for a host's interface.
type Target struct {
	Bridge string
	// HostPort is the port or interface of the bridge that faces the host: a representor's, or the bridge's own name
	// where the host's interface is the bridge.
	HostPort string
	// DefaultGatewayBridge is the name of the cluster's default gateway bridge, if an administrator gave it.
	DefaultGatewayBridge string
}

// Report is what there is to know of a bridge as an uplink.
type Report struct {
	Bridge   string `json:"bridge"`
	HostPort string `json:"hostPort"`
	// HostOFPort is the OpenFlow port of HostPort, 65534 (OFPP_LOCAL) for the bridge itself.
	HostOFPort int `json:"hostOFPort,omitempty"`
	// VLAN is the tag of HostPort, 1 to 4094, nil where it has none.
	VLAN *int32 `json:"vlan,omitempty"`
	// WireVLAN is the tag of the host's frames where they leave the bridge, 0 where they have none there.
	WireVLAN uint16 `json:"wireVLAN,omitempty"`
	// Secure says that the bridge forwards nothing without flows: its fail_mode is secure.
	Secure bool   `json:"secure,omitempty"`
	Uplink Uplink `json:"uplink"`
	// Warning says what is likely to be a mistake but does not keep the uplink from working; empty if nothing.
	Warning string `json:"warning,omitempty"`
}

// Validate tells whether a bridge is fit to be an uplink. The error is a *uplinkstate.Problem for a finding, or
// wraps ErrUnclassified. The report has what was found out up to the error, so that it can be shown.
//
// The reasons, in this order: BridgeNotFound; BridgeInvalid for OVN's integration bridge;
// GatewayInfoUnavailable while the default gateway bridge is not known, since any bridge may be it then;
// DefaultGatewayBridgeUnsupported; BridgeUplinkNotFound; InvalidHostInterface if the host's interface is the port
// to the wire; BridgeInvalid for a bridge or host-facing port that Open vSwitch could not make, or a bridge whose
// own interface is down; BridgeUplinkNotFound for a port to the wire that is down.
func Validate(v *View, t Target, classify Classifier) (Report, error) {
	r := Report{Bridge: t.Bridge, HostPort: t.HostPort}
	b, found := v.BridgeByName(t.Bridge)
	if !found {
		return r, uplinkstate.Problemf(uplinkstate.ReasonBridgeNotFound, "Open vSwitch has no bridge %s", t.Bridge)
	}
	if p := checkOthersBridge(v, b, t.DefaultGatewayBridge); p != nil {
		return r, p
	}
	var err error
	if r.Uplink, err = FindUplink(v, b.Name, classify); err != nil {
		return r, err
	}
	host := b.Port(t.HostPort)
	if host == nil {
		return r, uplinkstate.Problemf(uplinkstate.ReasonBridgeNotFound, "bridge %s has no port %s", b.Name, t.HostPort)
	}
	if host.Name == r.Uplink.Port && b.Name == r.Uplink.Bridge {
		return r, uplinkstate.Problemf(uplinkstate.ReasonInvalidHostInterface,
			"%s is the port by which bridge %s reaches the wire; name the bridge as the host interface instead: hostInterfaceName: %s", t.HostPort, b.Name, b.Name)
	}
	if p := checkUp(b, host, t.HostPort, r.Uplink); p != nil {
		return r, p
	}
	r.HostOFPort = facing(host, t.HostPort).OFPort
	r.VLAN = vlan(host)
	r.WireVLAN = wireVLAN(r.VLAN, exitPort(b, r.Uplink))
	r.Secure = b.FailMode == "secure"
	r.Warning = compareMTU(b, host, t.HostPort, r.Uplink)
	return r, nil
}

// checkOthersBridge refuses the bridges that are OVN's and the CNI's.
func checkOthersBridge(v *View, b *Bridge, given string) *uplinkstate.Problem {
	if b.Name == v.IntegrationBridge() {
		return uplinkstate.Problemf(uplinkstate.ReasonBridgeInvalid,
			"%s is OVN's integration bridge; expected a bridge of its own for the uplink", b.Name)
	}
	defaults, source := defaultGatewayBridges(v, given)
	if len(defaults) == 0 {
		return uplinkstate.Problemf(uplinkstate.ReasonGatewayInfoUnavailable,
			"it is not known which bridge is the cluster's default gateway bridge, so %s might be: expected external_ids:%s of Open vSwitch to map the physical network %s; wait for the CNI to do so, or set --default-gateway-bridge",
			b.Name, source, defaultNetwork)
	}
	if slices.Contains(defaults, b.Name) {
		return uplinkstate.Problemf(uplinkstate.ReasonDefaultGatewayBridgeUnsupported,
			"%s is the cluster's default gateway bridge (%s); expected another bridge for the uplink", b.Name, source)
	}
	return nil
}

// defaultGatewayBridges gives the bridge that the administrator named, else those that the CNI's physical network
// maps to, and where that is said.
func defaultGatewayBridges(v *View, given string) (names []string, source string) {
	if given != "" {
		return []string{given}, "--default-gateway-bridge"
	}
	source, mappings := v.Mappings()
	for _, m := range mappings {
		if m.Network == defaultNetwork {
			names = append(names, m.Bridge)
		}
	}
	return names, source
}

// checkUp tells whether frames can pass. Open vSwitch forwards without the bridge's own interface being up, but
// routes, VRFs and neighbours of the uplink live on it.
func checkUp(b *Bridge, host *Port, hostPort string, u Uplink) *uplinkstate.Problem {
	if own := b.own(); own != nil {
		if why := own.Dead(); why != "" {
			return uplinkstate.Problemf(uplinkstate.ReasonBridgeInvalid,
				"bridge %s does not work: %s; look at ovs-vsctl show and the log of ovs-vswitchd", b.Name, why)
		}
		if own.AdminState == down {
			return uplinkstate.Problemf(uplinkstate.ReasonBridgeInvalid,
				"the interface of bridge %s is down; expected up: ip link set %s up", b.Name, b.Name)
		}
	}
	if why := facing(host, hostPort).Dead(); why != "" {
		return uplinkstate.Problemf(uplinkstate.ReasonBridgeInvalid,
			"the host-facing port %s of bridge %s does not work: %s; look at ovs-vsctl show", hostPort, b.Name, why)
	}
	var problems []string
	for _, m := range u.Members {
		if m.Down == "" {
			return nil
		}
		problems = append(problems, m.Interface+": "+m.Down)
	}
	return uplinkstate.Problemf(uplinkstate.ReasonBridgeUplinkNotFound,
		"port %s of bridge %s leads to the wire but is down: %s; expected up with carrier", u.Port, u.Bridge, limit(problems))
}

// facing is the interface of the host-facing port: the one of that name, else the first.
func facing(p *Port, name string) *Interface {
	if i := p.Interface(name); i != nil {
		return i
	}
	if len(p.Interfaces) > 0 {
		return &p.Interfaces[0]
	}
	return &Interface{Name: name, Error: "the database has no interface of it"}
}

// vlan is the VLAN that the host's untagged frames are in on the bridge. Tag 0 is a priority tag without a VLAN,
// 4095 is reserved (IEEE 802.1Q), and a trunk has no use for a tag (ovs-vswitchd.conf.db(5), vlan_mode).
func vlan(p *Port) *int32 {
	if p.Tag == nil || *p.Tag < 1 || *p.Tag > 4094 || p.VLANMode == "trunk" {
		return nil
	}
	tag := int32(*p.Tag)
	return &tag
}

// wireVLAN is the tag that frames of a VLAN have on a port: none on an access port of the VLAN, or where it is the
// native one without tag (ovs-vswitchd.conf.db(5), vlan_mode).
func wireVLAN(tag *int32, p *Port) uint16 {
	if tag == nil {
		return 0
	}
	if p != nil && p.Tag != nil && *p.Tag == int(*tag) && (p.VLANMode == "" || p.VLANMode == "access" || p.VLANMode == "native-untagged") {
		return 0
	}
	return uint16(*tag)
}

// exitPort is the port by which frames leave the bridge that was asked for.
func exitPort(b *Bridge, u Uplink) *Port {
	for _, exit := range u.Exits {
		return b.Port(exit.Interface)
	}
	return nil
}

// compareMTU warns if the MTUs along the way differ; those that are not known do not count.
func compareMTU(b *Bridge, host *Port, hostPort string, u Uplink) string {
	type named struct {
		what string
		mtu  int
	}
	var all []named
	for _, m := range u.Members {
		all = append(all, named{"uplink " + m.Interface, m.MTU})
	}
	if own := b.own(); own != nil {
		all = append(all, named{"bridge " + b.Name, own.MTU})
	}
	if host.Name != b.Name {
		all = append(all, named{"host-facing port " + hostPort, facing(host, hostPort).MTU})
	}
	all = slices.DeleteFunc(all, func(n named) bool { return n.mtu == 0 })
	texts := make([]string, len(all))
	differ := false
	for i, n := range all {
		differ = differ || n.mtu != all[0].mtu
		texts[i] = fmt.Sprintf("%s has %d", n.what, n.mtu)
	}
	if !differ {
		return ""
	}
	return "the MTUs differ, so that large packets may be lost: " + strings.Join(texts, ", ") + "; set them alike"
}
