// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
)

func TestFindUplink(t *testing.T) {
	tests := map[string]struct {
		view  *View  // looked at is br-blue, or br-ovn if there is one
		want  string // bridge/port
		ports []int
		exits []int // where they are not ports
		via   []string
	}{
		"B1, Z2.1: the empty type is system": {
			view: view(br("br-blue", port("p0", ""))),
			want: "br-blue/p0", ports: []int{10},
		},
		"B2, Z2.4: dpdk counts": {
			view: view(br("br-blue", port("p0", "dpdk"), port("pf0hpf", "dpdk"))),
			want: "br-blue/p0", ports: []int{10},
		},
		"B2: a card that DPDK took from the kernel": {
			view: view(br("br-blue", port("absent0", "dpdk"), port("pf0hpf", "dpdk"))),
			want: "br-blue/absent0", ports: []int{10},
		},
		"B2: afxdp counts": {
			view: view(br("br-blue", port("eth1", "afxdp"))),
			want: "br-blue/eth1", ports: []int{10},
		},
		"B3, Z2.5: behind a patch port": {
			view: view(br("br-ovn", port("pf0hpf", "dpdk"), patch("puplinkbrovn", "pbrsfc")),
				br("br-sfc", port("p0", "dpdk"), patch("pbrsfc", "puplinkbrovn"))),
			want: "br-sfc/p0", ports: []int{10}, exits: []int{20}, via: []string{"br-ovn/puplinkbrovn"},
		},
		"B3: behind two patch ports": {
			view: view(br("br-ovn", patch("a1", "a2")),
				br("br-mid", patch("a2", "a1"), patch("b1", "b2")),
				br("br-sfc", port("p0", ""), patch("b2", "b1"))),
			want: "br-sfc/p0", ports: []int{10}, exits: []int{10}, via: []string{"br-ovn/a1", "br-mid/b1"},
		},
		"B3: a loop of patch ports ends": {
			view: view(br("br-ovn", patch("a1", "a2"), patch("c2", "c1")),
				br("br-mid", patch("a2", "a1"), patch("b1", "b2")),
				br("br-sfc", patch("b2", "b1"), patch("c1", "c2"), port("p0", ""))),
			want: "br-sfc/p0", ports: []int{30}, exits: []int{20}, via: []string{"br-ovn/c2"},
		},
		"B3: never through the integration bridge": {
			view: view(br("br-ovn", patch("to-int", "from-ovn"), patch("a1", "a2")),
				br("br-int", patch("from-ovn", "to-int"), patch("to-ex", "from-int")),
				br("br-eth0", patch("from-int", "to-ex"), port("eth0", "")),
				br("br-sfc", port("p0", ""), patch("a2", "a1"))),
			want: "br-sfc/p0", ports: []int{10}, exits: []int{20}, via: []string{"br-ovn/a1"},
		},
		"B3: bridge-uplink names the patch port": {
			view: view(hinted(br("br-ovn", patch("a1", "a2"), patch("b1", "b2")), "b1"),
				br("br-x", port("p0", ""), patch("a2", "a1")),
				br("br-y", port("p1", ""), patch("b2", "b1"))),
			want: "br-y/p1", ports: []int{10}, exits: []int{20}, via: []string{"br-ovn/b1"},
		},
		"B4: host-facing representors are no uplinks": {
			view: view(br("br-blue", port("p1", "system"), port("pf1vf0", "system"), port("pf1vf7", "system"))),
			want: "br-blue/p1", ports: []int{10},
		},
		"Z2.2": {
			view: view(br("br-blue", port("p0", "system"), port("pf0hpf", "system"))),
			want: "br-blue/p0", ports: []int{10},
		},
		"B5, Z2.6: an OVS bond is one port": {
			view: view(br("br-blue", bond("bond0", "p0", "p1"), port("pf0hpf", ""), port("pf1hpf", ""))),
			want: "br-blue/bond0", ports: []int{10, 11},
		},
		"B5, Z2.6: a kernel bond is one interface": {
			view: view(br("br-blue", port("bond0", "system"))),
			want: "br-blue/bond0", ports: []int{10},
		},
		"B5: a dead member of a bond is not used": {
			view: view(br("br-blue", Port{Name: "bond0", Interfaces: []Interface{{Name: "p0"}, {Name: "p1", OFPort: -1}}})),
			want: "br-blue/bond0", ports: []int{10},
		},
		"B7: the bridge's own port is no candidate, nor are internal ports": {
			view: view(br("br-blue", port("eth0", ""), port("mgmt0", "internal"))),
			want: "br-blue/eth0", ports: []int{10},
		},
		"B10: a dead port is not used and hides nothing": {
			view: view(br("br-blue", dead("vf3"), port("p0", ""))),
			want: "br-blue/p0", ports: []int{20},
		},
		"B10: a dead port is not even classified": {
			view: view(br("br-blue", dead("busy3"), port("p0", ""))),
			want: "br-blue/p0", ports: []int{20},
		},
		"several, bridge-uplink decides": {
			view: view(hinted(br("br-blue", port("eth0", ""), port("eth1", "")), "eth1")),
			want: "br-blue/eth1", ports: []int{20},
		},
		"several, bridge-uplink names a member of the bond": {
			view: view(hinted(br("br-blue", port("eth0", ""), bond("bond0", "p0", "p1")), "p1")),
			want: "br-blue/bond0", ports: []int{20, 21},
		},
		"one, bridge-uplink names what is not there": {
			view: view(hinted(br("br-blue", port("eth0", "")), "eth9")),
			want: "br-blue/eth0", ports: []int{10},
		},
		"tunnels and ports of virtual machines are no uplinks": {
			view: view(br("br-blue", port("p0", ""), port("a", "vxlan"), port("b", "geneve"), port("c", "gre"), port("d", "stt"),
				port("e", "lisp"), port("f", "erspan"), port("g", "gtpu"), port("h", "bareudp"), port("i", "srv6"),
				port("j", "dpdkvhostuserclient"), port("k", "tap"))),
			want: "br-blue/p0", ports: []int{10},
		},
		"the representor of a function of the card itself does not count": {
			view: view(br("br-blue", port("p0", ""), port("pf0hpf", ""), port("en3f0pf0sf0", ""))),
			want: "br-blue/p0", ports: []int{10},
		},
		"unless bridge-uplink names it": {
			view: view(hinted(br("br-blue", port("pf0hpf", ""), port("en3f0pf0sf0", "")), "en3f0pf0sf0")),
			want: "br-blue/en3f0pf0sf0", ports: []int{20},
		},
		"A14: what cannot be told does not matter if bridge-uplink decides": {
			view: view(hinted(br("br-blue", port("busy0", ""), port("p0", "")), "p0")),
			want: "br-blue/p0", ports: []int{20},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			u, err := FindUplink(test.view, lookedAt(test.view), card)
			if err != nil {
				t.Fatal(err)
			}
			if test.exits == nil {
				test.exits = test.ports
			}
			if got := u.Bridge + "/" + u.Port; got != test.want {
				t.Errorf("uplink %s, want %s", got, test.want)
			}
			if got := ofports(u.Members); !slices.Equal(got, test.ports) {
				t.Errorf("ofports %v, want %v", got, test.ports)
			}
			if got := ofports(u.Exits); !slices.Equal(got, test.exits) {
				t.Errorf("exits %v, want %v", got, test.exits)
			}
			if !slices.Equal(u.Via, test.via) {
				t.Errorf("via %v, want %v", u.Via, test.via)
			}
		})
	}
}

func lookedAt(v *View) string {
	if _, found := v.BridgeByName("br-ovn"); found {
		return "br-ovn"
	}
	return "br-blue"
}

func ofports(members []Member) []int {
	var ports []int
	for _, m := range members {
		ports = append(ports, m.OFPort)
	}
	return ports
}

func TestFindUplinkFindsNone(t *testing.T) {
	tests := map[string]struct {
		view  *View
		parts []string
	}{
		"B4, Z2.3: only representors": {
			view:  view(br("br-blue", port("pf0vf7", "system"))),
			parts: []string{"pf0vf7 (host-facing representor)", "ovs-vsctl add-port br-blue"},
		},
		"B6: no guessing from the bridge's name": {
			view:  view(br("br-blue"), br("br-other", port("blue", ""))),
			parts: []string{"no port of bridge br-blue", "it has no ports"},
		},
		"B10: only a dead port": {
			view:  view(br("br-blue", dead("p0"))),
			parts: []string{"p0 (dead: p0: could not open network device p0 (No such device))"},
		},
		"several without a hint": {
			view:  view(br("br-blue", port("eth1", ""), port("eth0", ""))),
			parts: []string{"2 ports", "eth0, eth1", "external_ids:bridge-uplink=PORT"},
		},
		"several, the hint names no port of the bridge": {
			view:  view(hinted(br("br-blue", port("eth0", ""), port("eth1", "")), "eth9"), br("br-other", port("eth9", ""))),
			parts: []string{"names eth9", "no such port", "eth0, eth1"},
		},
		"several, the hint names a representor": {
			view:  view(hinted(br("br-blue", port("eth0", ""), port("eth1", ""), port("pf0hpf", "")), "pf0hpf")),
			parts: []string{"names pf0hpf", "host-facing representor"},
		},
		"several, the hint names a dead port": {
			view:  view(hinted(br("br-blue", port("eth0", ""), port("eth1", ""), dead("eth2")), "eth2")),
			parts: []string{"names eth2", "No such device"},
		},
		"none, the hint names no port of the bridge": {
			view:  view(hinted(br("br-blue", port("pf0hpf", "")), "eth9")),
			parts: []string{"names eth9, which it does not have", "pf0hpf (host-facing representor)"},
		},
		"B3: patch ports to two wires": {
			view: view(br("br-ovn", patch("a1", "a2"), patch("b1", "b2")),
				br("br-x", port("p0", ""), patch("a2", "a1")), br("br-y", port("p1", ""), patch("b2", "b1"))),
			parts: []string{"2 wires", "port p0 of bridge br-x behind br-ovn/a1", "port p1 of bridge br-y behind br-ovn/b1"},
		},
		"B3: two wires behind one patch port": {
			view: view(br("br-ovn", patch("m1", "m2")), br("br-mid", patch("m2", "m1"), patch("a1", "a2"), patch("b1", "b2")),
				br("br-x", port("p0", ""), patch("a2", "a1")), br("br-y", port("p1", ""), patch("b2", "b1"))),
			parts: []string{"2 wires", "behind br-mid/a1", "behind br-mid/b1"},
		},
		"B3: several ports at the end of the path": {
			view:  view(br("br-ovn", patch("a1", "a2")), br("br-x", port("p0", ""), port("p1", ""), patch("a2", "a1"))),
			parts: []string{"behind its patch ports", "bridge br-x has 2 ports"},
		},
		"B3: the patch port leads nowhere": {
			view:  view(br("br-ovn", patch("a1", "a2"))),
			parts: []string{"a1 (patch port to a2)"},
		},
		"B3: the peer names another peer": {
			view:  view(br("br-ovn", patch("a1", "a2")), br("br-x", port("p0", ""), patch("a2", "z"))),
			parts: []string{"a1 (patch port to a2)"},
		},
		"B3: a loop without a wire": {
			view:  view(br("br-ovn", patch("a1", "a2")), br("br-x", patch("a2", "a1"), port("i", "internal"))),
			parts: []string{"i (internal port)"},
		},
		"only the integration bridge behind the patch port": {
			view:  view(br("br-ovn", patch("a1", "a2")), br("br-int", port("p0", ""), patch("a2", "a1"))),
			parts: []string{"a1 (patch port to a2)"},
		},
		"a function of the card itself": {
			view:  view(br("br-blue", port("en3f0pf0sf0", ""))),
			parts: []string{"en3f0pf0sf0 (representor of a function of this machine)"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := FindUplink(test.view, lookedAt(test.view), card)
			problem(t, err, uplinkstate.ReasonBridgeUplinkNotFound, test.parts...)
		})
	}
}

// A14: a failed read of what an interface is never becomes a finding about the bridge.
func TestA14UnclassifiedIsNoProblem(t *testing.T) {
	for name, v := range map[string]*View{
		"alone":                           view(br("br-blue", port("busy0", ""))),
		"an interface that came just now": view(br("br-blue", port("absent0", ""), port("p0", ""))),
		"beside a candidate":              view(br("br-blue", port("busy0", ""), port("p0", ""))),
		"behind a patch":                  view(br("br-blue", patch("a1", "a2")), br("br-x", port("busy0", ""), patch("a2", "a1"))),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := FindUplink(v, "br-blue", card)
			if p := (*uplinkstate.Problem)(nil); !errors.Is(err, ErrUnclassified) || errors.As(err, &p) {
				t.Errorf("error %v, want ErrUnclassified and no problem", err)
			}
		})
	}
}

// Every port keeps its verdict, whether an uplink is found or not.
func TestCandidates(t *testing.T) {
	v := view(br("br-blue", port("p0", ""), port("pf0vf7", ""), dead("p9"), port("t0", "vxlan"),
		Port{Name: "bond0", Interfaces: []Interface{{Name: "eth0"}, {Name: "eth1", OFPort: -1}}}))
	u, err := FindUplink(v, "br-blue", card)
	problem(t, err, uplinkstate.ReasonBridgeUplinkNotFound)
	var got []string
	for _, c := range u.Candidates {
		got = append(got, fmt.Sprintf("%s %s: %s %v", c.Port, c.Verdict, c.Why, c.DeadMembers))
	}
	want := []string{
		"bond0 usable:  [eth1: Open vSwitch could not add it]",
		"br-blue rejected: the bridge's own port []",
		"p0 usable:  []",
		"p9 dead: dead: p9: could not open network device p9 (No such device) [p9: could not open network device p9 (No such device)]",
		"pf0vf7 rejected: host-facing representor []",
		"t0 rejected: type vxlan []",
	}
	if !slices.Equal(got, want) {
		t.Errorf("candidates\n%q\nwant\n%q", got, want)
	}
}

// The order of rows in the database, which is that of a Go map, shows nowhere.
func TestMessagesAreStable(t *testing.T) {
	v := view(br("br-ovn", patch("a1", "a2"), patch("b1", "b2"), patch("c1", "c2")),
		br("br-x", port("p0", ""), patch("a2", "a1")), br("br-y", port("p1", ""), patch("b2", "b1")), br("br-z", port("p2", ""), patch("c2", "c1")))
	first, firstErr := FindUplink(v, "br-ovn", card)
	for range 20 {
		if u, err := FindUplink(v, "br-ovn", card); err.Error() != firstErr.Error() || !reflect.DeepEqual(u, first) {
			t.Fatalf("%v, then %v", firstErr, err)
		}
	}
}

func TestMessagesAreBounded(t *testing.T) {
	var ports []Port
	for i := range 500 {
		ports = append(ports, port(fmt.Sprintf("eth%03d", i), ""))
	}
	_, err := FindUplink(view(br("br-blue", ports...)), "br-blue", card)
	problem(t, err, uplinkstate.ReasonBridgeUplinkNotFound, "500 ports", "eth007 and 492 more")
}

// B5: a switch learns the MAC where OVN's frames come from, which must be the member that the bond uses.
func TestB5ExitsBeginWithTheActiveMember(t *testing.T) {
	bond := Port{Name: "bond0", BondActive: "02:00:00:00:00:0b", Interfaces: []Interface{
		{Name: "p0", OFPort: 1, MAC: "02:00:00:00:00:0a"}, {Name: "p1", OFPort: 2, MAC: "02:00:00:00:00:0b"}, {Name: "p2", OFPort: 3},
	}}
	names := func() (all []string) {
		for _, m := range exits(&bond) {
			all = append(all, m.Interface)
		}
		return all
	}
	if got := names(); !slices.Equal(got, []string{"p1", "p0", "p2"}) {
		t.Errorf("got %v", got)
	}
	for _, none := range []string{"", "02:00:00:00:00:0f"} {
		bond.BondActive = none
		if got := names(); !slices.Equal(got, []string{"p0", "p1", "p2"}) {
			t.Errorf("active %q: got %v", none, got)
		}
	}
}
