// SPDX-License-Identifier: Apache-2.0

package routeimport

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/ovn-uplink/ovn-uplink/shared/kernel/rtevents"
	"golang.org/x/sys/unix"
)

// TestImportsWhatTheKernelUses: C1, C2, C7, C8, C10, C11, G7, G11 and G12 with the kernel's own routes.
func TestImportsWhatTheKernelUses(t *testing.T) {
	ns := newLink(t)
	w := start(t, Config{Namespace: &ns.Handle, Grace: time.Hour})
	w.Want("u", Domain{Interface: "ext0", Skip: prefixes("10.128.0.0/14", "2001:db8:aaaa::/48")})
	w.awaitRoutes("nothing")
	ns.IP(
		"route add 198.51.100.0/24 via 192.0.2.1 proto bgp metric 20",
		// C1, C2, C7: weights do not count.
		"route add 198.51.101.0/24 proto bgp metric 20 nexthop via 192.0.2.2 weight 3 nexthop via 192.0.2.1",
		// A leg through another interface.
		"route add 198.51.102.0/24 proto bgp metric 20 nexthop via 192.0.2.1 nexthop via 198.18.0.1",
		// C10: the default route is a route.
		"route add default via 192.0.2.9 proto bgp metric 20",
		// Of two metrics the lower one.
		"route add 198.51.103.0/24 via 192.0.2.1 proto bgp metric 30",
		"route add 198.51.103.0/24 via 192.0.2.3 proto bgp metric 20",
		// The lower one leaves elsewhere.
		"route add 198.51.104.0/24 via 192.0.2.1 proto bgp metric 30",
		"route add 198.51.104.0/24 via 198.18.0.1 proto bgp metric 20",
		// C11
		"route add blackhole 198.51.105.0/24 proto bgp metric 20",
		"route add 198.51.105.0/24 via 192.0.2.1 proto bgp metric 30",
		"route add unreachable 198.51.106.0/24 proto bgp",
		// Of other protocols, tables and services.
		"route add 198.51.107.0/24 via 192.0.2.1 proto static",
		"route add 198.51.108.0/24 via 192.0.2.1 proto bgp table 77",
		"route add 198.51.109.0/24 tos 0x10 via 192.0.2.1 proto bgp",
		// G12 and what is the node's own.
		"route add 10.128.0.0/14 via 192.0.2.1 proto bgp",
		"route add 10.129.4.0/24 via 192.0.2.1 proto bgp",
		"route add 10.0.0.0/8 via 192.0.2.1 proto bgp",
		"route add 192.0.2.0/24 via 192.0.2.1 proto bgp metric 20",
		"route add 192.0.2.5/32 via 192.0.2.1 proto bgp metric 20",
		"route add 192.0.2.128/25 via 192.0.2.1 proto bgp metric 20",
		// On the link, and behind an IPv6 router.
		"route add 198.51.110.0/24 dev ext0 proto bgp",
		"route add 198.51.111.0/24 via inet6 2001:db8::1 dev ext0 proto bgp",
		"route add 198.51.112.0/24 via 169.254.0.1 dev ext0 onlink proto bgp",
		// G11
		"-6 route add 2001:db8:5::/64 via fe80::200:5eff:fe00:5301 dev ext0 proto bgp metric 20",
		"-6 route add 2001:db8:6::/64 via 2001:db8::1 proto bgp metric 20",
		"-6 route add 2001:db8:7::/64 proto bgp nexthop via 2001:db8::1 nexthop via 2001:db8::2 nexthop via fe80::7 dev ext0",
		"-6 route add default via fe80::1 dev ext0 proto bgp metric 20",
		"-6 route add 2001:db8:aaaa:1::/64 via 2001:db8::1 proto bgp metric 20",
	)
	want := []string{
		"0.0.0.0/0 192.0.2.9", "10.0.0.0/8 192.0.2.1", "192.0.2.128/25 192.0.2.1", "198.51.100.0/24 192.0.2.1",
		"198.51.101.0/24 192.0.2.1", "198.51.101.0/24 192.0.2.2", "198.51.102.0/24 192.0.2.1", "198.51.103.0/24 192.0.2.3",
		"::/0 fe80::1", "2001:db8:5::/64 fe80::200:5eff:fe00:5301", "2001:db8:6::/64 2001:db8::1",
		"2001:db8:7::/64 2001:db8::1", "2001:db8:7::/64 2001:db8::2", "2001:db8:7::/64 fe80::7",
	}
	w.awaitRoutes("all", want...)
	if got, want := w.Routes("u").Ignored, (Ignored{ViaIPv6: 2, NoGateway: 1, Skipped: 5}); got != want {
		t.Errorf("ignored are %+v, want %+v", got, want)
	}
	if got, want := w.Routes("u").Note(),
		"2 IPv4 routes with IPv6 next hops are not imported: the northbound schema of this OVN knows no such "+
			"routes; 1 route without a next hop is not imported"; got != want {
		t.Errorf("the note is %q, want %q", got, want)
	}
	w.Want("u", Domain{Interface: "ext0", Skip: prefixes("10.128.0.0/14", "2001:db8::/32"), IPv4ViaIPv6: true})
	w.awaitRoutes("other rules", append(append([]string{}, want[:8]...), "198.51.111.0/24 2001:db8::1", "::/0 fe80::1")...)
	w.Want("u", Domain{Interface: "other"})
	w.awaitRoutes("C3: another domain", "198.51.102.0/24 198.18.0.1", "198.51.104.0/24 198.18.0.1")
	w.Forget("u")
	if v := w.Routes("u"); v.Known {
		t.Errorf("of an Uplink that is not wanted something is known: %s", shorten(v))
	}
}

// TestFollowsTheKernel: C4, D3, D10, G7. Each change is seen though the kernel tells of some of them only indirectly.
func TestFollowsTheKernel(t *testing.T) {
	for _, compat := range []string{"1", "0"} {
		t.Run("nexthop_compat_mode="+compat, func(t *testing.T) {
			ns := newLink(t)
			setSysctl(t, ns, "net/ipv4/nexthop_compat_mode", compat)
			if err := ns.TryIP("nexthop add id 1 via 192.0.2.1 dev ext0"); err != nil {
				t.Skipf("this kernel has no next-hop objects, test/vm runs it on one that has: %v", err)
			}
			ns.IP("nexthop add id 2 via 192.0.2.2 dev ext0", "nexthop add id 3 via 198.18.0.1 dev other",
				"nexthop add id 10 group 1/2/3",
				"nexthop add id 4 via fe80::1 dev ext0", "nexthop add id 5 blackhole")
			w := start(t, Config{Namespace: &ns.Handle, Grace: time.Second, Debounce: 50 * time.Millisecond})
			w.Want("u", Domain{Interface: "ext0", IPv4ViaIPv6: true})
			ns.IP("route add 203.0.113.0/24 nhid 1 proto bgp metric 20",
				"route add 198.51.100.0/24 nhid 10 proto bgp metric 20",
				"-6 route add 2001:db8:5::/64 nhid 4 proto bgp metric 20",
				"route add 198.51.101.0/24 nhid 4 proto bgp metric 20",
				"route add 198.51.102.0/24 nhid 5 proto bgp metric 20")
			six := "2001:db8:5::/64 fe80::1"
			w.awaitRoutes("next-hop objects", "198.51.100.0/24 192.0.2.1", "198.51.100.0/24 192.0.2.2",
				"198.51.101.0/24 fe80::1", "203.0.113.0/24 192.0.2.1", six)
			ns.IP("route del 198.51.101.0/24")
			w.awaitRoutes("a route that was withdrawn", "198.51.100.0/24 192.0.2.1", "198.51.100.0/24 192.0.2.2",
				"203.0.113.0/24 192.0.2.1", six)
			ns.IP("nexthop replace id 1 via 192.0.2.9 dev ext0")
			w.awaitRoutes("another next hop", "198.51.100.0/24 192.0.2.2", "198.51.100.0/24 192.0.2.9",
				"203.0.113.0/24 192.0.2.9", six)
			ns.IP("nexthop replace id 10 group 1/3")
			w.awaitRoutes("a group with less", "198.51.100.0/24 192.0.2.9", "203.0.113.0/24 192.0.2.9", six)
			ns.IP("nexthop del id 1")
			w.awaitRoutes("routes that went with their next hop", six)
			ns.IP("route add 203.0.113.0/24 via 192.0.2.1 proto bgp metric 20")
			w.awaitRoutes("a plain route", "203.0.113.0/24 192.0.2.1", six)
			ns.IP("route replace 203.0.113.0/24 via 192.0.2.3 proto bgp metric 20")
			w.awaitRoutes("one that was replaced", "203.0.113.0/24 192.0.2.3", six)
			ns.IP("route replace 203.0.113.0/24 via 192.0.2.3 proto static metric 20")
			w.awaitRoutes("one that was replaced by somebody else's", six)
			ns.IP("route add 203.0.113.0/24 via 192.0.2.1 proto bgp metric 10",
				"route add 203.0.114.0/24 via 192.0.2.1 proto bgp")
			w.awaitRoutes("D10: another metric", "203.0.113.0/24 192.0.2.1", "203.0.114.0/24 192.0.2.1", six)
			ns.IP("addr del 192.0.2.5/24 dev ext0")
			w.awaitRoutes("IPv4 routes that went with the last address", six)
			ns.IP("link set ext0 down")
			w.await("D3: the last one, kept", func(v View) bool { return len(v.Routes) == 1 && !v.Kept.IsZero() })
			w.awaitRoutes("after the grace")
		})
	}
}

// TestLinkGoneForAMoment: the interface is removed and made again, with another index, an alternative name this time.
func TestLinkGoneForAMoment(t *testing.T) {
	ns := newLink(t)
	w := start(t, Config{Namespace: &ns.Handle, Grace: 5 * time.Second})
	w.Want("u", Domain{Interface: "ext0"})
	ns.IP("route add 203.0.113.0/24 via 192.0.2.1 proto bgp")
	const route = "203.0.113.0/24 192.0.2.1"
	w.awaitRoutes("a route", route)
	ns.IP("link del ext0")
	w.await("that there is no link",
		func(v View) bool { return v.Absent == "there is no network interface ext0" && !v.Kept.IsZero() })
	w.stays("without the link", 500*time.Millisecond, route)
	ns.IP("link add x0 type veth peer name peer", "link property add dev x0 altname ext0", "link set peer up",
		"link set x0 up",
		"addr add 192.0.2.5/24 dev x0")
	w.await("the link", func(v View) bool { return v.Absent == "" })
	w.stays("with the link and without routes", 500*time.Millisecond, route)
	ns.IP("route add 203.0.113.0/24 via 192.0.2.1 proto bgp")
	w.await("the route again", func(v View) bool { return v.Kept.IsZero() && len(v.Routes) == 1 })
	ns.IP("link del x0")
	w.stays("without the link once more", 2*time.Second, route)
	w.awaitRoutes("after the grace")
}

// TestGraceAfterEmptying is G6: a flushed table, refilled piece by piece.
func TestGraceAfterEmptying(t *testing.T) {
	ns := newLink(t)
	w := start(t, Config{Namespace: &ns.Handle, Grace: 5 * time.Second})
	w.Want("u", Domain{Interface: "ext0"})
	all := []string{"203.0.113.0/24 192.0.2.1", "203.0.114.0/24 192.0.2.1", "203.0.115.0/24 192.0.2.1"}
	ns.IP("route add 203.0.113.0/24 via 192.0.2.1 proto bgp", "route add 203.0.114.0/24 via 192.0.2.1 proto bgp",
		"route add 203.0.115.0/24 via 192.0.2.1 proto bgp")
	w.awaitRoutes("all", all...)
	ns.IP("route flush proto bgp")
	w.stays("flushed", time.Second, all...)
	ns.IP("route add 203.0.113.0/24 via 192.0.2.1 proto bgp")
	w.stays("one is back", time.Second, all...)
	ns.IP("route add 203.0.114.0/24 via 192.0.2.7 proto bgp")
	w.awaitRoutes("one is back with another next hop", all[0], "203.0.114.0/24 192.0.2.7", all[2])
	w.awaitRoutes("after the grace", all[0], "203.0.114.0/24 192.0.2.7")
	ns.IP("route del 203.0.114.0/24")
	if took := w.awaitRoutes("a withdrawal after it", all[0]); took > time.Second {
		t.Errorf("a withdrawal was followed after %s", took)
	}
}

// TestAfterRestart: nothing is known before the first read, and what an earlier process imported stays for the grace
// time.
func TestAfterRestart(t *testing.T) {
	ns := newLink(t)
	ns.IP("route add 203.0.113.0/24 via 192.0.2.1 proto bgp")
	previous := []Route{{prefix("203.0.113.0/24"), prefix("192.0.2.9/32").Addr()}, {prefix("203.0.114.0/24"),
		prefix("192.0.2.1/32").Addr()}, {prefix("10.1.0.0/16"), prefix("192.0.2.1/32").Addr()}}
	i := New(Config{})
	i.Want("u", Domain{Interface: "ext0", Previous: previous})
	if v := i.Routes("u"); v.Known || len(v.Routes) > 0 {
		t.Errorf("before the first read there is %s", shorten(v))
	}
	w := start(t, Config{Namespace: &ns.Handle, Grace: 2 * time.Second})
	w.Want("u", Domain{Interface: "ext0", Previous: previous, Skip: prefixes("10.0.0.0/8")})
	w.awaitRoutes("the first read", "203.0.113.0/24 192.0.2.1", "203.0.114.0/24 192.0.2.1")
	w.stays("in the grace", time.Second, "203.0.113.0/24 192.0.2.1", "203.0.114.0/24 192.0.2.1")
	w.awaitRoutes("after the grace", "203.0.113.0/24 192.0.2.1")
}

// many makes n commands, of n different prefixes.
func many(n int, format string) []string {
	commands := make([]string, n)
	for i := range commands {
		commands[i] = fmt.Sprintf(format, 10+i/65536, i/256%256, i%256)
	}
	return commands
}

// TestOverflow is D1: events are lost when the buffer is full, and everything is read anew.
func TestOverflow(t *testing.T) {
	ns := newLink(t)
	w := start(t, Config{Namespace: &ns.Handle, Debounce: 20 * time.Millisecond, Grace: 500 * time.Millisecond},
		func(i *Importer) {
			i.subscribe = func(j *journal) (*rtevents.Subscription, error) { return subscribe(&ns.Handle, 1, j) }
		})
	w.Want("u", Domain{Interface: "ext0"})
	// A reader that is quick may keep up once, but not every time.
	for n := 0; n < 10 && len(w.causes) == 0; n++ {
		ns.IPBatch(many(2000, "route add %d.%d.%d.0/24 via 192.0.2.1 proto bgp")...)
		w.await("all routes", func(v View) bool { return len(v.Routes) == 2000 })
		ns.IPBatch(many(1999, "route del %d.%d.%d.0/24 via 192.0.2.1 proto bgp")...)
		w.await("the last route", func(v View) bool { return len(v.Routes) == 1 })
		ns.IP("route flush proto bgp")
	}
	select {
	case err := <-w.causes:
		if !errors.Is(err, unix.ENOBUFS) {
			t.Errorf("the subscription was lost by %v", err)
		}
	default:
		t.Fatal("tens of thousands of events did not overflow the smallest buffer")
	}
}

// TestOthersRoutesCostNothing: a daemon that loads a full table elsewhere causes no reads of this one.
func TestOthersRoutesCostNothing(t *testing.T) {
	ns := newLink(t)
	w := start(t, Config{Namespace: &ns.Handle})
	w.Want("u", Domain{Interface: "ext0"})
	w.awaitRoutes("nothing")
	ns.IP("route add 203.0.113.0/24 via 192.0.2.1 proto bgp")
	w.awaitRoutes("one", "203.0.113.0/24 192.0.2.1")
	before := len(w.reads)
	ns.IPBatch(many(5000, "route add %d.%d.%d.0/24 via 192.0.2.1 proto bgp table 77")...)
	ns.IPBatch(many(5000, "route add %d.%d.%d.0/24 via 192.0.2.1 proto static")...)
	ns.IP("route add 203.0.114.0/24 via 192.0.2.1 proto bgp")
	w.awaitRoutes("another", "203.0.113.0/24 192.0.2.1", "203.0.114.0/24 192.0.2.1")
	if n := len(w.reads) - before; n > 2 {
		t.Errorf("%d reads for 10000 routes that are not asked for", n)
	}
}
