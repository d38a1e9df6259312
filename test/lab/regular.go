// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"fmt"
	"net/netip"
)

// RegularSpec describes a node whose bridge carries the gateway's addresses on
// its internal interface. Empty fields get the value in their comment.
type RegularSpec struct {
	// Bridge is the OVS bridge and its internal interface: "ovsbr1".
	Bridge string
	// Uplink is the physical port of the bridge: "up0".
	Uplink string
	// MAC is the bridge's: "02:42:ac:1c:00:02".
	MAC string
	// Addresses are the internal interface's: 172.28.0.2/16.
	Addresses []netip.Prefix
	// Gateways are default routes: 172.28.0.1. The external network answers
	// at these addresses.
	Gateways []netip.Addr
	// External is what the uplink leads to: the lab's shared external
	// network.
	External *Node
}

// Regular is a node made by RegularNode.
type Regular struct {
	*Node
	Spec     RegularSpec // with the defaults filled in
	External *External
}

// RegularNode makes a node with Open vSwitch, a bridge with one physical port
// that leads to the external network, and addresses and default routes on
// the bridge's internal interface.
func (l *Lab) RegularNode(ctx context.Context, name string, spec RegularSpec) (*Regular, error) {
	spec.fill()
	ext, err := l.externalNetwork(ctx, spec.External)
	if err != nil {
		return nil, err
	}
	n, err := l.AddNode(ctx, name)
	if err != nil {
		return nil, err
	}
	if err := n.StartOVS(ctx); err != nil {
		return nil, err
	}
	if err := ext.connect(ctx, n, spec.Uplink, spec.Addresses, spec.Gateways); err != nil {
		return nil, err
	}
	_, err = n.OVS.Vsctl(ctx,
		"--", "add-br", spec.Bridge,
		"--", "set", "Bridge", spec.Bridge, "datapath_type="+l.datapath(), `other_config:hwaddr="`+spec.MAC+`"`,
		"--", "add-port", spec.Bridge, spec.Uplink)
	if err != nil {
		return nil, fmt.Errorf("make bridge %s on %s: %w", spec.Bridge, name, err)
	}
	r := &Regular{Node: n, Spec: spec, External: ext}
	return r, r.Configure(ctx)
}

// Configure sets the internal interface up and gives it its addresses and
// routes, as RegularNode did. It is needed again after ovs-vswitchd was
// restarted.
func (r *Regular) Configure(ctx context.Context) error {
	if err := r.configure(ctx, r.Spec.Bridge, r.Spec.Addresses, r.Spec.Gateways); err != nil {
		return fmt.Errorf("configure %s of %s: %w", r.Spec.Bridge, r.Name, err)
	}
	return nil
}

func (s *RegularSpec) fill() {
	orString(&s.Bridge, "ovsbr1")
	orString(&s.Uplink, "up0")
	orString(&s.MAC, "02:42:ac:1c:00:02")
	if s.Addresses == nil {
		s.Addresses = []netip.Prefix{netip.MustParsePrefix("172.28.0.2/16")}
	}
	if s.Gateways == nil {
		s.Gateways = []netip.Addr{netip.MustParseAddr("172.28.0.1")}
	}
}

func orString(s *string, fallback string) {
	if *s == "" {
		*s = fallback
	}
}
