// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/ovn-uplink/ovn-uplink/shared/kernel/kerneltest"
	"github.com/ovn-uplink/ovn-uplink/shared/kernel/rtevents"
	"golang.org/x/sys/unix"
)

// followTime is how long a change may take to be in the latest snapshot, on a machine that is busy. How soon it is
// published is for the integration tests to measure.
const followTime = 5 * time.Second

// newVeth makes a namespace with ens3, a veth with a carrier.
func newVeth(t *testing.T) *kerneltest.Namespace {
	ns := kerneltest.NewNamespace(t)
	ns.IP("link add ens3 type veth peer name peer", "link set peer up", "link set ens3 up")
	return ns
}

func readNamespace(t *testing.T, ns *kerneltest.Namespace) *Snapshot {
	t.Helper()
	s, err := Read(t.Context(), &ns.Handle)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestReadNamespace(t *testing.T) {
	ns := newVeth(t)
	ns.IP("link set ens3 mtu 1400 address 02:00:00:00:00:07",
		"link property add dev ens3 altname enp65s0f0np0pf0vf0",
		"link add br0 type bridge", "link set peer master br0",
		"addr add 192.0.2.5/24 dev ens3", "addr add 192.0.2.6/24 dev ens3 label ens3:vip",
		"addr add 203.0.113.9/32 dev ens3 preferred_lft 0", "addr add 2001:db8::5/64 dev ens3 nodad",
		"addr add 2001:db8::6/64 dev ens3 nodad valid_lft 3600 preferred_lft 1800",
		"route add default via 192.0.2.1 dev ens3 metric 100 proto dhcp",
		"route add default metric 50 nexthop via 192.0.2.2 dev ens3 weight 3 nexthop via 192.0.2.3 dev ens3",
		"route add 198.51.100.0/24 via 192.0.2.1", "route add default via 192.0.2.9 dev ens3 table 77",
		"route add blackhole default metric 4278198272",
		"-6 route add default proto ra metric 1024 nexthop via fe80::1 dev ens3 nexthop via fe80::2 dev ens3")
	awaitOperState(t, ns, OperUp)
	s := readNamespace(t, ns)

	link, ok := s.LinkByName("enp65s0f0np0pf0vf0")
	if !ok || link.Name != "ens3" || link.Kind != "veth" || link.MTU != 1400 || link.HardwareAddr.String() != "02:00:00:00:00:07" ||
		!link.Up || !link.Carrier || link.OperState != OperUp || s.TableOf(link) != MainTable {
		t.Errorf("link by altname: %+v, %t", link, ok)
	}
	peer, _ := s.LinkByName("peer")
	if bridge, ok := s.LinkByIndex(peer.MasterIndex); !ok || bridge.Name != "br0" {
		t.Errorf("master of the peer: %+v", bridge)
	}

	var addrs []string
	for _, a := range s.AddrsOf(link.Index) {
		if a.Scope == unix.RT_SCOPE_UNIVERSE {
			addrs = append(addrs, fmt.Sprintf("%s permanent=%t secondary=%t deprecated=%t %s",
				a.Prefix, a.Permanent, a.Secondary, a.Deprecated, a.Label))
		}
	}
	wantAddrs := []string{
		"192.0.2.5/24 permanent=true secondary=false deprecated=false ens3",
		"192.0.2.6/24 permanent=true secondary=true deprecated=false ens3:vip",
		"203.0.113.9/32 permanent=true secondary=false deprecated=true ens3",
		"2001:db8::5/64 permanent=true secondary=false deprecated=false ",
		"2001:db8::6/64 permanent=false secondary=false deprecated=false ",
	}
	if !slices.Equal(addrs, wantAddrs) {
		t.Errorf("addresses are\n%q, want\n%q", addrs, wantAddrs)
	}

	var routes []string
	for _, r := range s.DefaultRoutes(MainTable) {
		for _, hop := range r.NextHops {
			routes = append(routes, fmt.Sprintf("%s metric %d type %d proto %d via %s weight %d here=%t",
				r.Dst, r.Metric, r.Type, r.Protocol, hop.Gateway, hop.Weight, hop.LinkIndex == link.Index))
		}
	}
	wantRoutes := []string{
		"0.0.0.0/0 metric 50 type 1 proto 3 via 192.0.2.2 weight 3 here=true",
		"0.0.0.0/0 metric 50 type 1 proto 3 via 192.0.2.3 weight 1 here=true",
		"0.0.0.0/0 metric 100 type 1 proto 16 via 192.0.2.1 weight 1 here=true",
		"0.0.0.0/0 metric 4278198272 type 6 proto 3 via invalid IP weight 1 here=false",
		"::/0 metric 1024 type 1 proto 9 via fe80::1 weight 1 here=true",
		"::/0 metric 1024 type 1 proto 9 via fe80::2 weight 1 here=true",
	}
	if !slices.Equal(routes, wantRoutes) {
		t.Errorf("default routes are\n%q, want\n%q", routes, wantRoutes)
	}
	if len(s.Routes) != len(s.DefaultRoutes(MainTable)) {
		t.Error("routes of a table that belongs to no VRF were read")
	}

	if again := readNamespace(t, ns); !again.Equal(s) {
		t.Errorf("two reads of the same differ: %+v, %+v", s, again)
	}
	ns.IP("link set peer down")
	awaitOperState(t, ns, "lower-layer-down")
	if link, _ := readNamespace(t, ns).LinkByName("ens3"); link.Carrier || !link.Up {
		t.Errorf("without a carrier: %+v", link)
	}
}

// awaitOperState waits for the operational state of ens3, which follows its carrier with delay.
func awaitOperState(t *testing.T, ns *kerneltest.Namespace, want OperState) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		link, _ := readNamespace(t, ns).LinkByName("ens3")
		if link.OperState == want {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the operational state of ens3 is %s, want %s", link.OperState, want)
		}
	}
}

// TestReadVRF needs a kernel with VRF: the virtual machine's, where CI's own has none.
func TestReadVRF(t *testing.T) {
	ns := newVeth(t)
	if err := ns.TryIP("link add vrf-blue type vrf table 1007"); err != nil {
		t.Skipf("this kernel has no VRF, test/vm runs it on one that has: %v", err)
	}
	ns.IP("link set vrf-blue up", "addr add 192.0.2.5/24 dev ens3", "link add e4 type veth peer name e4-peer", "link set e4-peer up",
		"link set e4 up", "addr add 198.51.100.5/24 dev e4", "route add default via 198.51.100.1")
	_, await := watch(t, ns, nil)
	ns.IP("link set ens3 master vrf-blue", "route add default via 192.0.2.1 dev ens3 table 1007",
		"route add unreachable default metric 4278198272 table 1007")
	await("C3: the default routes of the table that the link is in now", followTime, func(s *Snapshot) bool {
		link, _ := s.LinkByName("ens3")
		routes := s.DefaultRoutes(s.TableOf(link))
		return s.TableOf(link) == 1007 && len(routes) == 2 && routes[0].NextHops[0].Gateway.String() == "192.0.2.1" && !routes[1].Forwards() &&
			len(s.DefaultRoutes(MainTable)) == 1
	})
	ns.IP("link set ens3 nomaster")
	await("table main after the link left its VRF", followTime, func(s *Snapshot) bool {
		link, _ := s.LinkByName("ens3")
		return s.TableOf(link) == MainTable
	})
	ns.IP("link del vrf-blue")
	await("nothing of a VRF that is gone", followTime, func(s *Snapshot) bool { return len(s.DefaultRoutes(1007)) == 0 })
}

// watch runs a monitor in a namespace and returns a function that waits until what is seen fulfils cond.
func watch(t *testing.T, ns *kerneltest.Namespace, prepare func(*Monitor)) (m *Monitor, await func(what string, within time.Duration, cond func(*Snapshot) bool)) {
	t.Helper()
	m = NewMonitor(Options{Namespace: &ns.Handle, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	changed := make(chan struct{}, 1)
	m.OnChange(func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	})
	if prepare != nil {
		prepare(m)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	await = func(what string, within time.Duration, cond func(*Snapshot) bool) {
		t.Helper()
		deadline := time.After(within)
		for {
			if s, ok := m.Latest(); ok && cond(s) {
				return
			}
			select {
			case <-changed:
			case <-deadline:
				s, _ := m.Latest()
				t.Fatalf("not seen within %s: %s; latest is %+v", within, what, s)
			}
		}
	}
	await("the first snapshot", 5*time.Second, func(*Snapshot) bool { return true })
	return m, await
}

func TestMonitorFollowsKernel(t *testing.T) {
	ns := newVeth(t)
	_, await := watch(t, ns, nil)
	hasAddr := func(text string) func(*Snapshot) bool {
		return func(s *Snapshot) bool {
			return slices.ContainsFunc(s.Addrs, func(a Addr) bool { return a.Prefix.String() == text })
		}
	}
	ns.IP("addr add 192.0.2.5/24 dev ens3")
	await("an address that was added", followTime, hasAddr("192.0.2.5/24"))
	ns.IP("addr change 192.0.2.5/24 dev ens3 preferred_lft 0")
	await("an address that was deprecated", followTime, func(s *Snapshot) bool {
		return slices.ContainsFunc(s.Addrs, func(a Addr) bool { return a.Deprecated })
	})
	ns.IP("route add default via 192.0.2.1")
	await("C4: a default route that came later", followTime, func(s *Snapshot) bool { return len(s.Routes) == 1 })
	ns.IP("route del default")
	await("a default route that went", followTime, func(s *Snapshot) bool { return len(s.Routes) == 0 })
	ns.IP("addr del 192.0.2.5/24 dev ens3")
	await("an address that was removed", followTime, func(s *Snapshot) bool { return !hasAddr("192.0.2.5/24")(s) })
	ns.IP("link set peer down")
	await("a carrier that was lost", followTime, func(s *Snapshot) bool { l, _ := s.LinkByName("ens3"); return !l.Carrier })
	ns.IP("link property add dev ens3 altname uplink0")
	await("an altname", followTime, func(s *Snapshot) bool { _, ok := s.LinkByName("uplink0"); return ok })

	s := readNamespace(t, ns)
	old, _ := s.LinkByName("ens3")
	ns.IP("link del ens3", "link add ens3 type veth peer name peer", "addr add 192.0.2.7/24 dev ens3")
	await("D3: the link made again, and nothing of the old one", followTime, func(s *Snapshot) bool {
		l, ok := s.LinkByName("ens3")
		return ok && l.Index != old.Index && len(s.AddrsOf(l.Index)) == 1 && len(s.AddrsOf(old.Index)) == 0
	})
	ns.IP("link del ens3")
	await("a link that was removed", followTime, func(s *Snapshot) bool { _, ok := s.LinkByName("ens3"); return !ok })
}

// TestMonitorFollowsNextHopObjects: the kernel says nothing of a route that goes with its next-hop object.
func TestMonitorFollowsNextHopObjects(t *testing.T) {
	ns := newVeth(t)
	ns.IP("addr add 192.0.2.5/24 dev ens3", "addr add 2001:db8::5/64 dev ens3 nodad")
	if err := ns.TryIP("nexthop add id 1 via 192.0.2.1 dev ens3"); err != nil {
		t.Skipf("this kernel has no next-hop objects, test/vm runs it on one that has: %v", err)
	}
	ns.IP("nexthop add id 2 via 2001:db8::1 dev ens3")
	awaitOperState(t, ns, OperUp)
	_, await := watch(t, ns, nil)
	ns.IP("route add default nhid 1", "-6 route add default nhid 2")
	gateways := func(want ...string) func(*Snapshot) bool {
		return func(s *Snapshot) bool {
			var got []string
			for _, r := range s.Routes {
				got = append(got, r.NextHops[0].Gateway.String())
			}
			return slices.Equal(got, want)
		}
	}
	await("the routes", followTime, gateways("192.0.2.1", "2001:db8::1"))
	ns.IP("nexthop replace id 1 via 192.0.2.9 dev ens3")
	await("another next hop", followTime, gateways("192.0.2.9", "2001:db8::1"))
	ns.IP("nexthop del id 1")
	await("a route that went with its next hop", followTime, gateways("2001:db8::1"))
	ns.IP("nexthop del id 2")
	await("an IPv6 route that did", followTime, gateways())
}

// many makes n commands.
func many(n int, format string) []string {
	commands := make([]string, n)
	for i := range commands {
		commands[i] = fmt.Sprintf(format, i/250, i%250+1)
	}
	return commands
}

func TestMonitorIgnoresOtherRoutes(t *testing.T) {
	ns := newVeth(t)
	ns.IP("addr add 192.0.2.5/24 dev ens3")
	awaitOperState(t, ns, OperUp)
	reads := make(chan struct{}, 1000)
	_, await := watch(t, ns, func(m *Monitor) { m.options.Metrics.Read = func(time.Duration, error) { reads <- struct{}{} } })
	before := len(reads)
	ns.IPBatch(many(5000, "route add 198.51.%d.%d via 192.0.2.1 proto bgp")...)
	ns.IP("route add default via 192.0.2.1 proto bgp")
	await("the default route", followTime, func(s *Snapshot) bool { return len(s.Routes) == 1 })
	// The end of duplicate address detection may cause one or two more; events of all routes would cause dozens.
	if got := len(reads) - before; got > 4 {
		t.Errorf("%d reads for 5000 routes of a routing daemon, want only the default route's", got)
	}
}

func TestMonitorSurvivesOverflow(t *testing.T) {
	ns := newVeth(t)
	causes := make(chan error, 1000)
	_, await := watch(t, ns, func(m *Monitor) {
		// The smallest buffer there is holds one event or two.
		m.subscribe = func() (*rtevents.Subscription, error) { return subscribe(&ns.Handle, 1) }
		m.options.Metrics.Resubscribed = func(err error) { causes <- err }
	})
	// A reader that is quick may keep up once, but not every time.
	for range 10 {
		ns.IPBatch(many(2000, "addr add 10.0.%d.%d/32 dev ens3")...)
		await("all addresses", 10*time.Second, func(s *Snapshot) bool { return len(s.Addrs) >= 2000 })
		if len(causes) > 0 {
			break
		}
		ns.IPBatch(many(2000, "addr del 10.0.%d.%d/32 dev ens3")...)
		await("no address", 10*time.Second, func(s *Snapshot) bool { return len(s.Addrs) < 10 })
	}
	if len(causes) == 0 {
		t.Fatal("tens of thousands of events did not overflow the smallest buffer")
	}
	if err := <-causes; !errors.Is(err, unix.ENOBUFS) {
		t.Errorf("the subscription was lost by %v", err)
	}
	ns.IPBatch(many(2000, "addr del 10.0.%d.%d/32 dev ens3")...)
	await("no address", 10*time.Second, func(s *Snapshot) bool { return len(s.Addrs) < 10 })
}
