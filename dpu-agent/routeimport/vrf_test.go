// SPDX-License-Identifier: Apache-2.0

package routeimport

import (
	"testing"
	"time"
)

// TestKernelDomainMovesToVRF: C3, G2, G8, G10. The table is that of the VRF with the name, whatever else there is.
func TestKernelDomainMovesToVRF(t *testing.T) {
	ns := newLink(t)
	if err := ns.TryIP("link add red type vrf table 1008"); err != nil {
		t.Skipf("this kernel has no VRF, test/vm runs it on one that has: %v", err)
	}
	w := start(t, Config{Namespace: &ns.Handle, Grace: 5 * time.Second})
	w.Want("u", Domain{Interface: "ext0"})
	ns.IP("route add 203.0.113.0/24 via 192.0.2.1 proto bgp metric 20")
	w.awaitRoutes("in table main", "203.0.113.0/24 192.0.2.1")

	w.Want("u", Domain{Interface: "ext0", VRF: "blue"})
	if v := w.Routes("u"); !v.Known || len(v.Routes) > 0 {
		t.Errorf("at once after the switch there is %s", shorten(v))
	}
	w.await("that there is no VRF", func(v View) bool { return v.Absent == "there is no VRF blue" })
	ns.IP("link add blue type dummy")
	w.stays("a link of that name that is no VRF", 300*time.Millisecond)
	ns.IP("link del blue", "link add blue type vrf table 1007", "link set blue up", "link set ext0 master blue")
	w.await("the VRF", func(v View) bool { return v.Absent == "" })
	// C11, D14: as VRFs end.
	ns.IP("route add unreachable default metric 4278198272 vrf blue", "-6 route add unreachable default metric 4278198272 vrf blue",
		"route add 203.0.114.0/24 via 192.0.2.1 proto bgp metric 20 vrf blue", "route add default via 192.0.2.1 proto bgp metric 20 vrf blue",
		"route add 192.0.2.0/24 via 192.0.2.1 proto bgp metric 20 vrf blue", "route add 198.18.0.0/24 via 192.0.2.1 proto bgp vrf blue")
	all := []string{"0.0.0.0/0 192.0.2.1", "198.18.0.0/24 192.0.2.1", "203.0.114.0/24 192.0.2.1"}
	w.awaitRoutes("in the VRF, the prefix of a link outside of it too", all...)

	// The VRF is removed and made again with another table.
	ns.IP("link del blue")
	w.await("that there is no VRF", func(v View) bool { return v.Absent != "" && !v.Kept.IsZero() })
	w.stays("without the VRF", 500*time.Millisecond, all...)
	ns.IP("link add blue type vrf table 1009", "link set blue up", "link set ext0 master blue",
		"route add 203.0.114.0/24 via 192.0.2.1 proto bgp metric 20 vrf blue", "route add default via 192.0.2.1 proto bgp metric 20 vrf blue")
	w.stays("with less in it", time.Second, all...)
	w.awaitRoutes("after the grace", all[0], all[2])

	// The interface moves to another VRF: its routes in this one are gone.
	ns.IP("link set ext0 master red")
	w.stays("the interface has moved", time.Second, all[0], all[2])
	w.awaitRoutes("after the grace")
	w.Want("u", Domain{Interface: "ext0", VRF: "red"})
	ns.IP("route add 203.0.115.0/24 via 192.0.2.1 proto bgp metric 20 vrf red")
	w.awaitRoutes("in the other VRF", "203.0.115.0/24 192.0.2.1")
	w.Want("u", Domain{Interface: "ext0"})
	if v := w.Routes("u"); !v.Known || len(v.Routes) > 0 {
		t.Errorf("at once after the switch back there is %s", shorten(v))
	}
}
