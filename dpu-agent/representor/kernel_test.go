// SPDX-License-Identifier: Apache-2.0

package representor

import (
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// simulatedCard makes a switchdev card with two VF representors out of the kernel's netdevsim, and returns the
// names of the representors' interfaces by VF.
func simulatedCard(t *testing.T) [2]string {
	t.Helper()
	const bus = "/sys/bus/netdevsim/"
	if _, err := os.Stat(bus); err != nil {
		t.Skip("this kernel has no netdevsim, test/vm runs it on one that has")
	}
	write := func(path, text string) {
		if err := os.WriteFile(bus+path, []byte(text), 0); err != nil {
			t.Fatal(err)
		}
	}
	write("new_device", "7 1")
	t.Cleanup(func() { write("del_device", "7") })
	write("devices/netdevsim7/sriov_numvfs", "2")
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
	run(t, "devlink", "port", "function", "set", "netdevsim/netdevsim7/129", "hw_addr", mac(7).String())
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
