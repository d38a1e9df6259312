// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/ovn-uplink/ovn-uplink/shared/kernel/kerneltest"
	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
	"github.com/ovn-uplink/ovn-uplink/test/lab"
	"github.com/ovn-uplink/ovn-uplink/test/lab/frrtest"
)

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

// twoOnOneNode has two networks share the Uplink, each in its own VRF: on different nodes that works. Active on one node,
// both say that they cannot, and the first one goes on.
func (l *lite) twoOnOneNode(pods map[*post]*lab.Pod) {
	l.t.Helper()
	l.network(lab.NetworkSpec{CUDN: "red", Subnets: prefixes("10.201.0.0/16", "fd11::/48")})
	l.label("red", "lite")
	l.deletePod("blue", "a-"+l.card.node)
	l.podObject("red", "r", l.card.node)
	l.within(patience, fieldUplink, l.card.node, covers("red"))
	l.isIn(l.card, "red")
	l.within(patience, fieldUplink, l.node.node, covers("blue"))
	l.isIn(l.node, "blue")

	l.podObject("red", "s", l.node.node)
	state := l.within(patience, fieldUplink, l.node.node, gatewayFails(uplinkstate.ReasonUplinkConfigurationConflict))
	for _, n := range state.Status.Networks {
		if n.Reason != uplinkstate.ReasonUplinkConfigurationConflict {
			l.t.Errorf("network %s is %s: %s %s, want a conflict", n.Name, n.Phase, n.Reason, n.Message)
		}
	}
	l.within(patience, fieldUplink, l.card.node, covers("red"))
	l.paths(pods[l.node], false)
	l.isIn(l.node, "blue")
	l.must(l.DeleteCUDN(l.t.Context(), "red"))
	l.podObject("blue", "b-"+l.card.node, l.card.node)
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
