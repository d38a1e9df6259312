// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"fmt"
	"net/netip"
	"os"
)

const (
	// sharedExternal is the machine that plays the external network for
	// nodes whose spec names none.
	sharedExternal = "external"
	// externalBridge joins all uplinks of an external machine.
	externalBridge = "ext0"
)

// InternetAddress answers on every external network made by the lab and is on
// no node's subnet: what reaches it went through a gateway. It is from the
// range for documentation, RFC 5737.
var InternetAddress = netip.MustParseAddr("203.0.113.9")

// External is a machine that plays an external network: the gateway of all
// nodes connected to it, and one address behind the gateway.
type External struct {
	*Node
}

// externalNetwork turns a machine into an external network, or, given nil,
// returns the shared one.
func (l *Lab) externalNetwork(ctx context.Context, n *Node) (*External, error) {
	l.externalMu.Lock()
	defer l.externalMu.Unlock()
	if n == nil {
		n = l.Node(sharedExternal)
	}
	if n == nil {
		var err error
		if n, err = l.AddExternal(ctx, sharedExternal); err != nil {
			return nil, err
		}
	}
	if _, err := n.IP(ctx, "link", "show", externalBridge); err == nil {
		return &External{n}, nil
	}
	err := ipAll(ctx, n.NetNS,
		"link add "+externalBridge+" address "+bridgeMAC+" type bridge",
		"link set "+externalBridge+" up",
		fmt.Sprintf("addr add %s/32 dev lo", InternetAddress))
	if err != nil {
		return nil, fmt.Errorf("make external network %s: %w", n.Name, err)
	}
	return &External{n}, noOffload(ctx, n.NetNS, externalBridge)
}

// connect wires a node's uplink port to the external network and makes the
// network answer at the gateways' addresses, with the prefix length of the
// node's address that covers each.
func (e *External) connect(ctx context.Context, n *Node, uplink string, addrs []netip.Prefix, gateways []netip.Addr) error {
	port := e.lab.nextInterface()
	if err := e.lab.Wire(ctx, n, uplink, e.Node, port); err != nil {
		return err
	}
	if err := n.mute(uplink); err != nil {
		return err
	}
	lines := []string{fmt.Sprintf("link set %s master %s", port, externalBridge)}
	for _, gw := range gateways {
		line := fmt.Sprintf("addr replace %s dev %s", netip.PrefixFrom(gw, prefixLength(gw, addrs)), externalBridge)
		if gw.Is6() {
			line += " nodad"
		}
		lines = append(lines, line)
	}
	if err := ipAll(ctx, e.NetNS, lines...); err != nil {
		return fmt.Errorf("connect %s of %s to %s: %w", uplink, n.Name, e.Name, err)
	}
	return nil
}

// mute keeps the kernel from answering ARP on a port of a bridge for addresses that it has elsewhere: beside the
// userspace datapath it sees what comes in there too.
func (n *Node) mute(port string) error {
	return n.Do(func() error {
		return os.WriteFile("/proc/sys/net/ipv4/conf/"+port+"/arp_ignore", []byte("1"), 0o644)
	})
}

// prefixLength is the one of the address whose subnet holds gw, or 64 for a
// link-local gateway, or that of a host.
func prefixLength(gw netip.Addr, addrs []netip.Prefix) int {
	for _, a := range addrs {
		if a.Contains(gw) {
			return a.Bits()
		}
	}
	if gw.IsLinkLocalUnicast() && gw.Is6() {
		return 64
	}
	return gw.BitLen()
}
