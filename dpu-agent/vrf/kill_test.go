// SPDX-License-Identifier: Apache-2.0

package vrf

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// Environment of the process that is killed: what it does, where its journal is, and before which step it dies.
const victimDoes, victimJournal, victimStep = "VRF_TEST_DOES", "VRF_TEST_JOURNAL", "VRF_TEST_STEP"

// TestVictim is the process that TestKernelKilled kills.
func TestVictim(t *testing.T) {
	does := os.Getenv(victimDoes)
	if does == "" {
		t.Skip("is run by TestKernelKilled, which test/vm runs")
	}
	left, err := strconv.Atoi(os.Getenv(victimStep))
	if err != nil {
		t.Fatal(err)
	}
	a := New(Config{Journal: os.Getenv(victimJournal)})
	a.cfg.at = func(step string) {
		if left--; left == 0 {
			fmt.Println("killed before:", step)
			_ = unix.Kill(os.Getpid(), unix.SIGKILL)
			select {}
		}
	}
	if does == "attach" {
		err = a.Attach(t.Context(), "u0", blue)
	} else {
		err = a.Detach(t.Context(), "u0")
	}
	if err != nil {
		t.Fatal(err)
	}
}

// victim runs the process until it is killed before a step, counted from 1; ok is false if it came to its end.
func victim(t *testing.T, does, journal string, step int) (before string, ok bool) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestVictim$")
	cmd.Env = append(os.Environ(), victimDoes+"="+does, victimJournal+"="+journal, victimStep+"="+strconv.Itoa(step))
	out, err := cmd.CombinedOutput()
	if err == nil {
		return "", false
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != unix.SIGKILL {
		t.Fatalf("%s, killed before step %d: %v: %s", does, step, err, out)
	}
	_, before, _ = strings.Cut(string(out), "killed before: ")
	return strings.TrimSpace(before), true
}

// TestKernelKilled kills the work before each of its steps. Whoever comes after it finds nothing lost, and finishes.
func TestKernelKilled(t *testing.T) {
	newLink(t, few...)
	ip(t, "link add red type vrf table 555", "link del red",
		"addr add 198.18.5.1/24 dev u0 noprefixroute", "route add 198.18.5.0/24 dev u0 proto kernel scope link src 198.18.5.1 metric 100",
		"route add 198.51.101.0/24 nexthop via 192.0.2.1 weight 3 nexthop via 192.0.2.2")
	if err := os.WriteFile("/proc/sys/net/ipv4/conf/u0/rp_filter", []byte("1"), 0); err != nil {
		t.Fatal(err)
	}
	a := newAttacher(t)
	resume := func() {
		t.Helper()
		if err := a.Resume(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	outside := settled(t, snapshot)
	attach(t, a, "u0", blue)
	inside := settled(t, snapshot)
	detach(t, a, "u0")
	// The index of a VRF that is made anew is another, and shows nowhere in the snapshots.

	var steps []string
	for n := 1; ; n++ {
		before, killed := victim(t, "attach", a.journal.dir, n)
		if !killed {
			break
		}
		steps = append(steps, "attach: "+before)
		resume()
		if n == 1 {
			wantAsBefore(t, "killed before the journal was written", outside, snapshot)
			continue
		}
		wantAsBefore(t, "attach killed before: "+before, inside, snapshot)
		detach(t, a, "u0")
	}
	wantAsBefore(t, "attached by who was not killed", inside, snapshot)
	for n := 1; ; n++ {
		before, killed := victim(t, "detach", a.journal.dir, n)
		if !killed {
			break
		}
		steps = append(steps, "detach: "+before)
		resume()
		if n == 1 {
			wantAsBefore(t, "killed before the journal was written", inside, snapshot)
			continue
		}
		wantAsBefore(t, "detach killed before: "+before, outside, snapshot)
		if got := readAll(t, "/proc/sys/net/ipv4/conf/u0/rp_filter"); got[0] != "1" {
			t.Errorf("detach killed before %s: rp_filter is %s", before, got[0])
		}
		attach(t, a, "u0", blue)
	}
	wantAsBefore(t, "detached by who was not killed", outside, snapshot)
	for _, step := range []string{"attach: make VRF", "attach: mark VRF", "attach: set master", "attach: return route", "attach: write journal: attached",
		"detach: write journal: detaching", "detach: look after master", "detach: return address", "detach: remove VRF", "detach: drop journal"} {
		if !slices.Contains(steps, step) {
			t.Errorf("%q was not among the steps: %q", step, steps)
		}
	}
	t.Logf("killed before each of %d steps", len(steps))
}
