// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

// firstPodAddress is the place of the first pod's address in its subnet.
const firstPodAddress = 5

// podInterface is the interface of a pod in its network.
const podInterface = "eth0"

// Pod is a pod of a network: a namespace with one interface, eth0, that is
// plugged into a node's integration bridge.
type Pod struct {
	*Node
	Network *Network
	Zone    *Zone
	// Addresses are the pod's, one of each family of the network.
	Addresses []netip.Addr
	// MAC is that of eth0.
	MAC string
	// Port is the name of the pod's row in Logical_Switch_Port, and its
	// iface-id.
	Port string
	// Plug is the interface on the node.
	Plug string

	tunnelKey int
}

// Pod makes a pod of the network on a node and returns once the node's flows
// know it. The namespace is called after the network and the pod, so that
// names may be the same in several networks. Addresses are handed out in the
// same order in each network.
func (n *Network) Pod(ctx context.Context, z *Zone, name string) (*Pod, error) {
	p, err := n.plan(z, name)
	if err == nil {
		err = p.make(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("make pod %s of network %s: %w", name, n.Spec.CUDN, err)
	}
	return p, nil
}

func (n *Network) plan(z *Zone, name string) (*Pod, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	counter := z // in Layer2 all nodes share the subnet
	if n.Spec.Topology == Layer2 {
		counter = nil
	}
	place := firstPodAddress + n.taken[counter]
	n.taken[counter]++
	p := &Pod{Network: n, Zone: z, Plug: n.lab.nextInterface(), tunnelKey: place}
	p.Addresses = addresses(offset(n.NodeSubnets(z), place))
	for i, a := range p.Addresses {
		if !n.NodeSubnets(z)[i].Contains(a) {
			return nil, fmt.Errorf("no address left in %s", n.NodeSubnets(z)[i])
		}
	}
	p.MAC = addressMAC(p.Addresses[0])
	p.Port = rowPrefix(n.nad()) + n.Spec.Namespace + "_" + name
	p.Node = &Node{Name: n.Spec.CUDN + "-" + name}
	return p, nil
}

// nad is the key of the network attachment definition in the pods' namespace.
func (n *Network) nad() string { return n.Spec.Namespace + "/" + n.Spec.CUDN }

func (p *Pod) make(ctx context.Context) error {
	n, z := p.Network, p.Zone
	var err error
	if p.Node, err = n.lab.addMachine(ctx, p.Name, "pod", netip.Addr{}); err != nil {
		return err
	}
	n.mu.Lock()
	n.pods = append(n.pods, p)
	n.mu.Unlock()
	err = n.each(func(on *Zone) error {
		if on != z && n.Spec.Topology == Layer3 {
			return nil
		}
		b := n.builder(on)
		b.pod(p)
		return b.write(ctx)
	})
	if err != nil {
		return err
	}
	if err := p.plug(ctx); err != nil {
		return err
	}
	return Eventually(ctx, 20*time.Second, func(ctx context.Context) error {
		// What OVN-Kubernetes waits for before a pod may start.
		if _, err := z.Node.OVS.Vsctl(ctx, "get", "Interface", p.Plug, "external_ids:ovn-installed"); err != nil {
			return fmt.Errorf("flows of port %s: %w", p.Port, err)
		}
		return nil
	})
}

// plug makes the pod's interface and joins it to the integration bridge.
func (p *Pod) plug(ctx context.Context) error {
	z := p.Zone
	// The MAC comes first: the link-local address is made from it when the
	// interface comes up, and OVN lets no other one pass.
	err := errors.Join(
		ipAll(ctx, p.NetNS, fmt.Sprintf("link add %s address %s type veth peer name %s netns %s", podInterface, p.MAC, p.Plug, z.Node.NetNS)),
		ipAll(ctx, z.Node.NetNS, fmt.Sprintf("link set %s up", p.Plug)),
		noOffload(ctx, p.NetNS, podInterface))
	if err != nil {
		return err
	}
	var networks []netip.Prefix
	for i, a := range p.Addresses {
		networks = append(networks, netip.PrefixFrom(a, p.Network.NodeSubnets(z)[i].Bits()))
	}
	if err := p.configure(ctx, podInterface, networks, p.Network.Gateways(z)); err != nil {
		return err
	}
	_, err = z.Node.OVS.Vsctl(ctx, "add-port", "br-int", p.Plug, "--", "set", "Interface", p.Plug,
		"external_ids:iface-id="+quote(p.Port),
		"external_ids:attached_mac="+quote(p.MAC),
		"external_ids:"+networkKey+"="+quote(p.Network.Name))
	return err
}

// pod adds the pod's port: on its own node a plain one, in other zones of a
// Layer2 network one of type remote.
func (b *builder) pod(p *Pod) {
	n, options := b.n, map[string]string{"requested-chassis": p.Zone.Chassis}
	if p.Zone != b.z && n.Spec.Topology == Layer3 {
		return
	}
	address := p.MAC + " " + strings.Join(texts(p.Addresses), " ")
	row := columns{
		"name": p.Port, "addresses": []string{address}, "options": options,
		"external_ids": map[string]string{
			"namespace": n.Spec.Namespace, "pod": "true",
			networkKey: n.Name, nadKey: n.nad(), topologyKey: strings.ToLower(n.Spec.Topology),
		},
	}
	if n.Spec.Topology == Layer2 {
		options["requested-tnl-key"] = strconv.Itoa(podPortKey + p.tunnelKey)
	}
	if p.Zone == b.z {
		row["port_security"] = []string{address}
	} else {
		row["type"] = "remote"
		row["external_ids"].(map[string]string)[nodeKey] = p.Zone.Name
	}
	b.attach("Logical_Switch", n.Switch(b.z), "ports", b.insert("Logical_Switch_Port", row))
}

// Delete removes the pod as the CNI does when it ends: its port from the
// integration bridge, its rows from all zones, and its namespace.
func (p *Pod) Delete(ctx context.Context) error {
	n := p.Network
	n.mu.Lock()
	n.pods = slices.DeleteFunc(n.pods, func(o *Pod) bool { return o == p })
	n.mu.Unlock()
	_, err := p.Zone.Node.OVS.Vsctl(ctx, "--if-exists", "del-port", "br-int", p.Plug)
	errs := []error{err, n.each(func(z *Zone) error {
		if z != p.Zone && n.Spec.Topology == Layer3 {
			return nil
		}
		_, err := z.Nbctl(ctx, "--if-exists", "lsp-del", p.Port)
		return err
	})}
	if err := errors.Join(append(errs, p.lab.removeMachine(ctx, p.Node))...); err != nil {
		return fmt.Errorf("delete pod %s: %w", p.Name, err)
	}
	return nil
}
