// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
)

// nextInterface returns an interface name that is unused in every namespace
// of the lab.
func (l *Lab) nextInterface() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wires++
	return fmt.Sprintf("x%d", l.wires)
}

// Wire joins two nodes by a veth pair, both ends up, and makes both ends
// compute their checksums; see noOffload.
func (l *Lab) Wire(ctx context.Context, a *Node, ifA string, b *Node, ifB string) error {
	err := ipAll(ctx, a.NetNS,
		fmt.Sprintf("link add %s type veth peer name %s netns %s", ifA, ifB, b.NetNS),
		fmt.Sprintf("link set %s up", ifA))
	if err == nil {
		err = ipAll(ctx, b.NetNS, fmt.Sprintf("link set %s up", ifB))
	}
	if err != nil {
		return fmt.Errorf("wire %s/%s to %s/%s: %w", a.Name, ifA, b.Name, ifB, err)
	}
	return errors.Join(noOffload(ctx, a.NetNS, ifA), noOffload(ctx, b.NetNS, ifB))
}

// configure gives an interface its addresses and a default route through each
// gateway, replacing those that are there.
func (n *Node) configure(ctx context.Context, dev string, addrs []netip.Prefix, gateways []netip.Addr) error {
	lines := []string{fmt.Sprintf("link set %s up", dev)}
	for _, a := range addrs {
		line := fmt.Sprintf("addr replace %s dev %s", a, dev)
		if a.Addr().Is6() {
			line += " nodad" // duplicate detection takes a second or two
		}
		lines = append(lines, line)
	}
	for i, gw := range gateways {
		// Two gateways of a family are two routes: the metric differs.
		before := func(o netip.Addr) bool { return o.Is4() == gw.Is4() }
		metric := 0
		if slices.ContainsFunc(gateways[:i], before) {
			metric = 100 + i
		}
		lines = append(lines, fmt.Sprintf("route replace default via %s dev %s metric %d", gw, dev, metric))
	}
	return ipAll(ctx, n.NetNS, lines...)
}
