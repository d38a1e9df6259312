// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// tunnelNet carries the tunnels between zones, on the same wire as the
// management network.
var tunnelNet = netip.MustParsePrefix("198.18.1.0/24")

const (
	// TunnelBridge is the bridge that a zone's tunnels leave by. The
	// userspace datapath sends them only by an interface that is a
	// bridge's own, so the management interface does not do.
	TunnelBridge = "br-tun"
	// tunnelUplink is the bridge's port.
	tunnelUplink = "tun0"
	// tunnelMTU has room for the pods' packets and what tunnels add.
	tunnelMTU = 1600
)

// Interconnect joins zones by tunnels and makes each known to the others as
// a remote chassis, as OVN-Kubernetes does. Zones that are joined already may
// be among them.
func (l *Lab) Interconnect(ctx context.Context, zones ...*Zone) error {
	for _, z := range zones {
		if err := z.addTunnels(ctx); err != nil {
			return fmt.Errorf("interconnect %s: %w", z.Node.Name, err)
		}
	}
	for _, z := range zones {
		for _, other := range zones {
			if z == other || z.remotes[other] {
				continue
			}
			err := errors.Join(z.addRemote(ctx, other), z.meet(ctx, other))
			if err != nil {
				return fmt.Errorf("interconnect %s with %s: %w", z.Node.Name, other.Node.Name, err)
			}
		}
	}
	return nil
}

// addTunnels gives the zone its bridge for tunnels and makes the bridge's
// address that of the tunnels' ends.
func (z *Zone) addTunnels(ctx context.Context) error {
	if z.Encap != z.Node.Address {
		return nil
	}
	n := z.Node
	raw := tunnelNet.Addr().As4()
	raw[3] = n.Address.As4()[3]
	encap := netip.AddrFrom4(raw)
	port := fmt.Sprintf("t%d", raw[3])
	err := ipAll(ctx, n.lab.api.NetNS,
		fmt.Sprintf("link add %s mtu %d type veth peer name %s mtu %[2]d netns %[4]s", port, tunnelMTU, tunnelUplink, n.NetNS),
		fmt.Sprintf("link set %s master %s up", port, managementBridge))
	if err == nil {
		_, err = n.IP(ctx, "link", "set", tunnelUplink, "up")
	}
	if err != nil {
		return err
	}
	if err := noOffload(ctx, n.NetNS, tunnelUplink); err != nil {
		return err
	}
	_, err = n.OVS.Vsctl(ctx,
		"--", "add-br", TunnelBridge, "--", "set", "Bridge", TunnelBridge, "datapath_type="+n.lab.datapath(),
		"--", "add-port", TunnelBridge, tunnelUplink,
		"--", "set", "Open_vSwitch", ".", "external_ids:ovn-encap-ip="+encap.String(), "external_ids:ovn-is-interconn=true")
	if err != nil {
		return err
	}
	z.Encap = encap
	if err := z.ConfigureTunnels(ctx); err != nil {
		return err
	}
	return Eventually(ctx, 10*time.Second, func(ctx context.Context) error {
		got, err := z.Sbctl(ctx, "--bare", "--columns=ip", "find", "Encap", "chassis_name="+quote(z.Chassis))
		if err == nil && strings.TrimSpace(got) != encap.String() {
			err = fmt.Errorf("the chassis' tunnels end at %q, not yet at %s", strings.TrimSpace(got), encap)
		}
		return err
	})
}

// ConfigureTunnels gives the bridge for tunnels its address. It is needed
// again after ovs-vswitchd was restarted.
func (z *Zone) ConfigureTunnels(ctx context.Context) error {
	return z.Node.configure(ctx, TunnelBridge, []netip.Prefix{netip.PrefixFrom(z.Encap, tunnelNet.Bits())}, nil)
}

// addRemote writes the other zone's chassis into this one's southbound
// database.
func (z *Zone) addRemote(ctx context.Context, other *Zone) error {
	tx := &transaction{database: "OVN_Southbound"}
	encap := tx.insert("Encap", columns{
		"type": "geneve", "ip": other.Encap.String(), "chassis_name": other.Chassis,
		"options": map[string]string{"csum": "true"},
	})
	tx.insert("Chassis", columns{
		"name": other.Chassis, "hostname": other.Node.Name, "encaps": []uuidRef{encap},
		"other_config": map[string]string{"is-remote": "true"},
	})
	if err := tx.commit(ctx, z.Node.OVS, z.SB()); err != nil {
		return err
	}
	z.remotes[other] = true
	return nil
}

// meet has the zone's switch learn where the other end of the tunnel is. A
// kernel keeps a packet while it asks for a neighbour, the userspace datapath
// drops it: without this the first packet of every tunnel would be lost.
func (z *Zone) meet(ctx context.Context, other *Zone) error {
	return Eventually(ctx, 10*time.Second, func(ctx context.Context) error {
		_, err := z.Node.Exec(ctx, "ping", "-c1", "-W1", other.Encap.String())
		return err
	})
}

// bindRemote binds the network's ports of type remote to their chassis, which
// ovn-northd does by itself only in later versions.
func (z *Zone) bindRemote(ctx context.Context, ports map[string]*Zone) error {
	if len(ports) == 0 || z.transitRouters() {
		return nil
	}
	return Eventually(ctx, 20*time.Second, func(ctx context.Context) error {
		args := []string{}
		for _, port := range slices.Sorted(maps.Keys(ports)) {
			chassis, err := z.Sbctl(ctx, "--bare", "--columns=_uuid", "find", "Chassis", "name="+quote(ports[port].Chassis))
			if err != nil {
				return err
			}
			args = append(args, "--", "set", "Port_Binding", port, "chassis="+strings.TrimSpace(chassis))
		}
		_, err := z.Sbctl(ctx, args...)
		return err
	})
}
