// SPDX-License-Identifier: Apache-2.0

package representor

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestMap(t *testing.T) {
	const byMAC = "- {representor: pf0vf3, mac: '02:00:00:00:00:07'}\n"
	const byFunction = "- {representor: pf0vf3, function: {pfMAC: '00:00:5e:00:53:01', pfID: 0, vfID: 3}}\n"
	links := []Link{{Name: "pf0vf3"}, {Name: "pf0vf4", AltNames: []string{"other"}}}
	published := Query{Function: hostFunction(mac(1), 0, 3, -1), MAC: parseTestMAC("02:00:00:00:00:07")}
	tests := map[string]struct {
		ports    []Port
		text     string
		query    Query
		want     string
		verified bool
		problem  []string
	}{
		"by MAC":                    {text: byMAC, query: Query{MAC: published.MAC}, want: "pf0vf3", verified: true},
		"by MAC, also with numbers": {text: byMAC, query: published, want: "pf0vf3", verified: true},
		"by function":               {text: byFunction, query: published, want: "pf0vf3"},
		"by an alternative name":    {text: "- {representor: other, mac: '02:00:00:00:00:07'}", query: published, want: "pf0vf4", verified: true},
		"an entry without PF MAC fits every PF": {
			text: "- {representor: pf0vf3, function: {pfID: 0, vfID: 3}}", query: published, want: "pf0vf3",
		},
		"an entry without MAC address goes before devlink": {
			ports: []Port{vf(ecpf0, 1, 0, 3, "pf0vf4", nil)}, text: byFunction, query: published, want: "pf0vf3",
		},
		"devlink confirms the entry": {
			ports: []Port{vf(ecpf0, 1, 0, 3, "pf0vf3", published.MAC)}, text: byFunction, query: published, want: "pf0vf3", verified: true,
		},
		"devlink contradicts the entry, and knows better": {
			ports: []Port{vf(ecpf0, 1, 0, 9, "pf0vf3", mac(9)), vf(ecpf0, 1, 0, 3, "pf0vf4", nil)}, text: byFunction, query: published, want: "pf0vf4",
		},
		"devlink contradicts the entry": {
			ports: []Port{vf(ecpf0, 1, 0, 9, "pf0vf3", mac(9))}, text: byFunction, query: published,
			problem: []string{"pf0vf3 (entry 1 (pf0vf3)): its function has MAC address 00:00:5e:00:53:09"},
		},
		"the representor is not there": {
			text: "- {representor: none, mac: '02:00:00:00:00:07'}", query: published,
			problem: []string{"none (entry 1 (none)): there is no such network interface"},
		},
		"two entries fit": {
			text:  "- {representor: pf0vf3, function: {pfID: 0, vfID: 3}}\n- {representor: pf0vf4, function: {pfMAC: '00:00:5e:00:53:01', pfID: 0, vfID: 3}}",
			query: published, problem: []string{"2 representors", "entry 1 (pf0vf3)", "entry 2 (pf0vf4)", "leave only one"},
		},
		"two entries for one representor agree": {
			text: byMAC + byFunction, query: published, want: "pf0vf3",
		},
		"another PF": {
			text: byFunction, query: Query{Function: hostFunction(mac(5), 0, 3, -1)}, problem: []string{"nothing on this card fits"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r, err := Build(Input{Ports: test.ports, Links: links, Map: parseMap(t, test.text)}).Resolve(test.query)
			if test.problem != nil {
				wantProblem(t, err, test.problem...)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if r.Netdev != test.want || r.Verified != test.verified {
				t.Errorf("%s, verified %v; want %s, %v", r.Netdev, r.Verified, test.want, test.verified)
			}
		})
	}
}

// What the administrator names is a representor, whatever else is known of it.
func TestMapClassifies(t *testing.T) {
	x := Build(Input{
		Links: []Link{{Name: "veth3", AltNames: []string{"rep3"}}, {Name: "eth0"}},
		Map:   parseMap(t, "[{representor: rep3, mac: '02:00:00:00:00:07'}, {representor: gone, mac: '02:00:00:00:00:08'}]"),
	})
	for name, want := range map[string]Class{"veth3": HostFacing, "rep3": HostFacing, "eth0": Plain} {
		if got := x.Classify(name); got != want {
			t.Errorf("%s is %d, want %d", name, got, want)
		}
	}
	if want := []string{"representor map: entry 2 (gone): there is no such network interface"}; !slices.Equal(x.Warnings(), want) {
		t.Errorf("warnings %q", x.Warnings())
	}
}

func TestParseMap(t *testing.T) {
	for _, text := range []string{
		"[]",
		`[{"representor": "pf0vf3", "mac": "02:00:00:00:00:07"}]`,
		"- representor: pf0vf3\n  mac: 02:00:00:00:00:07\n- representor: pf0\n  mac: 10:20:30:40:50:51\n",
		"- {representor: a, function: {pfID: 0}}\n- {representor: b, function: {pfID: 0, vfID: 0}}\n- {representor: c, function: {pfID: 0, sfID: 0}}",
		"- {representor: a, function: {pfID: 0, controllerNumber: 1}}\n- {representor: b, function: {pfID: 0, controllerNumber: 2}}",
	} {
		if _, err := ParseMap([]byte(text)); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
	good := "- {representor: a, mac: '02:00:00:00:00:07'}\n"
	for text, wrong := range map[string]string{
		"":                                    "it is empty",
		" \n":                                 "it is empty",
		"representor: a":                      "no list",
		"- {representor: a, mac":              "yaml",
		"- a":                                 "entry 1",
		good + "- {representor: b, macc: x}":  `entry 2: json: unknown field "macc"`,
		good + "- {representor: b, mac: x}":   `entry 2 (b): mac "x"`,
		good + "- {representor: b}":           "entry 2 (b): expected either mac or function",
		good + "- {mac: '02:00:00:00:00:08'}": "entry 2: representor",
		good + "- {representor: a, representor: b}":                                        `key "representor" already set`,
		"- {representor: a/b, mac: '02:00:00:00:00:07'}":                                   "no name of a network interface",
		"- {representor: a, mac: '02:00:00:00:00:07', function: {pfID: 0}}":                "either mac or function",
		"- {representor: a, mac: '00:00:00:00:00:00'}":                                     "no MAC address of one Ethernet station",
		"- {representor: a, mac: '01:00:00:00:00:00'}":                                     "no MAC address of one Ethernet station",
		"- {representor: a, function: {vfID: 3}}":                                          "pfID is missing",
		"- {representor: a, function: {pfID: 0, vfID: 3, sfID: 3}}":                        "exclude each other",
		"- {representor: a, function: {pfID: -1}}":                                         "entry 1",
		"- {representor: a, function: {pfID: 0, pfMAC: zz}}":                               `pfMAC "zz"`,
		"- {representor: a, function: {pfID: 0, vf: 3}}":                                   `unknown field "vf"`,
		good + "- {representor: b, mac: '02-00-00-00-00-07'}":                              "entry 2 (b): mac 02:00:00:00:00:07 is named by entry 1 (a) too",
		good + "- {representor: a, mac: '02:00:00:00:00:08'}":                              "entry 2 (a): the MAC address behind a is named by entry 1 (a) too",
		"- {representor: a, function: {pfID: 0}}\n- {representor: b, function: {pfID: 0}}": "entry 2 (b): PF 0 is named by entry 1 (a) too",
		"- {representor: a, function: {pfID: 0}}\n- {representor: a, function: {pfID: 1}}": "entry 2 (a): the function behind a is named by entry 1 (a) too",
		"- {representor: a, function: {pfID: 0, vfID: 1, controllerNumber: 99999999999}}":  "entry 1",
	} {
		if _, err := ParseMap([]byte(text)); err == nil || !strings.Contains(err.Error(), wrong) {
			t.Errorf("%q: error %v, want %q", text, err, wrong)
		}
	}
}

func TestLoadMapNamesTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "map.yaml")
	if _, err := LoadMap(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("absent file: %v", err)
	}
	if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadMap(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("bad file: %v", err)
	}
}

func FuzzParseMap(f *testing.F) {
	for _, seed := range []string{
		"", "[]", "- a", "- {representor: a, mac: '02:00:00:00:00:07'}", "- {representor: a, function: {pfID: 0, vfID: 3}}", "- {representor: a, function: null}", "null",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := ParseMap(text)
		if err != nil {
			return
		}
		for _, e := range m.entries {
			if e.Representor == "" || (e.mac == nil) == (e.Function == nil) {
				t.Errorf("%q gave %+v", text, e)
			}
		}
		Build(Input{Map: m})
	})
}

// An entry is believed, but not against what the card says of its own ports.
func TestMapIsCheckedAgainstTheCard(t *testing.T) {
	ports, err := ParseDevlinkPorts([]byte(`{"port":{
		"pci/0000:03:00.0/1":{"type":"eth","netdev":"p0","flavour":"physical","port":0},
		"pci/0000:03:00.0/2":{"type":"eth","netdev":"pf0vf7","flavour":"pcivf","pfnum":0,"vfnum":7,"external":false}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for representor, class := range map[string]Class{"p0": Physical, "pf0vf7": HostFacing} {
		given, err := ParseMap([]byte(`[{"representor": "` + representor + `", "mac": "02:00:5e:00:53:07"}]`))
		if err != nil {
			t.Fatal(err)
		}
		x := Build(Input{Ports: ports, Links: []Link{{Name: "p0"}, {Name: "pf0vf7"}}, Map: given})
		mac, _ := net.ParseMAC("02:00:5e:00:53:07")
		if r, err := x.Resolve(Query{MAC: mac}); err == nil {
			t.Errorf("%s was taken: %+v", representor, r)
		}
		if got := x.Classify(representor); got != class {
			t.Errorf("%s is of class %d, want %d", representor, got, class)
		}
	}
}
