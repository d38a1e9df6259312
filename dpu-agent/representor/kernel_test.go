// SPDX-License-Identifier: Apache-2.0

package representor

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/k8snetworkplumbingwg/sriovnet"
	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
)

// simulator is where cards of netdevsim are made and changed.
const simulator = "/sys/bus/netdevsim/"

func simulate(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(simulator+path, []byte(text), 0); err != nil {
		t.Fatal(err)
	}
}

// simulatedCard makes a switchdev card with two VF representors out of the kernel's netdevsim, and returns the
// names of the representors' interfaces by VF.
func simulatedCard(t *testing.T) [2]string {
	t.Helper()
	if _, err := os.Stat(simulator); err != nil {
		t.Skip("this kernel has no netdevsim, test/vm runs it on one that has")
	}
	simulate(t, "new_device", "7 1")
	t.Cleanup(func() { simulate(t, "del_device", "7") })
	simulate(t, "devices/netdevsim7/sriov_numvfs", "2")
	run(t, "devlink", "dev", "eswitch", "set", "netdevsim/netdevsim7", "mode", "switchdev")
	var names [2]string
	eventually(t, "the representors", func() bool {
		ports, err := kernelPorts()
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range ports {
			if p.Device == "netdevsim7" && p.VF != nil && *p.VF < 2 {
				names[*p.VF] = p.Netdev
			}
		}
		return names[0] != "" && names[1] != ""
	})
	return names
}

// setFunction gives the function of a VF of the simulated card an address.
func setFunction(t *testing.T, vf int, address net.HardwareAddr) {
	t.Helper()
	run(t, "devlink", "port", "function", "set", fmt.Sprintf("netdevsim/netdevsim7/%d", 128+vf), "hw_addr", address.String())
}

// watchCard follows the kernel's ports and links.
func watchCard(t *testing.T) *Monitor {
	t.Helper()
	l := &lab{t: t, cfg: Config{Logger: slog.New(slog.DiscardHandler)}}
	return l.watch(nil)
}

func run(t *testing.T, program string, args ...string) {
	t.Helper()
	if out, err := exec.Command(program, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", program, strings.Join(args, " "), err, out)
	}
}

// TestKernelDevlink finds representors of a real kernel, and sees addresses of functions change within a second.
func TestKernelDevlink(t *testing.T) {
	names := simulatedCard(t)
	var reads atomic.Int32
	l := &lab{t: t, cfg: Config{Logger: slog.New(slog.DiscardHandler), Links: func() ([]Link, error) {
		reads.Add(1)
		return KernelLinks()
	}}}
	m := l.watch(nil)
	eventually(t, "the representor of VF 1", is(m, names[1], LocalFunction))
	x, _ := m.Latest()
	r, err := x.Resolve(Query{Function: hostFunction(nil, 0, 1, -1), MAC: mac(7), Local: true})
	if err != nil || r.Netdev != names[1] || r.Verified {
		t.Errorf("VF 1: %+v, %v; want %s, not verified", r, err, names[1])
	}
	// Events of the card's making must not be what the next change is seen by.
	last, since := reads.Load(), time.Now()
	eventually(t, "quiet", func() bool {
		if now := reads.Load(); now != last {
			last, since = now, time.Now()
		}
		return time.Since(since) > 500*time.Millisecond
	})

	started := time.Now()
	setFunction(t, 1, mac(7))
	eventually(t, "the address of VF 1", func() bool {
		x, _ := m.Latest()
		r, err := x.Resolve(Query{MAC: mac(7), Local: true})
		return err == nil && r.Netdev == names[1] && r.Verified
	})
	if took := time.Since(started); took > time.Second {
		t.Errorf("the address was seen after %s", took)
	}
	run(t, "devlink", "dev", "eswitch", "set", "netdevsim/netdevsim7", "mode", "legacy")
	eventually(t, "the card without representors", func() bool {
		x, err := m.Latest()
		return err == nil && len(x.Representors()) == 0
	})
}

// TestKernelFunctionAddresses: what a query for VF 1, and one for its address alone, are answered as the card's
// addresses change.
func TestKernelFunctionAddresses(t *testing.T) {
	names := simulatedCard(t)
	m := watchCard(t)
	eventually(t, "the representor of VF 1", is(m, names[1], LocalFunction))
	const none, twoFit, unknown = "", "several fit", "nothing fits"
	for _, step := range []struct {
		name     string
		vf       int
		address  net.HardwareAddr
		verified bool
		byMAC    string
	}{
		{"another than the host's", 0, mac(8), false, unknown},
		{"the host's", 1, mac(7), true, names[1]},
		{"the host's, on two functions", 0, mac(7), true, twoFit},
		{"the other one got another again", 0, mac(9), true, names[1]},
		{"zero: the card does not know it any more", 1, zeroMAC, false, unknown},
		{"set anew", 1, mac(7), true, names[1]},
	} {
		t.Run(step.name, func(t *testing.T) {
			setFunction(t, step.vf, step.address)
			var last string
			eventually(t, "the answers", func() bool {
				x, err := m.Latest()
				if err != nil {
					t.Fatal(err)
				}
				byFunction, err := x.Resolve(Query{Function: hostFunction(nil, 0, 1, -1), MAC: mac(7), Local: true})
				if err != nil || byFunction.Netdev != names[1] {
					t.Fatalf("by the function: %+v, %v; want %s all the time", byFunction, err, names[1])
				}
				byMAC, err := x.Resolve(Query{MAC: mac(7), Local: true})
				last = byMAC.Netdev
				var problem *uplinkstate.Problem
				if errors.As(err, &problem) {
					last = unknown
					if len(byMAC.Candidates) > 1 {
						last = twoFit
					}
				}
				return byFunction.Verified == step.verified && last == step.byMAC
			})
		})
	}
	setFunction(t, 1, mac(6))
	eventually(t, "VF 1 is refused when the card knows that it has another address", func() bool {
		x, _ := m.Latest()
		r, err := x.Resolve(Query{Function: hostFunction(nil, 0, 1, -1), MAC: mac(7), Local: true})
		return err != nil && r.Netdev == none && len(r.Candidates) > 0
	})
}

// TestKernelPortVanishes: the card's network port, and its functions, go and come.
func TestKernelPortVanishes(t *testing.T) {
	names := simulatedCard(t)
	ports, err := kernelPorts()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(ports, func(p Port) bool { return p.Flavour == sriovnet.PORT_FLAVOUR_PHYSICAL && p.Device == "netdevsim7" })
	if i < 0 {
		t.Fatalf("no network port among %+v", ports)
	}
	uplink := ports[i].Netdev
	m := watchCard(t)
	eventually(t, "the network port", is(m, uplink, Physical))
	eventually(t, "the representor of VF 0", is(m, names[0], LocalFunction))

	simulate(t, "devices/netdevsim7/del_port", "0")
	eventually(t, "a card without network port", is(m, uplink, Absent))
	eventually(t, "its representors", is(m, names[0], LocalFunction))

	simulate(t, "devices/netdevsim7/sriov_numvfs", "0")
	for _, name := range names {
		eventually(t, "a card without "+name, is(m, name, Absent))
	}
	x, err := m.Latest()
	if err != nil {
		t.Fatal(err)
	}
	if r, err := x.Resolve(Query{Function: hostFunction(nil, 0, 1, -1), MAC: mac(7), Local: true}); err == nil {
		t.Errorf("VF 1 of a card without functions is %+v", r)
	}
}
