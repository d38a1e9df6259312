// SPDX-License-Identifier: Apache-2.0

package openflow

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ovn-uplink/ovn-uplink/test/lab"
)

// works checks that the host and OVN get out, and that a service is reached, in both families.
func works(t *testing.T, r *rig) {
	t.Helper()
	for _, f := range []struct{ far, own, target string }{
		{"203.0.113.9", "192.0.2.10", "100.91.0.6"}, {"2001:db8:9::9", "2001:db8:1::10", "fd91::6"},
	} {
		eventually(t, 5*time.Second, func(ctx context.Context) error { return ping(ctx, r.node, f.far) })
		eventually(t, 5*time.Second, func(ctx context.Context) error { return ping(ctx, r.ovn, f.far) })
		got, err := askTCP(r.wire, "", join(f.own, 30080))
		if want := "o at " + join(f.target, 30080); got != want {
			t.Errorf("service at %s: got %q (%v), want %q", f.own, got, err, want)
		}
		do(t, ping(t.Context(), r.wire, f.own))
	}
}

func serve(t *testing.T, r *rig) {
	t.Helper()
	echoTCP(t, r.ovn, join("100.91.0.6", 30080))
	echoTCP(t, r.ovn, join("fd91::6", 30080))
}

// TestSecureBridge: nothing but this package's flows makes a bridge with fail_mode=secure pass anything.
func TestSecureBridge(t *testing.T) {
	eachOVS(t, func(t *testing.T, build *lab.OVSBuild) {
		r := newRig(t, build)
		r.vsctl(t, "set-fail-mode", "br0", "secure")
		r.ofctlRun(t, "del-flows", "br0")
		if ping(t.Context(), r.node, "192.0.2.1") == nil {
			t.Fatal("the bridge passes packets without flows")
		}
		b := full(t)
		b.Secure = true
		program(t, r.programmer(t), b)
		serve(t, r)
		works(t, r)
	})
}

// TestVLAN: the wire's port is a trunk, the bridge's own an access port.
func TestVLAN(t *testing.T) {
	eachOVS(t, func(t *testing.T, build *lab.OVSBuild) {
		r := newRig(t, build)
		// A switch between the bridge and the wire, to which the wire is an access port.
		r.vsctl(t, "set", "port", "br0", "tag=100", "--", "del-port", "br0", "up0", "--",
			"add-br", "sw", "--", "set", "bridge", "sw", "datapath_type=netdev", "--",
			"add-port", "sw", "up0", "tag=100", "--", "add-port", "sw", "down", "--",
			"set", "interface", "down", "type=patch", "options:peer=trunk", "--", "add-port", "br0", "trunk", "--",
			"set", "interface", "trunk", "type=patch", "options:peer=down", "ofport_request=21")
		b := full(t)
		b.VLAN, b.Uplinks = 100, []uint32{21}
		program(t, r.programmer(t), b)
		serve(t, r)
		works(t, r)
	})
}

// TestB5Bond: OVN's packets leave by the first member that is up, and come in by any.
func TestB5Bond(t *testing.T) {
	eachOVS(t, func(t *testing.T, build *lab.OVSBuild) {
		r := newRig(t, build)
		ctx := t.Context()
		do(t, r.lab.Wire(ctx, r.node, "up1", r.wire, "eth1"))
		mac := r.mac(t, r.wire)
		// The other end is a switch that learns, as any.
		r.ip(t, r.wire, "addr flush dev eth0", "link add sw type bridge", "link set sw address "+mac,
			"link set eth0 master sw", "link set eth1 master sw", "link set sw up",
			"addr add 192.0.2.1/24 dev sw", "addr add 2001:db8:1::1/64 dev sw nodad")
		r.vsctl(t, "del-port", "br0", "up0", "--", "add-bond", "br0", "bond0", "up0", "up1", "bond_mode=active-backup",
			"--", "set", "interface", "up0", "ofport_request=11", "--", "set", "interface", "up1", "ofport_request=12")
		p := r.programmer(t)
		b := full(t)
		serve(t, r)
		for _, active := range []string{"up0", "up1"} {
			out, err := r.node.OVS.Appctl(ctx, "bond/set-active-member", "bond0", active)
			if err != nil {
				t.Fatal(out, err)
			}
			b.Uplinks = []uint32{11, 12}
			if active == "up1" {
				b.Uplinks = []uint32{12, 11}
			}
			program(t, p, b)
			works(t, r)
			// OVN's packets do not make the switch send the host's to a member that the bond does not listen to.
			for range 5 {
				do(t, ping(ctx, r.ovn, "203.0.113.9"), ping(ctx, r.wire, "192.0.2.10"))
			}
		}
		r.ip(t, r.wire, "link set eth1 down") // the active one
		works(t, r)
	})
}

// TestGuard: before the patch port's number is known, OVN's frames do not move the host's MAC.
func TestGuard(t *testing.T) {
	eachOVS(t, func(t *testing.T, build *lab.OVSBuild) {
		r := newRig(t, build)
		b := full(t)
		b.Patch = 0
		p := r.programmer(t)
		program(t, p, b)
		eventually(t, 5*time.Second, func(ctx context.Context) error { return ping(ctx, r.node, "203.0.113.9") })
		lost := pings(t, r.node, "203.0.113.9", func() {
			for range 2 {
				if ping(t.Context(), r.ovn, "203.0.113.9") == nil {
					t.Error("OVN gets out without a patch port")
				}
			}
		})
		if lost != 0 {
			t.Errorf("the host lost %d packets", lost)
		}
		fdbIs(t, r, "LOCAL")
	})
}

// fdbIs checks where the bridge has learned the Uplink's MAC.
func fdbIs(t *testing.T, r *rig, port string) {
	t.Helper()
	out, err := r.node.OVS.Appctl(t.Context(), "fdb/show", "br0")
	do(t, err)
	for line := range strings.Lines(out) {
		if strings.Contains(line, testMAC) && strings.Fields(line)[0] != port {
			t.Errorf("the MAC is learned at another port than %s: %s", port, line)
		}
	}
}

// pings sends 100 pings a second from a machine while f runs, and returns how many got no answer.
func pings(t *testing.T, n *lab.Node, to string, f func()) int {
	t.Helper()
	series, err := n.PingSeries(addr(to), 10*time.Millisecond)
	do(t, err)
	f()
	result := series.Stop(t.Context())
	if result.Sent < 20 {
		t.Errorf("only %d pings were sent", result.Sent)
	}
	return result.Lost() - result.Unsent
}

// TestHostLosesNothing: flows are programmed, changed and removed under the host's traffic.
func TestHostLosesNothing(t *testing.T) {
	eachOVS(t, func(t *testing.T, build *lab.OVSBuild) {
		r := newRig(t, build)
		p := r.programmer(t)
		run(t, p)
		b := full(t)
		eventually(t, 5*time.Second, func(ctx context.Context) error { return ping(ctx, r.node, "203.0.113.9") })
		lost := pings(t, r.node, "203.0.113.9", func() {
			for i := range 3 {
				b.Patch = 0
				program(t, p, b)
				b.Patch, b.Services = 2, services(300*i)
				program(t, p, b)
				b.Advertised = prefixes(fmt.Sprintf("10.%d.0.0/16", 210+i))
				program(t, p, b)
				do(t, ping(t.Context(), r.ovn, "203.0.113.9"))
				b.Patch, b.Services = 0, nil
				program(t, p, b)
			}
			r.vsctl(t, "del-port", "br0", "pn")
			do(t, p.Remove(t.Context(), "br0"))
		})
		if lost != 0 {
			t.Errorf("the host lost %d packets", lost)
		}
	})
}

// TestNoFlood: what the host sends to an unknown MAC does not reach OVN.
func TestNoFlood(t *testing.T) {
	eachOVS(t, func(t *testing.T, build *lab.OVSBuild) {
		r := newRig(t, build)
		reached, err := r.ovn.Capture("eth0")
		do(t, err)
		flood := func() bool {
			reached.Reset()
			r.ip(t, r.node, "neigh replace 192.0.2.200 dev br0 lladdr 02:00:00:00:99:99")
			if ping(t.Context(), r.node, "192.0.2.200") == nil {
				t.Fatal("somebody answers")
			}
			return reached.Count(lab.To(addr("192.0.2.200"))) > 0
		}
		if !flood() {
			t.Fatal("the bridge floods nothing: the test cannot fail")
		}
		program(t, r.programmer(t), full(t))
		wait(t.Context(), 500*time.Millisecond)
		if flood() {
			t.Error("a flood reached OVN")
		}
	})
}

// TestErrorsFindTheirConnection: ICMP errors about a translated packet are translated back, both ways.
func TestErrorsFindTheirConnection(t *testing.T) {
	eachOVS(t, func(t *testing.T, build *lab.OVSBuild) {
		r := newRig(t, build)
		program(t, r.programmer(t), full(t))
		for _, f := range []struct{ far, own string }{
			{"203.0.113.9", "192.0.2.10"}, {"2001:db8:9::9", "2001:db8:1::10"},
		} {
			eventually(t, 5*time.Second, func(ctx context.Context) error { return ping(ctx, r.node, f.far) })
			for name, err := range map[string]error{
				"OVN's datagram to a closed port":        askUDP(r.ovn, "", join(f.far, 9), 10),
				"a datagram to a service without server": askUDP(r.wire, "", join(f.own, 30053), 10),
				"the host's datagram to a closed port":   askUDP(r.node, "", join(f.far, 9), 10),
			} {
				if !errors.Is(err, syscall.ECONNREFUSED) {
					t.Errorf("%s of %s: %v, want a refusal", name, f.own, err)
				}
			}
		}
	})
}

// TestTranslationAvoidsTheHost: OVN and the host use the same port to the same server at once.
func TestTranslationAvoidsTheHost(t *testing.T) {
	eachOVS(t, func(t *testing.T, build *lab.OVSBuild) {
		r := newRig(t, build)
		program(t, r.programmer(t), full(t))
		for _, f := range []struct{ far, own, transit string }{
			{"203.0.113.9", "192.0.2.10", "100.91.0.6"}, {"2001:db8:9::9", "2001:db8:1::10", "fd91::6"},
		} {
			eventually(t, 5*time.Second, func(ctx context.Context) error { return ping(ctx, r.node, f.far) })
			echoUDP(t, r.wire, join(f.far, 7))
			for range 2 {
				do(t, askUDP(r.node, join(f.own, 5555), join(f.far, 7), 10))
				do(t, askUDP(r.ovn, join(f.transit, 5555), join(f.far, 7), 20))
			}
		}
	})
}

// TestH2OneResponder: only the host answers for the Uplink's address, although OVN's side has it as well, and OVN
// learns its neighbours.
func TestH2OneResponder(t *testing.T) {
	eachOVS(t, func(t *testing.T, build *lab.OVSBuild) {
		r := newRig(t, build)
		program(t, r.programmer(t), full(t))
		_, err := r.ovn.Exec(t.Context(), "sysctl", "-qw", "net.ipv4.conf.all.arp_announce=2")
		do(t, err)
		r.ip(t, r.ovn, "addr add 192.0.2.10/24 dev eth0", "addr add 2001:db8:1::10/64 dev eth0 nodad",
			"neigh del 192.0.2.1 dev eth0", "neigh del 2001:db8:1::1 dev eth0")
		seen := []string{
			"arp,in_port=1,arp_op=1,arp_spa=192.0.2.1,arp_tpa=192.0.2.10,dl_dst=ff:ff:ff:ff:ff:ff,dl_src=" + r.mac(t, r.wire),
			"icmp6,in_port=1,icmpv6_type=135,nd_target=2001:db8:1::10,dl_dst=33:33:ff:00:00:10,dl_src=" + r.mac(t, r.wire),
		}
		for _, flow := range seen {
			if to := trace(t, r, flow).outputs; slices.Contains(to, "pn") || !slices.Contains(to, "br0") {
				t.Errorf("%s goes to %v", flow, to)
			}
		}
		for far, gateway := range map[string][2]string{
			"203.0.113.9": {"192.0.2.10", "192.0.2.1"}, "2001:db8:9::9": {"2001:db8:1::10", "2001:db8:1::1"},
		} {
			eventually(t, 5*time.Second, func(ctx context.Context) error {
				// As OVN does, it looks for the gateway with the Uplink's address; the ping itself is not let out.
				_, _ = r.ovn.Exec(ctx, "ping", "-c1", "-W1", "-I", gateway[0], gateway[1])
				return ping(ctx, r.ovn, far)
			})
			do(t, ping(t.Context(), r.node, far))
		}
		fdbIs(t, r, "LOCAL")
	})
}
