// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
)

// The topologies of a primary network.
const (
	Layer3 = "Layer3"
	Layer2 = "Layer2"
)

// NetworkSpec describes a ClusterUserDefinedNetwork as OVN-Kubernetes puts it
// into the northbound databases. Empty fields get the value in their comment.
type NetworkSpec struct {
	// CUDN is the object's name.
	CUDN string
	// Namespace is where the network's pods are: as the CUDN.
	Namespace string
	// Topology is Layer3 or Layer2: Layer3.
	Topology string
	// Subnets are at most one of each family: 10.200.0.0/16. In Layer3 the
	// nodes' are /24 and /64 parts of them.
	Subnets []netip.Prefix
	// JoinSubnets are 100.65.0.0/16 and fd99::/64.
	JoinSubnets []netip.Prefix
	// ID is the network id, which tunnel keys and masquerade addresses
	// come from, 1 to 4000: the lowest that the lab has not given yet.
	ID int
}

// Network is a network that has its rows in one or several zones. Its methods
// are for one goroutine at a time; several networks may be used at once.
type Network struct {
	Spec NetworkSpec // with the defaults filled in
	// Name is the network's name in external_ids, such as
	// "cluster_udn_blue-1".
	Name string
	// Prefix is what the names of the network's rows have in them, such as
	// "cluster_udn_blue.1_".
	Prefix string

	lab   *Lab
	zones []*Zone
	mu    sync.Mutex
	pods  []*Pod
	taken map[*Zone]int // pod addresses handed out, per zone or under nil
}

// ErrNoTransitRouter is returned for a Layer2 network of several zones on a
// version of OVN whose distributed routers cannot be peered with those of a
// chassis.
var ErrNoTransitRouter = errors.New("this OVN has no transit routers")

// Network writes the rows of a network into the zones, one transaction each.
// More than one zone needs Interconnect first. It does not wait for flows;
// Network.Pod and Zone.Sync do.
func (l *Lab) Network(ctx context.Context, spec NetworkSpec, zones ...*Zone) (*Network, error) {
	if err := l.fillNetwork(&spec); err != nil {
		return nil, fmt.Errorf("make network %s: %w", spec.CUDN, err)
	}
	name := "cluster_udn_" + spec.CUDN
	n := &Network{Spec: spec, Name: name, Prefix: rowPrefix(name), lab: l, zones: slices.Clone(zones), taken: map[*Zone]int{}}
	if err := n.check(); err != nil {
		return nil, err
	}
	return n, n.write(ctx)
}

// check says whether the versions of the zones can do what is asked for.
func (n *Network) check() error {
	old := func(z *Zone) bool { return !z.transitRouters() }
	if n.Spec.Topology == Layer2 && len(n.zones) > 1 && slices.ContainsFunc(n.zones, old) {
		return fmt.Errorf("make network %s: %w", n.Spec.CUDN, ErrNoTransitRouter)
	}
	return nil
}

// rowPrefix is the form that a network's name has in those of its rows.
func rowPrefix(name string) string {
	return strings.NewReplacer("-", ".", "/", ".").Replace(name) + "_"
}

func (l *Lab) fillNetwork(s *NetworkSpec) error {
	if !nodeName.MatchString(s.CUDN) {
		return fmt.Errorf("name %q is not a DNS label of at most 40 bytes", s.CUDN)
	}
	s.fill()
	if s.Topology != Layer3 && s.Topology != Layer2 {
		return fmt.Errorf("topology %q is neither %s nor %s", s.Topology, Layer3, Layer2)
	}
	if s.JoinSubnets == nil {
		s.JoinSubnets = []netip.Prefix{netip.MustParsePrefix("100.65.0.0/16"), netip.MustParsePrefix("fd99::/64")}
	}
	if s.ID == 0 {
		l.mu.Lock()
		l.networks++
		s.ID = l.networks
		l.mu.Unlock()
	}
	if s.ID < 0 || s.ID > 4000 {
		return fmt.Errorf("network id %d is not from 1 to 4000", s.ID)
	}
	return nil
}

// fill gives empty fields that also a CUDN's object has their values.
func (s *NetworkSpec) fill() {
	orString(&s.Namespace, s.CUDN)
	orString(&s.Topology, Layer3)
	if s.Subnets == nil {
		s.Subnets = []netip.Prefix{netip.MustParsePrefix("10.200.0.0/16")}
	}
}

// write makes the network's rows in all its zones, with those of its pods.
func (n *Network) write(ctx context.Context) error {
	return n.each(func(z *Zone) error { return n.writeZone(ctx, z) })
}

func (n *Network) writeZone(ctx context.Context, z *Zone) error {
	b := n.builder(z)
	switch {
	case n.Spec.Topology == Layer3:
		b.layer3()
	case z.transitRouters():
		b.layer2()
	default:
		b.layer2Old()
	}
	b.finish()
	for _, p := range n.pods {
		b.pod(p)
	}
	return b.write(ctx)
}

// each calls f for all zones at once.
func (n *Network) each(f func(*Zone) error) error {
	errs := make([]error, len(n.zones))
	var all sync.WaitGroup
	for i, z := range n.zones {
		all.Go(func() {
			if err := f(z); err != nil {
				errs[i] = fmt.Errorf("network %s on %s: %w", n.Spec.CUDN, z.Node.Name, err)
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// Delete removes the network's routers and switches, and all that hangs on
// them, as OVN-Kubernetes does when the CUDN is deleted. The pods'
// namespaces stay, without a network.
func (n *Network) Delete(ctx context.Context) error {
	return n.each(func(z *Zone) error { return n.deleteIn(ctx, z) })
}

func (n *Network) deleteIn(ctx context.Context, z *Zone) error {
	tx := &transaction{database: northbound}
	tx.remove("Logical_Router", networkKey, n.Name)
	tx.remove("Logical_Switch", networkKey, n.Name)
	return tx.commit(ctx, z.Node.OVS, z.NB())
}

// Recreate writes all rows of a deleted network again, those of its pods
// included: the same names, other UUIDs.
func (n *Network) Recreate(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.write(ctx)
}

// Zones are the zones that the network is in.
func (n *Network) Zones() []*Zone { return slices.Clone(n.zones) }

// Sync is Zone.Sync for all zones of the network.
func (n *Network) Sync(ctx context.Context) error {
	return n.each(func(z *Zone) error { return z.Sync(ctx) })
}

// Router is the name of the router that the network's pods of the zone send
// through first.
func (n *Network) Router(z *Zone) string {
	switch {
	case n.Spec.Topology == Layer3:
		return n.Prefix + "ovn_cluster_router"
	case z.transitRouters():
		return n.Prefix + "transit_router"
	default:
		return "GR_" + n.Prefix + z.Name
	}
}

// Switch is the name of the switch of the network's pods in the zone.
func (n *Network) Switch(z *Zone) string {
	if n.Spec.Topology == Layer3 {
		return n.Prefix + z.Name
	}
	return n.Prefix + "ovn_layer2_switch"
}

// transitRouters says whether the version knows a distributed router peered
// with a chassis' own. The column came to the schema at about the same time.
func (z *Zone) transitRouters() bool { return z.schema.has("NAT", "match") }
