// SPDX-License-Identifier: Apache-2.0

package vrf

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// everything is what an administrator and his network manager may have given an interface.
var everything = []string{
	"addr add 192.0.2.5/24 dev u0",
	"addr add 192.0.2.6/24 dev u0 label u0:vip",
	"addr add 203.0.113.9/32 dev u0 preferred_lft 0",
	"addr add 198.18.5.1/24 dev u0 noprefixroute",
	"route add 198.18.5.0/24 dev u0 proto kernel scope link src 198.18.5.1 metric 100",
	"addr add 10.9.0.1 peer 10.9.0.2/32 dev u0",
	"addr add 10.8.0.1/24 dev u0 metric 77",
	"addr add 10.7.0.1/24 dev u0 valid_lft 3600 preferred_lft 1800",
	"-6 addr add 2001:db8:1::5/64 dev u0 nodad",
	"-6 addr add 2001:db8:2::5/64 dev u0 nodad noprefixroute",
	"-6 route add 2001:db8:2::/64 dev u0 proto kernel metric 100",
	"-6 addr add 2001:db8:3::5/64 dev u0 nodad valid_lft 3600 preferred_lft 1800",
	"-6 addr add 2001:db8:4::5/64 dev u0",

	"route add default via 192.0.2.1",
	"route add default via 192.0.2.2 metric 200 proto dhcp src 192.0.2.5",
	"route append default via 192.0.2.3 metric 200 proto dhcp src 192.0.2.5",
	"route add 203.0.113.77/32 via 192.0.2.1",
	"route add 198.51.100.0/24 via 192.0.2.1 mtu lock 1400 initcwnd 20",
	"route add 198.51.101.0/24 nexthop via 192.0.2.1 weight 3 nexthop via 192.0.2.2",
	"route add 198.51.102.0/24 via 10.200.0.1 dev u0 onlink proto static",
	"route add 198.51.103.0/24 dev u0 scope link metric 50",
	"route add 198.51.104.0/24 tos 0x10 via 192.0.2.1",
	"route add 198.51.105.0/24 via inet6 2001:db8:1::1 dev u0",
	"route add 198.51.106.0/24 nexthop via 192.0.2.1 dev u0 nexthop via 10.66.0.1 dev other",
	"route add local 198.51.107.0/24 dev u0",
	"route add default via 192.0.2.1 table 100",
	"rule add from 192.0.2.5 lookup 100",

	"-6 route add default via 2001:db8:1::1",
	"-6 route add default via fe80::1 dev u0 metric 2048 proto static pref high",
	"-6 route add 2001:db8:100::/48 via 2001:db8:1::1 mtu 1300",
	"-6 route add 2001:db8:101::/48 nexthop via 2001:db8:1::1 weight 2 nexthop via 2001:db8:1::2",
	"-6 route add 2001:db8:102::1/128 via 2001:db8:1::1",
	"-6 route add 2001:db8:103::/48 via 2001:db8:4::1 dev u0 metric 30",
	"-6 route add 2001:db8:104::/48 dev u0",
}

// TestKernelNothingIsLost: C8, C19, C20, C21, G1. What goes with an interface is in the VRF's table once it is attached,
// and all is as it was once it is detached.
func TestKernelNothingIsLost(t *testing.T) {
	newLink(t)
	// Here addresses are checked for duplicates, so that some of them are tentative for a while.
	if err := os.WriteFile("/proc/sys/net/ipv6/conf/u0/accept_dad", []byte("1"), 0); err != nil {
		t.Fatal(err)
	}
	ip(t, everything...)
	// The kernel's rule for VRFs comes with the first of them and stays.
	ip(t, "link add blue type vrf table 555", "link del blue")
	before := settled(t, shown)
	routes := mainRoutes(t, "table main")
	if len(routes) < 20 {
		t.Fatalf("the test has only %q to lose", routes)
	}
	a := newAttacher(t)
	ctx := t.Context()
	begin := time.Now()
	if err := a.Attach(ctx, "u0", blue); err != nil {
		t.Fatal(err)
	}
	t.Logf("attached in %s", time.Since(begin).Round(time.Millisecond))
	if d := diff(routes, mainRoutes(t, "vrf blue")); d != "" {
		t.Error(d)
	}
	if left := mainRoutes(t, "table main"); len(left) > 0 {
		t.Errorf("left in table main: %q", left)
	}
	if policy := show(t, "route show table 100"); len(policy) != 1 || !strings.Contains(policy[0], "default via 192.0.2.1") {
		t.Errorf("the route of another table is %q", policy)
	}
	for _, family := range []string{"", "-6 "} {
		if last := strings.Join(show(t, family+"route show vrf blue type unreachable"), "\n"); !strings.Contains(last, "metric 4278198272") {
			t.Errorf("D14: the VRF's table ends with %q, want an unreachable default", last)
		}
	}
	attached := settled(t, shown)
	for _, line := range before {
		if (strings.HasPrefix(line, " 1") || strings.HasPrefix(line, "6 2001") || strings.Contains(line, "lookup")) && !slices.Contains(attached, line) {
			t.Errorf("gone: %s", line)
		}
	}
	if err := a.Attach(ctx, "u0", blue); err != nil {
		t.Errorf("once more: %v", err)
	}
	wantAsBefore(t, "after attaching once more", attached, shown)

	begin = time.Now()
	if err := a.Detach(ctx, "u0"); err != nil {
		t.Fatal(err)
	}
	t.Logf("detached in %s", time.Since(begin).Round(time.Millisecond))
	wantAsBefore(t, "after detaching", before, shown)
	if names, err := a.journal.interfaces(); err != nil || len(names) > 0 {
		t.Errorf("the journal still has %q, %v", names, err)
	}
	if _, err := openAndFind("blue"); err == nil {
		t.Error("the VRF that was made for it is still there")
	}
	if err := a.Detach(ctx, "u0"); err != nil {
		t.Errorf("detach once more: %v", err)
	}
}

// openAndFind looks for a link.
func openAndFind(name string) (link, error) {
	r, err := openRtnetlink()
	if err != nil {
		return link{}, err
	}
	defer r.close()
	v, err := r.observe()
	if err != nil {
		return link{}, err
	}
	if l, ok := v.byName(name); ok {
		return l, nil
	}
	return link{}, context.Canceled
}
