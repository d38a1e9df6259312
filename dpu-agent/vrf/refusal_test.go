// SPDX-License-Identifier: Apache-2.0

package vrf

import (
	"errors"
	"strings"
	"testing"

	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
)

// few are an address of each family and a route of each kind, for tests that are about something else.
var few = []string{
	"addr add 192.0.2.5/24 dev u0", "-6 addr add 2001:db8:1::5/64 dev u0 nodad",
	"-6 addr add 2001:db8:3::5/64 dev u0 nodad valid_lft 3600 preferred_lft 1800",
	"route add default via 192.0.2.1", "route add 198.51.100.0/24 via 192.0.2.1", "-6 route add default via 2001:db8:1::1",
}

// wantProblem checks the reason of an error, and that its message has all the given parts.
func wantProblem(t *testing.T, err error, reason string, parts ...string) {
	t.Helper()
	var p *uplinkstate.Problem
	if !errors.As(err, &p) || p.Reason != reason {
		t.Fatalf("error %v, want %s", err, reason)
	}
	for _, part := range parts {
		if !strings.Contains(p.Message, part) {
			t.Errorf("message lacks %q: %s", part, p.Message)
		}
	}
}

// TestKernelRefusals: what cannot be done is said, and nothing is changed.
func TestKernelRefusals(t *testing.T) {
	const failed, conflict = uplinkstate.ReasonUplinkVRFAttachmentFailed, uplinkstate.ReasonUplinkConfigurationConflict
	for _, c := range []struct {
		name     string
		commands []string
		tables   TableRange
		iface    string
		reason   string
		message  []string
	}{
		{"no such interface", nil, TableRange{}, "u7", failed, []string{"u7", "does not exist"}},
		{"another kind of link has the name", []string{"link add blue type bridge"}, TableRange{}, "u0", failed, []string{"blue", "bridge"}},
		{"D13: in a bridge", []string{"link add br9 type bridge", "link set u0 master br9"}, TableRange{}, "u0", conflict, []string{"br9", "bridge", "u0"}},
		{"D13: in somebody's VRF", []string{"link add red type vrf table 1008", "link set red up", "link set u0 master red"}, TableRange{},
			"u0", conflict, []string{"red", "vrf", "u0"}},
		{"the VRF is another network's", []string{"link add blue type vrf table 1007", "link set blue alias ovn-uplink:green"}, TableRange{},
			"u0", conflict, []string{"green", "cluster_udn_blue"}},
		{"no free table", []string{"route add blackhole 198.51.100.9/32 table 500", "rule add from 192.0.2.5 lookup 501",
			"link add red type vrf table 502"}, TableRange{500, 502}, "u0", failed, []string{"500 to 502"}},
		{"C8: the VRF has a route of that place", []string{"link add blue type vrf table 1007", "link set blue up", "link set other master blue",
			"route add default via 10.66.0.1 vrf blue"}, TableRange{}, "u0", failed, []string{"default", "another interface", "as it was before"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			newLink(t, append(few, c.commands...)...)
			before := settled(t, snapshot)
			a := newAttacher(t)
			a.cfg.Tables = TableRange{500, 899}
			if c.tables.First != 0 {
				a.cfg.Tables = c.tables
			}
			wantProblem(t, a.Attach(t.Context(), c.iface, blue), c.reason, c.message...)
			wantAsBefore(t, "afterwards", before, snapshot)
			if names, err := a.journal.interfaces(); err != nil || len(names) > 0 {
				t.Errorf("the journal has %q, %v", names, err)
			}
			if err := a.Detach(t.Context(), c.iface); err != nil {
				t.Errorf("detach what was not attached: %v", err)
			}
			wantAsBefore(t, "after detaching", before, snapshot)
		})
	}
}
