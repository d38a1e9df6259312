// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/ovn-uplink/ovn-uplink/test/lab"
	"github.com/ovn-uplink/ovn-uplink/test/lab/frrtest"
)

// patience is how long a change of domain may take: BGP has to come up again.
var patience = paced(36 * time.Second)

// lite is a field on a kernel with VRFs: a regular node and a host with its card, where the network outside speaks BGP
// with the node and with the card, in whichever VRF their interfaces are.
type lite struct {
	*field
	node, card *post
	// peers are the addresses that BGP is spoken from, those of the card's bridge for the card.
	peers   map[*post][]netip.Addr
	outside *frrtest.Router
	// beyond is the machine with the dark addresses.
	beyond  *lab.Node
	routers map[*post]*frrtest.Router
	// before is what administrators have, by node.
	before map[*post]string
}

// dark is where a route of BGP leads to and no default route does.
var dark = addrs("192.0.2.9", "2001:db8:113::9")

func newLite(t *testing.T, version lab.Version) *lite {
	f := emptyField(t, version)
	a := f.regularSite("worker-a", lab.RegularSpec{Addresses: prefixes("172.28.0.2/16", "fd00:28::2/64"), Gateways: wireGateways})
	f.add(a, "up0", addrs("172.28.0.2", "fd00:28::2"))
	b := f.pairSiteOf("worker-b", lab.PairSpec{Addresses: prefixes("172.28.0.3/16", "fd00:28::3/64"), Gateways: wireGateways})
	f.add(b, "p0", addrs("172.28.0.3", "fd00:28::3"))
	for _, s := range []*site{a, b} {
		s.args = append(s.args, "--dynamic-udn", "--inactive-grace", "1s", "--import-grace", "60s")
	}
	l := &lite{field: f, node: f.posts[0], card: f.posts[1], routers: map[*post]*frrtest.Router{}, before: map[*post]string{}}
	l.peers = map[*post][]netip.Addr{l.node: l.node.addresses, l.card: addrs("172.28.0.33", "fd00:28::33")}
	for i, prefix := range prefixes("172.28.0.33/16", "fd00:28::33/64") {
		_, err := b.ovs.IP(t.Context(), "address", "add", prefix.String(), "dev", b.bridge)
		f.must(err)
		_, err = b.ovs.IP(t.Context(), "route", "add", "default", "via", wireGateways[i].String(), "dev", b.bridge)
		f.must(err)
	}
	l.furnish()
	f.must(f.Interconnect(t.Context(), a.zone, b.zone))
	f.outside(a.external)
	f.serve(f.client, clientAddresses)
	var err error
	l.beyond, err = a.external.Behind(t.Context(), "beyond", dark...)
	f.must(err)
	f.serve(l.beyond, dark)
	f.start()
	for _, p := range f.posts {
		l.before[p] = l.administrators(p)
	}
	return l
}

// furnish gives the interfaces what administrators may have on them, of every kind.
func (l *lite) furnish() {
	for i, p := range l.posts {
		commands := []string{
			"address add 172.29.0.N/24 dev IF noprefixroute",
			"address add 172.30.0.N/24 dev IF valid_lft 36000 preferred_lft 18000",
			"address add fd00:29::N/64 dev IF noprefixroute",
			"address add fd00:30::N/64 dev IF valid_lft 36000 preferred_lft 18000",
			"route add 172.29.0.0/24 dev IF src 172.29.0.N proto kernel scope link metric 100",
			"route add 10.9.0.0/24 via 172.28.0.1 dev IF proto static",
			"route add 10.9.1.0/24 proto static nexthop via 172.28.0.1 dev IF weight 2 nexthop via 172.28.0.200 dev IF weight 1",
			"route add 10.9.2.7/32 dev IF scope link",
			"route add 10.9.3.0/24 via 172.28.0.1 dev IF metric 77 mtu 1400 table 77",
			"-6 route add fd09::/64 via fd00:28::1 dev IF proto static metric 99",
			"-6 route add fd09:1::/64 nexthop via fd00:28::1 dev IF weight 1 nexthop via fd00:28::200 dev IF weight 1",
			"rule add from 172.29.0.0/24 table 77 priority 7700",
		}
		for _, command := range commands {
			_, err := p.ovs.IP(l.t.Context(), strings.Fields(strings.NewReplacer("IF", p.bridge, "N/", fmt.Sprintf("%d/", i+2), ".N ", fmt.Sprintf(".%d ", i+2)).Replace(command))...)
			l.must(err)
		}
	}
}

var (
	lifetimes = regexp.MustCompile(`(valid_lft|preferred_lft|expires) \d+sec`)
	// volatile are lines that are the kernel's or the routing daemon's own: VRFs' rule, which stays once there was a VRF
	// (net/core/fib_rules.c), local and multicast routes, whose order is that of their addresses, and routes of BGP
	// with their next hops.
	volatile = regexp.MustCompile(`l3mdev|table local|ff00::/8|proto bgp|proto zebra`)
)

// administrators is all that is configured of a node's interface, and the rules.
func (l *lite) administrators(p *post) string {
	var lines []string
	for _, command := range []string{
		"-d address show dev " + p.bridge, "-4 -d route show table all", "-6 -d route show table all", "-4 rule show", "-6 rule show",
	} {
		out, err := p.ovs.IP(l.t.Context(), strings.Fields("-o "+command)...)
		l.must(err)
		isRoute := strings.Contains(command, "route")
		for line := range strings.Lines(out) {
			line = strings.TrimSpace(lifetimes.ReplaceAllString(line, "$1 some"))
			if line != "" && !volatile.MatchString(line) && (!isRoute || strings.Contains(line, " dev "+p.bridge+" ")) {
				lines = append(lines, line)
			}
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// unharmed waits until all that is configured is as it was.
func (l *lite) unharmed(when string) {
	l.t.Helper()
	for _, p := range l.posts {
		var diff string
		if err := lab.Eventually(l.t.Context(), patience, func(context.Context) error {
			if diff = cmp.Diff(l.before[p], l.administrators(p)); diff != "" {
				return errors.New("it is not as it was")
			}
			return nil
		}); err != nil {
			l.t.Errorf("%s, what administrators have on %s: %v (-before +now)\n%s", when, p.node, err, diff)
		}
	}
}

// speak starts BGP everywhere.
func (l *lite) speak(network *lab.Network, vrf string) {
	l.t.Helper()
	var all []netip.Addr
	for _, p := range l.posts {
		all = append(all, l.peers[p]...)
	}
	l.outside = l.frr(l.external.Node, speaker{number: 65002, peerNumber: 65001, peers: all, global: true, networks: prefixes("192.0.2.0/24", "2001:db8:113::/64")})
	for _, p := range l.posts {
		s := speaker{number: 65001, peerNumber: 65002, peers: wireGateways, nextHops: p.addresses}
		s.networks = network.NodeSubnets(p.zone)
		inVRF := s
		inVRF.vrf = vrf
		l.routers[p] = l.frr(p.ovs, s, inVRF)
	}
}

// in tells in which VRF the interface of a post is.
func (l *lite) in(p *post) string {
	out, err := p.ovs.IP(l.t.Context(), "-o", "link", "show", "dev", p.bridge)
	l.must(err)
	_, after, found := strings.Cut(out, " master ")
	if !found {
		return ""
	}
	return strings.Fields(after)[0]
}

func (l *lite) isIn(p *post, vrf string) {
	l.t.Helper()
	l.must(lab.Eventually(l.t.Context(), patience, func(context.Context) error {
		if got := l.in(p); got != vrf {
			return fmt.Errorf("%s on %s is in VRF %q, want %q", p.bridge, p.node, got, vrf)
		}
		return nil
	}))
}

// eventually waits for a check of a path, with the patience of the virtual machine.
func (l *lite) eventually(what string, check func(context.Context) error) {
	l.t.Helper()
	if err := lab.Eventually(l.t.Context(), patience, check); err != nil {
		l.t.Errorf("%s: %v", what, err)
		l.explain()
	}
}

// explain logs what there is to be seen of routes.
func (l *lite) explain() {
	say := func(what, out string, err error) { l.t.Logf("%s: %v\n%s", what, err, out) }
	see := func(n *lab.Node, command string) {
		out, err := n.IP(l.t.Context(), strings.Fields(command)...)
		say(n.Name+": ip "+command, out, err)
	}
	see(l.external.Node, "route show")
	see(l.external.Node, "-6 route show")
	see(l.external.Node, "-6 neigh show")
	for _, p := range l.posts {
		see(p.ovs, "route show table all proto bgp")
		see(p.ovs, "-6 route show table all proto bgp")
		see(p.ovs, "-6 neigh show")
		out, err := p.zone.Nbctl(l.t.Context(), "--bare", "--columns=ip_prefix,nexthop,output_port,route_table", "list", "Logical_Router_Static_Route")
		say(p.node+": routes of OVN", out, err)
		out, err = p.zone.Sbctl(l.t.Context(), "--bare", "--columns=logical_port,ip,mac", "list", "MAC_Binding")
		say(p.node+": MAC bindings of OVN", out, err)
	}
}

// paths checks that a pod is known outside by its own address and reaches what BGP taught; and what only a default route
// leads to if, and only if, there is one.
func (l *lite) paths(pod *lab.Pod, defaults bool) {
	l.t.Helper()
	for i, to := range dark {
		at := netip.AddrPortFrom(to, podHTTP)
		l.eventually(fmt.Sprintf("%s to %s", pod.Name, to), func(ctx context.Context) error {
			answer, err := pod.HTTPGet(ctx, at)
			if err == nil && answer.Client.Addr() != pod.Addresses[i] {
				err = fmt.Errorf("it is seen as %s", answer.Client)
			}
			return err
		})
	}
	for i, to := range pod.Addresses {
		l.eventually(fmt.Sprintf("outside to %s", to), func(ctx context.Context) error {
			answer, err := l.beyond.HTTPGet(ctx, netip.AddrPortFrom(to, podHTTP))
			if err == nil && answer.Client.Addr() != dark[i] {
				err = fmt.Errorf("it sees %s", answer.Client)
			}
			return err
		})
	}
	for _, to := range clientAddresses {
		l.eventually(fmt.Sprintf("%s to %s, by default %v", pod.Name, to, defaults), func(ctx context.Context) error {
			_, err := pod.Exec(ctx, "ping", "-c1", "-W1", to.String())
			if (err == nil) != defaults {
				return fmt.Errorf("reached: %v", err == nil)
			}
			return nil
		})
	}
}
