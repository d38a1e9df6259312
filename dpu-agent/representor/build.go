// SPDX-License-Identifier: Apache-2.0

package representor

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/k8snetworkplumbingwg/sriovnet"
	"github.com/ovn-uplink/ovn-uplink/shared/kernel"
	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
)

// addPort adds a port that devlink has. Its link is empty if the port has none, or one that came just now.
func (x *Index) addPort(p Port, link Link) {
	device := p.Bus + "/" + p.Device
	switch p.Flavour {
	case sriovnet.PORT_FLAVOUR_PHYSICAL:
		x.classify(p.Netdev, Physical)
		if uplinkstate.UsableMAC(link.MAC) {
			x.portMACs[device] = append(x.portMACs[device], link.MAC)
			x.ownPFs[string(link.MAC)] = true
		}
		return
	case sriovnet.PORT_FLAVOUR_PCI_PF, sriovnet.PORT_FLAVOUR_PCI_VF, sriovnet.PORT_FLAVOUR_PCI_SF:
	default:
		x.classify(p.Netdev, Plain)
		return
	}
	r := &Representor{
		Netdev: p.Netdev, AltNames: link.AltNames, Port: p.Handle(), Device: device, Source: "devlink",
		Controller: p.Controller, PF: number(p.PF), VF: p.VF, SF: p.SF,
	}
	if uplinkstate.UsableMAC(p.HWAddr) {
		r.mac, r.PeerMAC = p.HWAddr, p.HWAddr.String()
	}
	name, named := kernel.ParsePortName(link.PortName)
	r.Side = sideOf(p, name, named)
	x.add(r, p.Flavour)
}

// addLink adds an interface that devlink does not have.
func (x *Index) addLink(link Link) {
	if link.Unreadable != nil {
		x.classify(link.Name, Unclassified)
		x.unreadable = fmt.Errorf("interface %s: %w", link.Name, link.Unreadable)
		x.warnings = append(x.warnings, x.unreadable.Error())
		return
	}
	source := "phys_port_name"
	name, named := kernel.ParsePortName(link.PortName)
	if !named {
		// The kernel's name did not fit, or was replaced: what else the interface is called may be that name.
		source = "alternative name"
		for _, text := range append(slices.Clone(link.AltNames), link.Alias) {
			if name, named = kernel.ParsePortName(text); named {
				break
			}
		}
	}
	switch {
	case !named:
		x.classify(link.Name, Plain)
	case name.Flavour == sriovnet.PORT_FLAVOUR_PHYSICAL:
		x.classify(link.Name, Physical)
	default:
		x.add(&Representor{
			Netdev: link.Name, AltNames: link.AltNames, Device: "switch/" + link.SwitchID, Side: sideOfName(name),
			Controller: name.Controller, PF: name.PF, VF: name.VF, SF: name.SF, Source: source,
		}, name.Flavour)
	}
}

func (x *Index) add(r *Representor, flavour sriovnet.PortFlavour) {
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
	class := HostFacing
	if r.Side != Host {
		class = LocalFunction
	}
	x.classify(r.Netdev, class)
	if r.Netdev != "" {
		x.byNetdev[r.Netdev] = r
	}
}

func (x *Index) classify(netdev string, class Class) {
	if netdev != "" {
		x.classes[netdev] = class
	}
}

// addMap adds the administrator's entries. What an entry names is a representor of the host, unless the card says
// that it is a port of its own.
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
		netdev, here := x.names[e.Representor]
		if !here {
			x.warnings = append(x.warnings, "representor map: "+e.where+": there is no such network interface")
			continue
		}
		if x.classes[netdev] == Physical {
			x.warnings = append(x.warnings, "representor map: "+e.where+": "+netdev+" is a network port of the card, not a representor")
			continue
		}
		x.classify(netdev, HostFacing)
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
	slices.Sort(x.warnings)
}
