// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"path/filepath"
)

// DevlinkPort is one port as `devlink -j port show` prints it,
// devlink-port(8). Fields that a flavour does not have are nil or empty and
// left out.
type DevlinkPort struct {
	Type       string           `json:"type"` // "eth"
	Netdev     string           `json:"netdev,omitempty"`
	Flavour    string           `json:"flavour"` // "physical", "pcipf", "pcivf", "pcisf"
	Port       *int             `json:"port,omitempty"`
	Controller *int             `json:"controller,omitempty"`
	PFNum      *int             `json:"pfnum,omitempty"`
	VFNum      *int             `json:"vfnum,omitempty"`
	SFNum      *int             `json:"sfnum,omitempty"`
	External   *bool            `json:"external,omitempty"`
	Splittable bool             `json:"splittable"`
	Function   *DevlinkFunction `json:"function,omitempty"`
}

// DevlinkFunction is the function behind a port.
type DevlinkFunction struct {
	HWAddr  string `json:"hw_addr,omitempty"`
	State   string `json:"state,omitempty"`   // of an SF: "active"
	OpState string `json:"opstate,omitempty"` // of an SF: "attached"
}

// PhysicalPort is the card's own port to the wire.
func PhysicalPort(netdev string, port int) DevlinkPort {
	return DevlinkPort{Type: "eth", Netdev: netdev, Flavour: "physical", Port: &port}
}

// HostPFPort is the representor of a physical function of the host, which a
// card sees as external and on controller 1.
func HostPFPort(netdev string, pf int, mac string) DevlinkPort {
	return DevlinkPort{
		Type: "eth", Netdev: netdev, Flavour: "pcipf",
		Controller: new(1), PFNum: &pf, External: new(true),
		Function: &DevlinkFunction{HWAddr: mac},
	}
}

// HostVFPort is the representor of a virtual function of the host.
func HostVFPort(netdev string, pf, vf int, mac string) DevlinkPort {
	p := HostPFPort(netdev, pf, mac)
	p.Flavour, p.VFNum = "pcivf", &vf
	return p
}

// DevlinkFile is the path of the node's injected devlink view. It holds what
// `devlink -j port show` would print and exists after SetDevlink.
func (n *Node) DevlinkFile() string { return filepath.Join(n.Dir(), "devlink.json") }

// SetDevlink replaces the node's devlink view in one step. Keys are port
// handles, such as "pci/0000:03:00.0/65535".
func (n *Node) SetDevlink(ports map[string]DevlinkPort) error {
	return writeJSON(n.DevlinkFile(), map[string]map[string]DevlinkPort{"port": ports})
}

// Devlink reads the node's devlink view, for a caller that changes a part
// of it.
func (n *Node) Devlink() (map[string]DevlinkPort, error) {
	var view struct {
		Port map[string]DevlinkPort `json:"port"`
	}
	return view.Port, readJSON(n.DevlinkFile(), &view)
}
