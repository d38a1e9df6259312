// SPDX-License-Identifier: Apache-2.0

package representor

import (
	"cmp"
	"fmt"
	"net"
	"slices"

	"github.com/k8snetworkplumbingwg/sriovnet"
	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
)

// Side is on which machine the function behind a representor is.
type Side string

const (
	// Host is another machine than the one that the card's ports are on.
	Host Side = "host"
	// Local is the machine itself: the card's own processor, or a server with a card in it.
	Local Side = "local"
	// Unsaid is for kernels that do not tell: their pf0vf3 is a host's on a DPU, and the server's own in a server.
	Unsaid Side = "unsaid"
)

// Representor is an interface of the card that stands for a PCI function.
type Representor struct {
	// Netdev is empty while the representor has no network interface here.
	Netdev   string   `json:"netdev,omitempty"`
	AltNames []string `json:"altNames,omitempty"`
	// Port is the devlink port, bus/device/index; empty if devlink does not have it.
	Port string `json:"port,omitempty"`
	// Device is the card's PCI function that the port belongs to as bus/device, or where devlink does not say it
	// the switch as "switch/" and phys_switch_id.
	Device     string  `json:"device"`
	Side       Side    `json:"side"`
	Controller *uint32 `json:"controller,omitempty"`
	PF         uint32  `json:"pf"`
	VF         *uint32 `json:"vf,omitempty"`
	SF         *uint32 `json:"sf,omitempty"`
	// PeerMAC is the MAC address of the function, empty if the card does not know it.
	PeerMAC string `json:"peerMAC,omitempty"`
	// Source is what the numbers were read from: devlink, phys_port_name, or an alternative name.
	Source string `json:"source"`

	key functionKey
	mac net.HardwareAddr // PeerMAC, nil if it is unusable
}

// Input is what an Index is built from.
type Input struct {
	Ports []Port
	Links []Link
	// Map is nil without one.
	Map *Map
}

// Index answers questions about the ports of the cards of one machine at one moment. It does not change.
type Index struct {
	representors []*Representor // sorted
	byFunction   map[functionKey][]*Representor
	byMAC        map[string][]*Representor // by the bytes of the MAC address
	byNetdev     map[string]*Representor   // alternative names too
	// pfMACs are the addresses of hosts' PFs; portMACs those of the physical ports of a device, which in a server
	// are those of its own PF.
	pfMACs   map[pfKey]net.HardwareAddr
	portMACs map[string][]net.HardwareAddr
	// hostPFs and ownPFs are the addresses of both as sets.
	hostPFs, ownPFs map[string]bool

	classes map[string]Class // by name of an interface, alternative names too
	names   map[string]string

	mapByFunction map[functionKey][]*mapEntry
	mapByMAC      map[string][]*mapEntry

	// unreadable is why the index may lack a representor: an interface could not be read.
	unreadable error
	// stale is why the index may be old: what came after it could not be read.
	stale error
}

// pfKey identifies a PF as the card sees it.
type pfKey struct {
	device     string
	controller uint32
	pf         uint32
}

// Build makes an index of what was read at one moment.
func Build(in Input) *Index {
	x := &Index{
		byFunction: map[functionKey][]*Representor{}, byMAC: map[string][]*Representor{}, byNetdev: map[string]*Representor{},
		pfMACs: map[pfKey]net.HardwareAddr{}, portMACs: map[string][]net.HardwareAddr{},
		hostPFs: map[string]bool{}, ownPFs: map[string]bool{},
		classes: map[string]Class{}, names: map[string]string{},
		mapByFunction: map[functionKey][]*mapEntry{}, mapByMAC: map[string][]*mapEntry{},
	}
	links := map[string]Link{}
	for _, link := range in.Links {
		links[link.Name] = link
		for _, name := range link.names() {
			x.names[name] = link.Name
		}
	}
	for _, port := range in.Ports {
		x.addPort(port, links[port.Netdev])
		delete(links, port.Netdev)
	}
	for _, link := range in.Links {
		if _, open := links[link.Name]; open {
			x.addLink(link)
		}
	}
	x.addMap(in.Map)
	x.sort()
	return x
}

// addPort adds a port that devlink has. Its link is empty if the port has none, or one that came just now.
func (x *Index) addPort(p Port, link Link) {
	device := p.Bus + "/" + p.Device
	link.Name = p.Netdev
	switch p.Flavour {
	case sriovnet.PORT_FLAVOUR_PHYSICAL:
		x.classify(link, Physical)
		if uplinkstate.UsableMAC(link.MAC) {
			x.portMACs[device] = append(x.portMACs[device], link.MAC)
			x.ownPFs[string(link.MAC)] = true
		}
		return
	case sriovnet.PORT_FLAVOUR_PCI_PF, sriovnet.PORT_FLAVOUR_PCI_VF, sriovnet.PORT_FLAVOUR_PCI_SF:
	default:
		x.classify(link, Plain)
		return
	}
	r := &Representor{
		Netdev: p.Netdev, AltNames: link.AltNames, Port: p.Handle(), Device: device, Source: "devlink",
		Controller: p.Controller, PF: number(p.PF), VF: p.VF, SF: p.SF,
	}
	if uplinkstate.UsableMAC(p.HWAddr) {
		r.mac, r.PeerMAC = p.HWAddr, p.HWAddr.String()
	}
	name, named := ParsePortName(link.PortName)
	r.Side = sideOf(p, name, named)
	x.add(r, p.Flavour, link)
}

// number is what an attribute says, 0 where the kernel leaves it out.
func number(attribute *uint32) uint32 {
	if attribute == nil {
		return 0
	}
	return *attribute
}

// sideOf believes devlink's external attribute; kernels before 5.10 have none, and neither controller numbers.
func sideOf(p Port, name PortName, named bool) Side {
	switch {
	case p.External != nil && *p.External:
		return Host
	case p.External != nil:
		return Local
	case named:
		return sideOfName(name)
	case p.Flavour == sriovnet.PORT_FLAVOUR_PCI_PF:
		return Host
	}
	return Unsaid
}

// sideOfName: only functions of other machines have a controller in their name. A machine has no representor of
// its own PF.
func sideOfName(name PortName) Side {
	if name.Controller != nil || name.Flavour == sriovnet.PORT_FLAVOUR_PCI_PF {
		return Host
	}
	return Unsaid
}

// addLink adds an interface that devlink does not have.
func (x *Index) addLink(link Link) {
	if link.Unreadable != nil {
		x.classify(link, Unclassified)
		x.unreadable = fmt.Errorf("interface %s: %w", link.Name, link.Unreadable)
		return
	}
	source := "phys_port_name"
	name, named := ParsePortName(link.PortName)
	if !named {
		// The kernel's name did not fit, or was replaced: what else the interface is called may be that name.
		source = "alternative name"
		for _, text := range append(slices.Clone(link.AltNames), link.Alias) {
			if name, named = ParsePortName(text); named {
				break
			}
		}
	}
	switch {
	case !named:
		x.classify(link, Plain)
	case name.Flavour == sriovnet.PORT_FLAVOUR_PHYSICAL:
		x.classify(link, Physical)
	default:
		x.add(&Representor{
			Netdev: link.Name, AltNames: link.AltNames, Device: "switch/" + link.SwitchID, Side: sideOfName(name),
			Controller: name.Controller, PF: name.PF, VF: name.VF, SF: name.SF, Source: source,
		}, name.Flavour, link)
	}
}

func (x *Index) add(r *Representor, flavour sriovnet.PortFlavour, link Link) {
	switch flavour {
	case sriovnet.PORT_FLAVOUR_PCI_VF:
		r.key = functionKey{kindVF, r.PF, number(r.VF)}
	case sriovnet.PORT_FLAVOUR_PCI_SF:
		r.key = functionKey{kindSF, r.PF, number(r.SF)}
	default:
		r.key = functionKey{kindPF, r.PF, 0}
	}
	x.representors = append(x.representors, r)
	x.byFunction[r.key] = append(x.byFunction[r.key], r)
	if r.mac != nil {
		x.byMAC[string(r.mac)] = append(x.byMAC[string(r.mac)], r)
		if r.key.kind == kindPF {
			x.pfMACs[r.pf()] = r.mac
			x.hostPFs[string(r.mac)] = true
		}
	}
	for _, name := range link.names() {
		x.byNetdev[name] = r
	}
	class := HostFacing
	if r.Side != Host {
		class = LocalFunction
	}
	x.classify(link, class)
}

// pf is the PF that the representor's function belongs to.
func (r *Representor) pf() pfKey {
	return pfKey{r.Device, number(r.Controller), r.PF}
}

func (x *Index) classify(link Link, class Class) {
	for _, name := range link.names() {
		x.classes[name] = class
	}
}

// addMap adds the administrator's entries. What an entry names is a representor of the host, whatever else is
// known of it.
func (x *Index) addMap(m *Map) {
	if m == nil {
		return
	}
	for i := range m.entries {
		e := &m.entries[i]
		if e.mac != nil {
			x.mapByMAC[string(e.mac)] = append(x.mapByMAC[string(e.mac)], e)
		} else {
			key := e.Function.function.key
			x.mapByFunction[key] = append(x.mapByFunction[key], e)
		}
		if netdev, here := x.names[e.Representor]; here {
			x.classes[netdev], x.classes[e.Representor] = HostFacing, HostFacing
		}
	}
}

// sort makes everything that is shown independent of the order in which it was read.
func (x *Index) sort() {
	byName := func(a, b *Representor) int {
		return cmp.Or(cmp.Compare(a.Netdev, b.Netdev), cmp.Compare(a.Port, b.Port))
	}
	slices.SortFunc(x.representors, byName)
	for _, list := range x.byFunction {
		slices.SortFunc(list, byName)
	}
	for _, list := range x.byMAC {
		slices.SortFunc(list, byName)
	}
}

// Representors lists all representors, sorted by the names of their interfaces.
func (x *Index) Representors() []Representor {
	all := make([]Representor, len(x.representors))
	for i, r := range x.representors {
		all[i] = *r
	}
	return all
}
