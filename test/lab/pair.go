// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"fmt"
	"net/netip"
)

// PairSpec describes a host and the DPU in it. Empty fields get the value in
// their comment.
type PairSpec struct {
	// Card is the DPU's node name: the host's with "-dpu".
	Card string
	// Interface is the host's, the physical function of the DPU: "ens1f0".
	Interface string
	// MAC is the host interface's: "02:42:ac:1c:00:03".
	MAC string
	// Addresses are the host interface's: 172.28.0.3/16.
	Addresses []netip.Prefix
	// Gateways are the host's default routes: 172.28.0.1. The external
	// network answers at these addresses.
	Gateways []netip.Addr
	// Representor is the card's end of the host interface: "pf0hpf".
	Representor string
	// Bridge is the card's: "br-ext".
	Bridge string
	// Uplink is the card's physical port: "p0".
	Uplink string
	// External is what the uplink leads to: the lab's shared external
	// network.
	External *Node
}

// PairAddress is the PCI address of the function in both views of a pair: the
// host's physical function and the card's eswitch.
const PairAddress = "0000:03:00.0"

// pairSwitchID is the phys_switch_id of the card's eswitch.
const pairSwitchID = "00c2a10000039a04"

// uplinkMAC is the card's own MAC on its physical port.
const uplinkMAC = "02:42:ac:1c:ff:03"

// Pair is a host and its DPU. The host sees one interface, the card the
// interface's representor, and no packet of the host leaves but through the
// card's bridge.
type Pair struct {
	Host *Node
	// Card runs Open vSwitch. Its devlink and sysfs answers are injected,
	// see Node.SetDevlink and Node.SetSysfs.
	Card     *Node
	Spec     PairSpec // with the defaults filled in
	External *External
}

// Pair makes a host with one interface and, behind it, the card: Open vSwitch
// with a bridge that has the interface's representor and the physical port as
// ports.
func (l *Lab) Pair(ctx context.Context, host string, spec PairSpec) (*Pair, error) {
	spec.fill(host)
	ext, err := l.externalNetwork(ctx, spec.External)
	if err != nil {
		return nil, err
	}
	p := &Pair{Spec: spec, External: ext}
	if p.Host, err = l.AddNode(ctx, host); err != nil {
		return nil, err
	}
	if p.Card, err = l.AddNode(ctx, spec.Card); err != nil {
		return nil, err
	}
	if err := p.Card.StartOVS(ctx); err != nil {
		return nil, err
	}
	if err := p.wire(ctx); err != nil {
		return nil, fmt.Errorf("make pair %s and %s: %w", host, spec.Card, err)
	}
	if err := p.inject(); err != nil {
		return nil, fmt.Errorf("make pair %s and %s: %w", host, spec.Card, err)
	}
	return p, nil
}

func (p *Pair) wire(ctx context.Context) error {
	s := p.Spec
	if err := p.External.connect(ctx, p.Card, s.Uplink, s.Addresses, s.Gateways); err != nil {
		return err
	}
	if _, err := p.Card.IP(ctx, "link", "set", s.Uplink, "address", uplinkMAC); err != nil {
		return err
	}
	if err := p.External.lab.Wire(ctx, p.Host, s.Interface, p.Card, s.Representor); err != nil {
		return err
	}
	if _, err := p.Host.IP(ctx, "link", "set", s.Interface, "address", s.MAC); err != nil {
		return err
	}
	_, err := p.Card.OVS.Vsctl(ctx,
		"--", "set", "Open_vSwitch", ".", "external_ids:host-k8s-nodename="+p.Host.Name,
		"--", "add-br", s.Bridge,
		"--", "set", "Bridge", s.Bridge, "datapath_type="+p.Card.lab.datapath(),
		"--", "add-port", s.Bridge, s.Uplink,
		"--", "add-port", s.Bridge, s.Representor)
	if err != nil {
		return fmt.Errorf("make bridge %s: %w", s.Bridge, err)
	}
	if _, err := p.Card.IP(ctx, "link", "set", s.Bridge, "up"); err != nil {
		return err
	}
	return p.Host.configure(ctx, s.Interface, s.Addresses, s.Gateways)
}

// inject writes what devlink and sysfs of a real pair say.
func (p *Pair) inject() error {
	err := p.Card.SetDevlink(map[string]DevlinkPort{
		"pci/" + PairAddress + "/65535":  PhysicalPort(p.Spec.Uplink, 0),
		"pci/" + PairAddress + "/196608": HostPFPort(p.Spec.Representor, 0, p.Spec.MAC),
	})
	if err != nil {
		return err
	}
	err = p.Card.SetSysfs(
		[]SysfsNetdev{
			{Name: p.Spec.Uplink, Device: PairAddress, PhysPortName: "p0", PhysSwitchID: pairSwitchID, Address: uplinkMAC},
			{Name: p.Spec.Representor, Device: PairAddress, PhysPortName: "c1pf0", PhysSwitchID: pairSwitchID},
		},
		[]SysfsPCI{{Address: PairAddress}})
	if err != nil {
		return err
	}
	return p.Host.SetSysfs(
		[]SysfsNetdev{{Name: p.Spec.Interface, Device: PairAddress, Address: p.Spec.MAC}},
		[]SysfsPCI{{Address: PairAddress, TotalVFs: 16}})
}

func (s *PairSpec) fill(host string) {
	orString(&s.Card, host+"-dpu")
	orString(&s.Interface, "ens1f0")
	orString(&s.MAC, "02:42:ac:1c:00:03")
	orString(&s.Representor, "pf0hpf")
	orString(&s.Bridge, "br-ext")
	orString(&s.Uplink, "p0")
	if s.Addresses == nil {
		s.Addresses = []netip.Prefix{netip.MustParsePrefix("172.28.0.3/16")}
	}
	if s.Gateways == nil {
		s.Gateways = []netip.Addr{netip.MustParseAddr("172.28.0.1")}
	}
}
