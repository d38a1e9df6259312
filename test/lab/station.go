// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"fmt"
	"net/netip"
	"os"
)

// StationInterface is the interface of the machines that External makes.
const StationInterface = "eth0"

// The ends of the link to a machine behind the gateway, on the gateway.
var (
	behindGateway4 = netip.MustParseAddr("169.254.1.1")
	behindGateway6 = netip.MustParseAddr("fe80::1")
)

// Station adds a machine to the external network itself: one wire with the
// nodes' uplinks and with the gateways. Its default routes are the gateways
// given, none if there are none.
func (e *External) Station(ctx context.Context, name string, addrs []netip.Prefix, gateways ...netip.Addr) (*Node, error) {
	n, port, err := e.attach(ctx, name)
	if err == nil {
		_, err = e.IP(ctx, "link", "set", port, "master", externalBridge)
	}
	if err == nil {
		err = n.configure(ctx, StationInterface, addrs, gateways)
	}
	if err != nil {
		return nil, fmt.Errorf("add station %s to %s: %w", name, e.Name, err)
	}
	return n, nil
}

// Behind adds a machine that the external network's gateways route to: with
// these addresses, on no subnet of the network. The way back is through the
// gateways as well.
func (e *External) Behind(ctx context.Context, name string, addrs ...netip.Addr) (*Node, error) {
	n, port, err := e.attach(ctx, name)
	if err == nil {
		err = e.forward(ctx, n, port, addrs)
	}
	if err != nil {
		return nil, fmt.Errorf("add %s behind %s: %w", name, e.Name, err)
	}
	return n, nil
}

// attach makes a machine with a wire to the external one.
func (e *External) attach(ctx context.Context, name string) (n *Node, port string, err error) {
	if n, err = e.lab.AddExternal(ctx, name); err != nil {
		return nil, "", err
	}
	port = e.lab.nextInterface()
	return n, port, e.lab.Wire(ctx, n, StationInterface, e.Node, port)
}

func (e *External) forward(ctx context.Context, n *Node, port string, addrs []netip.Addr) error {
	if err := e.forwardPackets(); err != nil {
		return err
	}
	here := []string{
		fmt.Sprintf("addr add %s dev %s", hostPrefix(behindGateway4), port),
		fmt.Sprintf("addr add %s/64 dev %s nodad", behindGateway6, port),
	}
	there := []string{
		fmt.Sprintf("route add default via %s dev %s onlink", behindGateway4, StationInterface),
		fmt.Sprintf("route add default via %s dev %s", behindGateway6, StationInterface),
	}
	for _, a := range addrs {
		here = append(here, fmt.Sprintf("route add %s dev %s", hostPrefix(a), port))
		line := fmt.Sprintf("addr add %s dev %s", hostPrefix(a), StationInterface)
		if a.Is6() {
			line += " nodad"
		}
		there = append([]string{line}, there...)
	}
	if err := ipAll(ctx, e.NetNS, here...); err != nil {
		return err
	}
	return ipAll(ctx, n.NetNS, there...)
}

// forwardPackets makes the external machine a router. What a thread sees below
// /proc/sys/net is that of its namespace.
func (e *External) forwardPackets() error {
	return e.Do(func() error {
		for _, path := range []string{"/proc/sys/net/ipv4/ip_forward", "/proc/sys/net/ipv6/conf/all/forwarding"} {
			if err := os.WriteFile(path, []byte("1"), 0o644); err != nil {
				return err
			}
		}
		return nil
	})
}
