// SPDX-License-Identifier: Apache-2.0

package routeimport

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/ovn-uplink/ovn-uplink/shared/kernel/kerneltest"
	"github.com/ovn-uplink/ovn-uplink/test/lab/frrtest"
)

// speaker is the configuration of a router with one neighbour.
func speaker(number, neighbour int, vrf string, networks ...string) string {
	text := fmt.Sprintf(`frr defaults datacenter
router bgp 6500%d%s
 bgp router-id 192.0.2.%d
 no bgp ebgp-requires-policy
 no bgp network import-check
 timers bgp 1 3
 neighbor 192.0.2.%d remote-as 6500%d
 neighbor 192.0.2.%d timers connect 1
 neighbor 192.0.2.%d advertisement-interval 0
 address-family ipv4 unicast
`, number, vrf, number, neighbour, neighbour, neighbour, neighbour)
	for _, n := range networks {
		text += "  network " + n + "\n"
	}
	return text
}

// pair is a node and a router next to it, each with an FRR.
type pair struct {
	node, outside   *kerneltest.Namespace
	router, speaker *frrtest.Router
	watch           *watch
}

// newPair makes them and waits until the node has learned the routes, of which there may be more than those of learned.
// vrf is empty or the name of a VRF for the node.
func newPair(t *testing.T, vrf string, grace time.Duration, more ...string) pair {
	t.Helper()
	p := pair{node: kerneltest.NewNamespace(t), outside: kerneltest.NewNamespace(t)}
	in := ""
	if vrf != "" {
		if err := p.node.TryIP("link add " + vrf + " type vrf table 1007"); err != nil {
			t.Skipf("this kernel has no VRF, test/vm runs it on one that has: %v", err)
		}
		p.node.IP("link set " + vrf + " up")
		in = " vrf " + vrf
	}
	p.node.IP("link add ext0 type veth peer name x0", fmt.Sprintf("link set x0 netns /proc/%d/fd/%d", os.Getpid(), p.outside.Handle))
	if vrf != "" {
		p.node.IP("link set ext0 master " + vrf)
	}
	p.node.IP("link set ext0 up", "addr add 192.0.2.1/24 dev ext0")
	p.outside.IP("link set x0 up", "addr add 192.0.2.2/24 dev x0")
	p.watch = start(t, Config{Namespace: &p.node.Handle, Grace: grace})
	p.watch.Want("u", Domain{Interface: "ext0", VRF: vrf})
	p.watch.awaitRoutes("nothing yet")
	more = append(more, "203.0.113.0/24", "203.0.114.0/24", "203.0.115.7/32", "0.0.0.0/0")
	p.speaker = frrtest.Start(t, p.outside.Handle, speaker(2, 1, "", more...))
	p.router = frrtest.Start(t, p.node.Handle, speaker(1, 2, in, "198.51.100.0/24"))
	p.watch.await("the routes", func(v View) bool { return len(v.Routes) == len(more) })
	return p
}

var learned = []string{"0.0.0.0/0 192.0.2.2", "203.0.113.0/24 192.0.2.2", "203.0.114.0/24 192.0.2.2", "203.0.115.7/32 192.0.2.2"}

// TestRoutingDaemon: G6 with the daemons themselves. What a restart takes away stays until it is back.
func TestRoutingDaemon(t *testing.T) { testRoutingDaemon(t, "") }

// TestKernelRoutingDaemonInVRF is the same in a VRF: C3, C9, G8.
func TestKernelRoutingDaemonInVRF(t *testing.T) { testRoutingDaemon(t, "blue") }

func testRoutingDaemon(t *testing.T, vrf string) {
	p := newPair(t, vrf, 15*time.Second)
	withdraw := func(network string, want []string) {
		t.Helper()
		begin := time.Now()
		p.speaker.Tell(frrtest.BGP, "configure terminal", "router bgp 65002", "address-family ipv4 unicast", "no network "+network)
		if took := p.watch.awaitRoutes("a withdrawal", want...); took > time.Second {
			t.Errorf("a withdrawal was followed %s after it was told", took)
		}
		t.Logf("withdrawn and followed in %s", time.Since(begin).Round(time.Millisecond))
	}
	again := func(v View) bool { return v.Kept.IsZero() }
	gone := func(v View) bool { return !v.Kept.IsZero() }

	withdraw("203.0.114.0/24", []string{learned[0], learned[1], learned[3]})
	left := []string{learned[0], learned[1], learned[3]}

	p.router.Kill(frrtest.BGP)
	p.watch.await("that zebra took the routes back", gone)
	p.watch.stays("bgpd is dead", 2*time.Second, left...)
	p.router.Run(frrtest.BGP)
	p.watch.stays("bgpd is new", 500*time.Millisecond, left...)
	p.watch.await("the routes again", again)
	p.watch.stays("bgpd has learned", time.Second, left...)
	withdraw("203.0.113.0/24", []string{left[0], left[2]})
	left = []string{left[0], left[2]}

	p.outside.IP("link set x0 down")
	p.watch.await("that the peer flapped", gone)
	p.watch.stays("the peer is away", time.Second, left...)
	p.outside.IP("link set x0 up")
	p.watch.await("the routes again", again)
	p.watch.stays("the peer is back", 500*time.Millisecond, left...)

	p.router.Kill(frrtest.BGP)
	p.router.Kill(frrtest.Zebra)
	p.router.Run(frrtest.Zebra)
	p.router.Run(frrtest.BGP)
	p.watch.stays("all of FRR was killed", time.Second, left...)
	p.watch.await("the routes again", again)

	p.router.Stop(frrtest.BGP)
	p.watch.await("that zebra took the routes back", gone)
	p.watch.stays("bgpd has ended", 4*time.Second, left...)
	p.watch.awaitRoutes("nothing any more")
	if got := texts(p.watch.Routes("u").Routes); !slices.Equal(got, nil) {
		t.Errorf("routes are %q", got)
	}
}

// TestRoutingDaemonWithManyRoutes: zebra takes thousands of routes back one by one, and brings them one by one.
func TestRoutingDaemonWithManyRoutes(t *testing.T) {
	p := newPair(t, "", defaultGrace, many(5000, "%d.%d.%d.0/24")...)
	all := texts(p.watch.Routes("u").Routes)
	p.router.Kill(frrtest.BGP)
	p.watch.await("that zebra took the routes back", func(v View) bool { return !v.Kept.IsZero() })
	p.watch.stays("bgpd is dead", time.Second, all...)
	p.router.Run(frrtest.BGP)
	p.watch.await("the routes again", func(v View) bool { return v.Kept.IsZero() })
	p.watch.stays("bgpd has learned", time.Second, all...)
	t.Logf("%d reads", len(p.watch.reads))
	begin := time.Now()
	p.speaker.Tell(frrtest.BGP, "configure terminal", "router bgp 65002", "address-family ipv4 unicast", "no network "+learned[0][:9])
	p.watch.awaitRoutes("a withdrawal", all[1:]...)
	t.Logf("withdrawn and followed in %s", time.Since(begin).Round(time.Millisecond))
}
