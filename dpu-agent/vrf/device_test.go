// SPDX-License-Identifier: Apache-2.0

package vrf

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
)

var red = VRF{Name: "red", Network: "cluster_udn_red"}

func attach(t *testing.T, a *Attacher, iface string, to VRF) {
	t.Helper()
	if err := a.Attach(t.Context(), iface, to); err != nil {
		t.Fatal(err)
	}
}

func detach(t *testing.T, a *Attacher, iface string) {
	t.Helper()
	if err := a.Detach(t.Context(), iface); err != nil {
		t.Fatal(err)
	}
}

func exists(t *testing.T, name string) bool {
	t.Helper()
	_, err := openAndFind(name)
	return err == nil
}

// TestKernelAdoptsVRF: a VRF that is there is used with its table, whichever that is, and is never removed.
func TestKernelAdoptsVRF(t *testing.T) {
	newLink(t, few...)
	ip(t, "link add blue type vrf table 1007", "route add 10.99.0.0/16 via 10.66.0.1 dev other table 1007 onlink")
	before := settled(t, snapshot)
	routes := mainRoutes(t, "table main")
	a := newAttacher(t)
	attach(t, a, "u0", blue)
	if d := diff(routes, mainRoutes(t, "table 1007")); d != "" {
		t.Error(d)
	}
	if last := show(t, "route show table 1007 type unreachable"); strings.Contains(strings.Join(last, ""), "unreachable") {
		t.Errorf("a VRF of somebody else's got a route of ours: %q", last)
	}
	detach(t, a, "u0")
	wantAsBefore(t, "after detaching", before, snapshot)
	if !exists(t, "blue") {
		t.Error("a VRF of somebody else's was removed")
	}
}

// TestKernelVRFOfTwo: a VRF that was made goes with the last interface; an interface goes from one to the other.
func TestKernelVRFOfTwo(t *testing.T) {
	newLink(t, few...)
	ip(t, "link add red type vrf table 555", "link del red")
	before, routes := settled(t, snapshot), mainRoutes(t, "table main")
	a := newAttacher(t)
	attach(t, a, "u0", blue)
	attach(t, a, "other", blue)
	device, err := openAndFind("blue")
	if err != nil || device.table != 500 || device.alias != "ovn-uplink:cluster_udn_blue" || !device.up {
		t.Errorf("the VRF is %+v, %v", device, err)
	}
	attach(t, a, "u0", red)
	if device, err := openAndFind("red"); err != nil || device.table != 501 {
		t.Errorf("the other VRF is %+v, %v", device, err)
	}
	if d := diff(routes, mainRoutes(t, "vrf red")); d != "" {
		t.Error(d)
	}
	detach(t, a, "other")
	if exists(t, "blue") {
		t.Error("an empty VRF was left")
	}
	detach(t, a, "u0")
	wantAsBefore(t, "after detaching", before, snapshot)
}

// TestKernelSysctls: D15. Strict source checks are made loose where they are on, and all returns.
func TestKernelSysctls(t *testing.T) {
	newLink(t, few...)
	const ofLink, keep = "/proc/sys/net/ipv4/conf/u0/rp_filter", "/proc/sys/net/ipv6/conf/u0/keep_addr_on_down"
	for _, c := range []struct{ name, before, inside string }{{"strict", "1", "2"}, {"off", "0", "0"}, {"loose", "2", "2"}} {
		t.Run(c.name, func(t *testing.T) {
			if err := os.WriteFile(ofLink, []byte(c.before), 0); err != nil {
				t.Fatal(err)
			}
			a := newAttacher(t)
			attach(t, a, "u0", blue)
			if got, want := readAll(t, ofLink, keep), []string{c.inside, "1"}; !slices.Equal(got, want) {
				t.Errorf("while attached: %q, want %q", got, want)
			}
			detach(t, a, "u0")
			if got, want := readAll(t, ofLink, keep), []string{c.before, "0"}; !slices.Equal(got, want) {
				t.Errorf("afterwards: %q, want %q", got, want)
			}
		})
	}
}

func readAll(t *testing.T, paths ...string) []string {
	t.Helper()
	var values []string
	for _, path := range paths {
		v, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		values = append(values, strings.TrimSpace(string(v)))
	}
	return values
}

// TestKernelRouteThatCannotReturn: one whose place was taken meanwhile is kept, reported, and returns when it can.
func TestKernelRouteThatCannotReturn(t *testing.T) {
	newLink(t, few...)
	ip(t, "link add red type vrf table 555", "link del red")
	before := settled(t, snapshot)
	a := newAttacher(t)
	attach(t, a, "u0", blue)
	ip(t, "route add default via 10.66.0.1")
	wantProblem(t, a.Detach(t.Context(), "u0"), uplinkstate.ReasonUplinkVRFAttachmentFailed, "default", "table 254", "another interface")
	if l, err := openAndFind("u0"); err != nil || l.master != 0 {
		t.Errorf("the interface is %+v, %v; want it out of the VRF", l, err)
	}
	if got := show(t, "route show default"); len(got) != 1 || !strings.Contains(got[0], "10.66.0.1") {
		t.Errorf("defaults are %q, want the other interface's alone", got)
	}
	// It goes along when the interface is attached again in between.
	attach(t, a, "u0", red)
	if got := show(t, "route show vrf red default"); len(got) != 2 || !strings.Contains(strings.Join(got, ""), "192.0.2.1") {
		t.Errorf("defaults in the VRF are %q", got)
	}
	wantProblem(t, a.Detach(t.Context(), "u0"), uplinkstate.ReasonUplinkVRFAttachmentFailed, "default")
	ip(t, "route del default via 10.66.0.1")
	if err := a.Resume(t.Context()); err != nil {
		t.Error(err)
	}
	wantAsBefore(t, "after the obstacle went", before, snapshot)
}

// TestKernelOwnersRoutes: routing daemons, router advertisements and next-hop objects keep their routes; C9, C13, G7.
func TestKernelOwnersRoutes(t *testing.T) {
	newLink(t, few...)
	ip(t, "route add 203.0.113.0/24 via 192.0.2.1 proto bgp", "route add 203.0.114.0/24 via 192.0.2.1 proto zebra",
		"-6 route add 2001:db8:9::/48 via fe80::1 dev u0 proto ra", "-6 route add 2001:db8:a::/48 via fe80::1 dev u0 expires 600",
		"nexthop add id 7 via 192.0.2.1 dev u0", "route add 203.0.115.0/24 nhid 7", "route add 203.0.116.0/24 via 192.0.2.1 proto 117")
	a := newAttacher(t)
	attach(t, a, "u0", blue)
	for _, of := range []string{"table main", "vrf blue"} {
		for _, r := range mainRoutes(t, of) {
			for _, owned := range []string{"203.0.11", "2001:db8:9", "2001:db8:a"} {
				if strings.Contains(r, owned) {
					t.Errorf("%s has %q", of, r)
				}
			}
		}
	}
	// What its owner adds to the VRF is not brought back by us either.
	ip(t, "route add 203.0.113.0/24 via 192.0.2.1 vrf blue proto bgp")
	detach(t, a, "u0")
	if got := strings.Join(mainRoutes(t, "table main"), "\n"); strings.Contains(got, "203.0.113") {
		t.Errorf("a routing daemon's route was taken along: %s", got)
	}
}

// TestKernelJournalLost: an interface in a VRF that is marked as ours is taken out without a record of it.
func TestKernelJournalLost(t *testing.T) {
	newLink(t, few...)
	ip(t, "link add red type vrf table 555", "link del red")
	before := settled(t, snapshot)
	attach(t, newAttacher(t), "u0", blue)
	a := newAttacher(t)
	attach(t, a, "u0", blue)
	detach(t, newAttacher(t), "u0")
	wantAsBefore(t, "after detaching", before, snapshot)
	if exists(t, "blue") {
		t.Error("the VRF was left")
	}
}
