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
	"github.com/ovn-uplink/ovn-uplink/shared/kernel/kerneltest"
	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
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

// On a kernel with VRFs: a network that is advertised in its own VRF, and that changes its mind.
func TestKernelRouting(t *testing.T) {
	kerneltest.NeedGuest(t)
	l := newLite(t, version(t, "installed"))
	blue := l.network(lab.NetworkSpec{CUDN: "blue"})
	l.label("blue", "lite")
	l.advertise("lite", "auto")
	l.speak(blue, "blue")
	for _, p := range l.posts {
		l.podObject("blue", "a-"+p.node, p.node)
	}
	l.ready("blue")
	pods := map[*post]*lab.Pod{}
	for _, p := range l.posts {
		l.isIn(p, "blue")
		pods[p] = l.pod(blue, p, "a-"+p.node)
		l.serve(pods[p].Node, pods[p].Addresses)
	}
	l.service(twoPorts("blue", "web", blueHTTP, blueEcho), blue, pods[l.node], pods[l.card])
	step := func(name string, f func(l *lite)) bool {
		return t.Run(name, func(t *testing.T) {
			in := *l
			in.field = l.field.in(t)
			f(&in)
		})
	}
	everywhere := func(l *lite, defaults bool) {
		l.t.Helper()
		for _, p := range l.posts {
			l.paths(pods[p], defaults)
		}
	}
	_ = step("in its VRF", func(l *lite) {
		everywhere(l, false)
		l.nodePorts()
	}) &&
		step("another VRF", func(l *lite) { l.stranger(pods[l.node]) }) &&
		step("routing daemons restart", func(l *lite) { l.daemonsRestart(pods[l.node]) }) &&
		step("in the default VRF", func(l *lite) {
			l.advertise("lite", "default")
			for _, p := range l.posts {
				l.isIn(p, "")
			}
			everywhere(l, true)
			l.unharmed("when the network was advertised in the default VRF")
		}) &&
		step("killed on the way", func(l *lite) {
			l.killedOnTheWay()
			everywhere(l, false)
		}) &&
		step("two on one node", func(l *lite) { l.twoOnOneNode(pods) }) &&
		step("gone", func(l *lite) {
			l.must(l.DeleteCUDN(t.Context(), "blue"))
			l.ready()
			for _, p := range l.posts {
				l.isIn(p, "")
			}
			l.unharmed("when the network was gone")
		}) &&
		step("refused", (*lite).refused)
}

// ready waits until the gateways of both nodes cover exactly these networks.
func (l *lite) ready(networks ...string) {
	l.t.Helper()
	for _, p := range l.posts {
		l.within(patience, fieldUplink, p.node, covers(networks...))
	}
}

// nodePorts checks that services answer who comes by the VRF.
func (l *lite) nodePorts() {
	l.t.Helper()
	for _, p := range l.posts {
		for _, a := range p.addresses {
			at := netip.AddrPortFrom(a, blueHTTP)
			l.eventually("beyond to "+at.String(), func(ctx context.Context) error {
				_, err := l.beyond.HTTPGet(ctx, at)
				return err
			})
		}
	}
}

// stranger checks that what comes in by another VRF of the node reaches neither pods nor the network's services.
func (l *lite) stranger(pod *lab.Pod) {
	l.t.Helper()
	ctx := l.t.Context()
	other, err := l.external.Station(ctx, "stranger", nil)
	l.must(err)
	l.must(l.join(other, "s0", l.node.ovs, "n0"))
	for _, command := range []string{
		"link add other type vrf table 10", "link set other up", "link set n0 master other", "link set n0 up",
		"address add 172.31.0.1/24 dev n0",
	} {
		_, err := l.node.ovs.IP(ctx, strings.Fields(command)...)
		l.must(err)
	}
	for _, command := range []string{"address add 172.31.0.9/24 dev s0", "link set s0 up", "route add default via 172.31.0.1"} {
		_, err := other.IP(ctx, strings.Fields(command)...)
		l.must(err)
	}
	l.eventually("the stranger to its own VRF", func(ctx context.Context) error {
		_, err := other.Exec(ctx, "ping", "-c1", "-W1", "172.31.0.1")
		return err
	})
	for range 3 {
		if _, err := other.Exec(ctx, "ping", "-c1", "-W1", pod.Addresses[0].String()); err == nil {
			l.t.Error("a pod answers a station of another VRF")
		}
		for _, at := range []string{"172.31.0.1", l.node.addresses[0].String()} {
			ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
			if answer, err := other.HTTPGet(ctx, netip.MustParseAddrPort(fmt.Sprintf("%s:%d", at, blueHTTP))); err == nil {
				l.t.Errorf("a service of the network answers a station of another VRF: %s at %s", answer.Name, at)
			}
			cancel()
		}
	}
	for _, command := range []string{"link del other", "link del n0"} {
		_, err := l.node.ovs.IP(ctx, strings.Fields(command)...)
		l.must(err)
	}
}

// join wires two machines.
func (l *lite) join(a *lab.Node, aName string, b *lab.Node, bName string) error {
	ctx := l.t.Context()
	if _, err := a.IP(ctx, "link", "add", aName, "type", "veth", "peer", "name", bName+"-"); err != nil {
		return err
	}
	_, err := a.IP(ctx, "link", "set", bName+"-", "netns", b.NetNS, "name", bName)
	return err
}

// daemonsRestart checks that routes outlive the daemons that brought them for the grace time, and follow them then.
func (l *lite) daemonsRestart(pod *lab.Pod) {
	l.t.Helper()
	router := l.routers[l.node]
	series, err := pod.PingSeries(dark[0], 50*time.Millisecond)
	l.must(err)
	router.Kill(frrtest.BGP)
	l.eventually("the kernel's routes go with the daemon", func(ctx context.Context) error {
		out, err := l.node.ovs.IP(ctx, "route", "show", "vrf", "blue", "proto", "bgp")
		if err == nil && out != "" {
			err = errors.New(out)
		}
		return err
	})
	router.Run(frrtest.BGP)
	l.eventually("the kernel's routes are back", func(ctx context.Context) error {
		out, err := l.node.ovs.IP(ctx, "route", "show", "vrf", "blue", "proto", "bgp")
		if err == nil && !strings.Contains(out, "192.0.2.0/24") {
			err = errors.New("there are none")
		}
		return err
	})
	// The way back is by BGP too: what the other side lost meanwhile cannot be answered. What left must have left.
	result := series.Stop(l.t.Context())
	l.t.Logf("while bgpd was restarted: %s", result)
	if out, err := l.node.zone.Nbctl(l.t.Context(), "--bare", "--columns=ip_prefix", "list", "Logical_Router_Static_Route"); err != nil || !strings.Contains(out, "192.0.2.0/24") {
		l.t.Errorf("OVN's route went with the daemon: %v\n%s", err, out)
	}
	l.paths(pod, false)
	l.outside.Tell(frrtest.BGP, "configure terminal", "router bgp 65002", "address-family ipv4 unicast", "no network 192.0.2.0/24")
	l.eventually("a route that is withdrawn goes", func(ctx context.Context) error {
		out, err := l.node.zone.Nbctl(ctx, "--bare", "--columns=ip_prefix", "list", "Logical_Router_Static_Route")
		if err == nil && strings.Contains(out, "192.0.2.0/24") {
			err = errors.New("OVN has it still")
		}
		return err
	})
	l.outside.Tell(frrtest.BGP, "configure terminal", "router bgp 65002", "address-family ipv4 unicast", "network 192.0.2.0/24")
	l.paths(pod, false)
}

// killedOnTheWay moves the interfaces from VRF to VRF while the agents are killed again and again.
func (l *lite) killedOnTheWay() {
	l.t.Helper()
	for i, vrf := range []string{"auto", "default", "auto", "default", "auto"} {
		l.advertise("lite", vrf)
		for _, p := range l.posts {
			pause(l.t, time.Duration(i*137)*time.Millisecond)
			l.must(p.agent.Kill(l.t.Context()))
			p.agent = p.dpuAgent()
		}
	}
	l.ready("blue")
	for _, p := range l.posts {
		l.isIn(p, "blue")
	}
}

// twoOnOneNode makes a second network active where the first one is: both say so, and the first one goes on.
func (l *lite) twoOnOneNode(pods map[*post]*lab.Pod) {
	l.t.Helper()
	l.network(lab.NetworkSpec{CUDN: "red", Subnets: prefixes("10.201.0.0/16", "fd11::/48")})
	l.label("red", "lite")
	l.ready("blue")
	l.podObject("red", "r", l.node.node)
	state := l.within(patience, fieldUplink, l.node.node, gatewayFails(uplinkstate.ReasonUplinkConfigurationConflict))
	for _, n := range state.Status.Networks {
		if n.Reason != uplinkstate.ReasonUplinkConfigurationConflict {
			l.t.Errorf("network %s is %s: %s %s, want a conflict", n.Name, n.Phase, n.Reason, n.Message)
		}
	}
	l.within(patience, fieldUplink, l.card.node, covers("blue"))
	l.paths(pods[l.node], false)
	l.isIn(l.node, "blue")
	l.must(l.DeleteCUDN(l.t.Context(), "red"))
	l.ready("blue")
}

// refused has others in the way of a VRF: what cannot be is said, changes nothing, and is done once they are out of the way.
func (l *lite) refused() {
	l.t.Helper()
	ctx := l.t.Context()
	must := func(command string) {
		l.t.Helper()
		_, err := l.node.ovs.IP(ctx, strings.Fields(command)...)
		l.must(err)
	}
	must("link add green type dummy")
	l.network(lab.NetworkSpec{CUDN: "green"}, l.node)
	l.label("green", "lite")
	l.podObject("green", "g", l.node.node)
	l.within(patience, fieldUplink, l.node.node, gatewayFails(uplinkstate.ReasonUplinkVRFAttachmentFailed))
	l.unharmed("when a link that is no VRF had its name")
	must("link del green")
	l.within(patience, fieldUplink, l.node.node, covers("green"))
	l.isIn(l.node, "green")

	l.advertise("lite", "default")
	l.isIn(l.node, "")
	must("link add theirs type vrf table 11")
	must("link set theirs up")
	must("link set " + l.node.bridge + " master theirs")
	l.advertise("lite", "auto")
	l.within(patience, fieldUplink, l.node.node, gatewayFails(uplinkstate.ReasonUplinkConfigurationConflict))
	l.isIn(l.node, "theirs")
}
