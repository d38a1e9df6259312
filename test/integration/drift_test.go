// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"testing"
	"time"

	"github.com/ovn-uplink/ovn-uplink/shared/api/v1alpha1"
	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
)

func onBridge(name, port string, vlan int32) func(*v1alpha1.UplinkState) error {
	return func(s *v1alpha1.UplinkState) error {
		b := s.Status.OVSBridge
		if b == nil || string(b.Name) != name || b.UplinkPort != port || (b.VLAN == nil) != (vlan == 0) || (b.VLAN != nil && *b.VLAN != vlan) {
			return fmt.Errorf("bridge %+v, want %s with uplink port %s and VLAN %d", b, name, port, vlan)
		}
		return nil
	}
}

// Whatever changes after everything was resolved is seen by events, on both sides, and with exactly one write of
// the side whose half it is (B23).
func TestDrift(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	p := c.pair("worker-b")
	c.vsctl(p.Card, "add-br", "br-two", "--", "set", "Bridge", "br-two", "datapath_type=netdev")
	c.addWire(p.Card, "p1")
	c.vsctl(p.Card, "add-port", "br-two", "p1")
	c.ip(p.Card, "link", "set", "br-two", "up")
	c.uplink("blue", nodeConfig("ens1f0", nil))
	c.hostAgent(p.Host)
	c.cardAgent(p)
	c.within(settled, "blue", "worker-b", all(resolved, onBridge("br-ext", "p0", 0)))
	r := c.record()
	c.quiet(r, time.Second)

	host := func(args ...string) func() { return func() { c.ip(p.Host, args...) } }
	card := func(args ...string) func() { return func() { c.vsctl(p.Card, args...) } }
	for _, step := range []struct {
		what   string
		do     []func()
		check  func(*v1alpha1.UplinkState) error
		writes int
	}{
		{"interface renamed away", []func(){
			host("link", "set", "ens1f0", "down"), host("link", "set", "ens1f0", "name", "x0"), host("link", "set", "x0", "up"),
		}, unresolved(uplinkstate.ReasonHostInterfaceNotFound), 2},
		{"interface back", []func(){
			host("link", "set", "x0", "down"), host("link", "set", "x0", "name", "ens1f0"), host("link", "set", "ens1f0", "up"),
			host("route", "add", "default", "via", "172.28.0.1", "dev", "ens1f0"),
		}, all(resolved, onBridge("br-ext", "p0", 0), gateways("172.28.0.1")), 2},
		{"address changed", []func(){host("addr", "add", "172.28.0.9/17", "dev", "ens1f0"), host("addr", "del", "172.28.0.3/16", "dev", "ens1f0")},
			all(addresses("172.28.0.9/17"), resolved), 1},
		{"port tagged", []func(){card("set", "Port", "pf0hpf", "tag=100")}, onBridge("br-ext", "p0", 100), 1},
		{"port untagged", []func(){card("clear", "Port", "pf0hpf", "tag")}, onBridge("br-ext", "p0", 0), 1},
		{"representor moved to another bridge", []func(){card("del-port", "pf0hpf", "--", "add-port", "br-two", "pf0hpf")},
			all(resolved, onBridge("br-two", "p1", 0)), 1},
		{"representor moved back", []func(){card("del-port", "pf0hpf", "--", "add-port", "br-ext", "pf0hpf")},
			all(resolved, onBridge("br-ext", "p0", 0)), 1},
		{"representor taken off its bridge", []func(){card("del-port", "pf0hpf")}, unresolved(uplinkstate.ReasonBridgeNotFound), 1},
		{"representor put on its bridge", []func(){card("add-port", "br-ext", "pf0hpf")}, resolved, 1},
		{"physical port removed", []func(){card("del-port", "p0")}, unresolved(uplinkstate.ReasonBridgeUplinkNotFound), 1},
		{"physical port added", []func(){card("add-port", "br-ext", "p0")}, resolved, 1},
		{"physical port down", []func(){func() { c.ip(p.Card, "link", "set", "p0", "down") }}, unresolved(uplinkstate.ReasonBridgeUplinkNotFound), 1},
		{"physical port up", []func(){func() { c.ip(p.Card, "link", "set", "p0", "up") }}, resolved, 1},
	} {
		before := r.count()
		for _, do := range step.do {
			do()
		}
		c.within(settled, "blue", "worker-b", step.check)
		c.exactly(r, before, step.writes, step.what)
	}
	c.atRest(r)
}

// Losing sight of Open vSwitch changes nothing; what changed meanwhile is seen when it is back (E1, E3).
func TestOVSDBRestarts(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	p := c.pair("worker-b")
	c.uplink("blue", nodeConfig("ens1f0", nil))
	c.hostAgent(p.Host)
	agent := c.cardAgent(p)
	c.within(settled, "blue", "worker-b", resolved)
	r := c.record()

	for range 3 {
		c.must(p.Card.OVS.RestartDB(t.Context()))
		c.ready(p.Card, dpuHealth)
	}
	c.must(p.Card.OVS.StopDB(t.Context()))
	c.must(p.Card.OVS.StopVswitchd(t.Context()))
	c.unready(p.Card, dpuHealth)
	pause(t, 3*time.Second)
	c.must(p.Card.OVS.StartDB(t.Context()))
	c.must(p.Card.OVS.StartVswitchd(t.Context()))
	c.ip(p.Card, "link", "set", "br-ext", "up") // the userspace datapath makes it anew
	c.ready(p.Card, dpuHealth)
	c.quiet(r, 2*time.Second)
	if got := r.count(); got != 0 {
		for _, s := range r.since(0) {
			t.Logf("written: %+v", s.Status)
		}
		t.Errorf("%d writes although nothing of the bridge changed", got)
	}

	c.must(p.Card.OVS.StopVswitchd(t.Context())) // it would hold ovs-vsctl up
	c.must(p.Card.OVS.StopDB(t.Context()))
	c.must(p.Card.OVS.StartDB(t.Context()))
	c.vsctl(p.Card, "--no-wait", "del-port", "p0")
	c.within(settled+5*time.Second, "blue", "worker-b", unresolved(uplinkstate.ReasonBridgeUplinkNotFound))
	if !agent.Running() {
		t.Error("the agent ended")
	}
}
