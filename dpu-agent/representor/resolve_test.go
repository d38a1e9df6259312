// SPDX-License-Identifier: Apache-2.0

package representor

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"reflect"
	"syscall"
	"testing"

	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
)

func TestResolve(t *testing.T) {
	// card is one host's: two PFs on two ECPFs, VFs of PF 0 without addresses, an SF, and the card's own VF 3 and SF 88.
	card := []Port{
		physical(ecpf0, "p0"), physical(ecpf1, "p1"),
		pf(ecpf0, 1, 0, "pf0hpf", mac(1)), pf(ecpf1, 1, 1, "pf1hpf", mac(2)),
		vf(ecpf0, 1, 0, 3, "pf0vf3", zeroMAC), vf(ecpf0, 1, 0, 7, "pf0vf7", zeroMAC), vf(ecpf1, 1, 1, 7, "pf1vf7", mac(17)),
		sf(ecpf0, 1, 0, 4, "en3f0c1pf0sf4", nil),
		local(vf(ecpf0, 0, 0, 3, "pf0vf3_own", nil)), local(sf(ecpf0, 0, 0, 88, "en3f0pf0sf88", nil)),
	}
	// multiHost serves two hosts with the same numbers (A7).
	multiHost := []Port{
		pf(ecpf0, 1, 0, "c1pf0hpf", mac(1)), pf(ecpf0, 2, 0, "c2pf0hpf", mac(2)), pf(ecpf1, 1, 0, "other", mac(3)),
		vf(ecpf0, 1, 0, 0, "c1pf0vf0", nil), vf(ecpf0, 2, 0, 0, "c2pf0vf0", nil), vf(ecpf1, 1, 0, 0, "othervf0", nil),
	}
	tests := map[string]struct {
		index    *Index
		query    Query
		want     string
		method   Method
		verified bool
	}{
		"A1: a VF whose address the card does not know": {
			index: build(card), query: Query{Function: hostFunction(mac(1), 0, 7, -1), MAC: mac(7)},
			want: "pf0vf7", method: ByFunction,
		},
		"A1: a PF, with its address": {
			index: build(card), query: Query{Function: hostFunction(mac(2), 1, -1, -1), MAC: mac(2)},
			want: "pf1hpf", method: ByFunction, verified: true,
		},
		"A1: a PF without a function, as an older host agent publishes it": {
			index: build(card), query: Query{MAC: mac(1)}, want: "pf0hpf", method: ByMAC, verified: true,
		},
		"A2: a published address of zeros is none": {
			index: build(card), query: Query{Function: hostFunction(mac(1), 0, 3, -1), MAC: zeroMAC}, want: "pf0vf3", method: ByFunction,
		},
		"A2: a PF address of zeros is no anchor": {
			index: build(card), query: Query{Function: hostFunction(zeroMAC, 0, 3, -1), MAC: mac(7)}, want: "pf0vf3", method: ByFunction,
		},
		"A4: VF 7 of the right PF": {
			index: build(card), query: Query{Function: hostFunction(mac(2), 1, 7, -1), MAC: mac(17)},
			want: "pf1vf7", method: ByFunction, verified: true,
		},
		"A4: SF": {
			index: build(card), query: Query{Function: hostFunction(mac(1), 0, -1, 4), MAC: mac(8)}, want: "en3f0c1pf0sf4", method: ByFunction,
		},
		"A5: the host's VF 3, not the card's own": {
			index: build(card), query: Query{Function: hostFunction(nil, 0, 3, -1), MAC: mac(7)}, want: "pf0vf3", method: ByFunction,
		},
		"A5: by name only": {
			index: build(nil, Link{Name: "a", PortName: "pf0vf0"}, Link{Name: "b", PortName: "c1pf0vf0"}, Link{Name: "c", PortName: "p0"}),
			query: Query{Function: hostFunction(mac(1), 0, 0, -1)}, want: "b", method: ByFunction,
		},
		"A5: by the name of an old kernel": {
			index: build([]Port{old(pf(ecpf0, 0, 0, "pf0hpf", mac(1))), old(vf(ecpf0, 0, 0, 3, "pf0vf3", nil)), physical(ecpf0, "p0")},
				Link{Name: "p0", MAC: mac(99)}),
			query: Query{Function: hostFunction(mac(1), 0, 3, -1), MAC: mac(7)}, want: "pf0vf3", method: ByFunction,
		},
		"A5: the card's own VF 3, asked for on a server": {
			index: build(card), query: Query{Function: hostFunction(nil, 0, 3, -1), Local: true}, want: "pf0vf3_own", method: ByFunction,
		},
		"A6: a local VF with a controller": {
			index: build([]Port{local(vf(ecpf0, 1, 0, 3, "own", nil)), vf(ecpf0, 1, 0, 3, "hosts", nil)}),
			query: Query{Function: hostFunction(nil, 0, 3, -1), Local: true}, want: "own", method: ByFunction,
		},
		"A7: the PF's address tells the hosts apart": {
			index: build(multiHost), query: Query{Function: hostFunction(mac(2), 0, 0, -1), MAC: mac(9)}, want: "c2pf0vf0", method: ByFunction,
		},
		"A7: and the cards": {
			index: build(multiHost), query: Query{Function: hostFunction(mac(3), 0, 0, -1), MAC: mac(9)}, want: "othervf0", method: ByFunction,
		},
		"A7: the controller alone, where it is enough": {
			index: build(multiHost), query: Query{Function: onController(hostFunction(nil, 0, 0, -1), 2), MAC: mac(9)},
			want: "c2pf0vf0", method: ByFunction,
		},
		"A7: without anything else, the VF's own address": {
			index: build([]Port{vf(ecpf0, 1, 0, 0, "a", mac(11)), vf(ecpf0, 2, 0, 0, "b", mac(12))}),
			query: Query{Function: hostFunction(nil, 0, 0, -1), MAC: mac(12)}, want: "b", method: ByFunction, verified: true,
		},
		"A7: a PF of which the card does not know the address may be it": {
			index: build([]Port{pf(ecpf0, 1, 0, "x", mac(5)), vf(ecpf0, 1, 0, 0, "xvf0", nil), pf(ecpf0, 2, 0, "y", zeroMAC), vf(ecpf0, 2, 0, 0, "yvf0", nil)}),
			query: Query{Function: hostFunction(mac(1), 0, 0, -1), MAC: mac(9)}, want: "yvf0", method: ByFunction,
		},
		"A server's own PF is known by the address of its port": {
			index: build([]Port{physical(ecpf0, "a"), local(vf(ecpf0, 0, 0, 0, "avf0", nil)), physical("0000:05:00.0", "b"), local(vf("0000:05:00.0", 0, 0, 0, "bvf0", nil))},
				Link{Name: "a", MAC: mac(1)}, Link{Name: "b", MAC: mac(2)}),
			query: Query{Function: hostFunction(mac(2), 0, 0, -1), Local: true}, want: "bvf0", method: ByFunction,
		},
		"A function whose address is another's is not it, the MAC address finds the right one": {
			index: build([]Port{vf(ecpf0, 1, 0, 0, "a", mac(11)), vf(ecpf0, 1, 0, 1, "b", mac(12))}),
			query: Query{Function: hostFunction(nil, 0, 0, -1), MAC: mac(12)}, want: "b", method: ByMAC, verified: true,
		},
		"A20: two PFs with one address, told apart by their numbers": {
			index: build([]Port{pf(ecpf0, 1, 0, "pf0hpf", mac(1)), pf(ecpf1, 1, 1, "pf1hpf", mac(1))}),
			query: Query{Function: hostFunction(mac(1), 1, -1, -1), MAC: mac(1)}, want: "pf1hpf", method: ByFunction, verified: true,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r, err := test.index.Resolve(test.query)
			if err != nil {
				t.Fatal(err)
			}
			if r.Netdev != test.want || r.Method != test.method || r.Verified != test.verified {
				t.Errorf("%s by %s, verified %v; want %s by %s, %v", r.Netdev, r.Method, r.Verified, test.want, test.method, test.verified)
			}
		})
	}
}

func TestResolveFindsNone(t *testing.T) {
	tests := map[string]struct {
		index *Index
		query Query
		parts []string
	}{
		"A2: zeros match no zeros": {
			index: build([]Port{vf(ecpf0, 1, 0, 0, "a", zeroMAC), vf(ecpf0, 1, 0, 1, "b", zeroMAC)}), query: Query{MAC: zeroMAC},
			parts: []string{"without PCI function and MAC address"},
		},
		"A2: nor broadcast, multicast, InfiniBand": {
			index: build([]Port{vf(ecpf0, 1, 0, 0, "a", net.HardwareAddr{255, 255, 255, 255, 255, 255}), vf(ecpf0, 1, 0, 1, "b", net.HardwareAddr{1, 0, 0, 0, 0, 1}),
				vf(ecpf0, 1, 0, 2, "c", make(net.HardwareAddr, 20))}),
			query: Query{MAC: net.HardwareAddr{255, 255, 255, 255, 255, 255}}, parts: []string{"nothing on this card fits"},
		},
		"A5: only the card's own VF": {
			index: build([]Port{local(vf(ecpf0, 0, 0, 3, "own", nil))}), query: Query{Function: hostFunction(nil, 0, 3, -1)},
			parts: []string{"own (pci/0000:03:00.0/4): it stands for a function of this machine"},
		},
		"only the host's VF, asked for on a server": {
			index: build([]Port{vf(ecpf0, 1, 0, 3, "hosts", nil)}), query: Query{Function: hostFunction(nil, 0, 3, -1), Local: true},
			parts: []string{"hosts (", "it stands for a function of a host"},
		},
		"A7: no anchor": {
			index: build([]Port{vf(ecpf0, 1, 0, 0, "c1pf0vf0", nil), vf(ecpf0, 2, 0, 0, "c2pf0vf0", nil)}),
			query: Query{Function: hostFunction(nil, 0, 0, -1), MAC: mac(9)},
			parts: []string{"2 representors", "VF 0 of PF 0", "c1pf0vf0 (", "c2pf0vf0 (", "update the host agent"},
		},
		"A7: the anchor is on another card": {
			index: build([]Port{pf(ecpf0, 1, 0, "pf0hpf", mac(1)), vf(ecpf0, 1, 0, 0, "pf0vf0", nil)}),
			query: Query{Function: hostFunction(mac(5), 0, 0, -1), MAC: mac(9)},
			parts: []string{"pf0vf0 (", "its PF has MAC address 00:00:5e:00:53:01, not 00:00:5e:00:53:05"},
		},
		"A7: the anchor is a PF of another number": {
			index: build([]Port{pf(ecpf0, 1, 0, "pf0hpf", mac(1)), pf(ecpf0, 1, 1, "pf1hpf", zeroMAC), vf(ecpf0, 1, 1, 0, "pf1vf0", nil)}),
			query: Query{Function: hostFunction(mac(1), 1, 0, -1), MAC: mac(9)},
			parts: []string{"pf1vf0 (", "it does not belong to the PF with MAC address 00:00:5e:00:53:01"},
		},
		"another controller": {
			index: build([]Port{vf(ecpf0, 1, 0, 0, "c1pf0vf0", nil)}), query: Query{Function: onController(hostFunction(nil, 0, 0, -1), 2)},
			parts: []string{"it is on controller 1, not 2"},
		},
		"the address is another's": {
			index: build([]Port{vf(ecpf0, 1, 0, 0, "a", mac(11))}), query: Query{Function: hostFunction(nil, 0, 0, -1), MAC: mac(12)},
			parts: []string{"a (", "its function has MAC address 00:00:5e:00:53:0b, not 00:00:5e:00:53:0c"},
		},
		"A20: two functions with one address": {
			index: build([]Port{pf(ecpf1, 1, 1, "pf1hpf", mac(1)), pf(ecpf0, 1, 0, "pf0hpf", mac(1))}), query: Query{MAC: mac(1)},
			parts: []string{"2 representors", "pf0hpf (pci/0000:03:00.0/100000), pf1hpf (pci/0000:03:00.1/101000)", "MAC address of its own"},
		},
		"no network interface": {
			index: build([]Port{vf(ecpf0, 1, 0, 0, "", nil)}), query: Query{Function: hostFunction(nil, 0, 0, -1)},
			parts: []string{"it has no network interface here"},
		},
		"a function that cannot be": {
			index: build([]Port{vf(ecpf0, 1, 0, 0, "a", nil)}), query: Query{Function: hostFunction(nil, 0, 0, 0)},
			parts: []string{"nothing on this card fits"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := test.index.Resolve(test.query)
			wantProblem(t, err, test.parts...)
		})
	}
}

// A14: what could not be read may be what is looked for. What was found is still good.
func TestA14UnknownIsNoProblem(t *testing.T) {
	ports := []Port{vf(ecpf0, 1, 0, 0, "pf0vf0", nil)}
	for name, x := range map[string]*Index{
		"old index":        build(ports).asStale(syscall.EBUSY),
		"one unread link":  build(ports, Link{Name: "x", Unreadable: syscall.EIO}),
		"nothing was read": Build(Input{}).asStale(syscall.ENODEV),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := x.Resolve(Query{Function: hostFunction(nil, 0, 9, -1), MAC: mac(9)})
			if p := (*uplinkstate.Problem)(nil); !errors.Is(err, ErrUnknown) || errors.As(err, &p) {
				t.Errorf("error %v, want ErrUnknown and no problem", err)
			}
		})
	}
	if r, err := build(ports).asStale(syscall.EBUSY).Resolve(Query{Function: hostFunction(nil, 0, 0, -1)}); err != nil || r.Netdev != "pf0vf0" {
		t.Errorf("an old index does not answer what it knows: %+v, %v", r, err)
	}
}

// A20: the order in which ports are read shows nowhere.
func TestOrderDoesNotMatter(t *testing.T) {
	ports := []Port{
		pf(ecpf0, 1, 0, "a", mac(1)), pf(ecpf1, 1, 1, "b", mac(1)), pf(ecpf0, 2, 0, "c", mac(1)),
		vf(ecpf0, 1, 0, 0, "d", nil), vf(ecpf1, 1, 0, 0, "e", nil), vf(ecpf0, 2, 0, 0, "f", nil),
	}
	queries := []Query{{MAC: mac(1)}, {Function: hostFunction(nil, 0, 0, -1)}, {Function: hostFunction(mac(1), 1, -1, -1)}}
	var first []string
	var all []Representor
	for range 30 {
		rand.Shuffle(len(ports), func(i, j int) { ports[i], ports[j] = ports[j], ports[i] })
		x := build(ports)
		var got []string
		for _, q := range queries {
			r, err := x.Resolve(q)
			got = append(got, fmt.Sprint(r, err))
		}
		if first == nil {
			first, all = got, x.Representors()
		}
		if !reflect.DeepEqual(got, first) || !reflect.DeepEqual(x.Representors(), all) {
			t.Fatalf("%q\nthen\n%q", first, got)
		}
	}
}

func BenchmarkResolve(b *testing.B) {
	for _, n := range []int{16, 256, 2048} {
		x := build(bigCard(n))
		for name, q := range map[string]Query{
			"function": {Function: hostFunction(mac(1), 0, n-1, -1), MAC: net.HardwareAddr{2, 0, 0, 0, byte((n - 1) >> 8), byte(n - 1)}},
			"MAC":      {MAC: net.HardwareAddr{2, 0, 0, 0, 0, 5}},
		} {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				for b.Loop() {
					if _, err := x.Resolve(q); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkBuild(b *testing.B) {
	for _, n := range []int{16, 256, 2048} {
		ports := bigCard(n)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				build(ports)
			}
		})
	}
}
