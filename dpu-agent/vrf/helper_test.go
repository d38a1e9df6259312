// SPDX-License-Identifier: Apache-2.0

package vrf

import (
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ovn-uplink/ovn-uplink/shared/kernel/kerneltest"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var blue = VRF{Name: "blue", Network: "cluster_udn_blue"}

// ip runs commands of ip(8), each without the leading "ip", those of a family in one process as far as they follow
// each other: processes are slow to start in a virtual machine.
func ip(t *testing.T, commands ...string) {
	t.Helper()
	for len(commands) > 0 {
		of, batch := "-4", ""
		if strings.HasPrefix(commands[0], "-6 ") {
			of = "-6"
		}
		for len(commands) > 0 && strings.HasPrefix(commands[0], "-6 ") == (of == "-6") {
			batch += strings.TrimPrefix(commands[0], "-6 ") + "\n"
			commands = commands[1:]
		}
		cmd := exec.Command("ip", of, "-batch", "-")
		cmd.Stdin = strings.NewReader(batch)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("ip %s\n%s: %v: %s", of, batch, err, out)
		}
	}
}

// newLink makes the veth u0, up and with a carrier, which goes when the test ends, and the VRFs of the test with it.
func newLink(t *testing.T, commands ...string) {
	t.Helper()
	kerneltest.NeedGuest(t)
	t.Cleanup(func() { clean(t) })
	clean(t)
	ip(t, "link add u0 type veth peer name u0-peer", "link add other type veth peer name other-peer")
	// One second less for each change.
	if err := os.WriteFile("/proc/sys/net/ipv6/conf/u0/accept_dad", []byte("0"), 0); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"u0-peer", "other", "other-peer"} {
		ip(t, "link set "+name+" addrgenmode none", "link set "+name+" up")
	}
	ip(t, append([]string{"addr add 10.66.0.5/24 dev other", "link set u0 up"}, commands...)...)
}

// clean removes what tests make, whether it is there or not.
func clean(t *testing.T) {
	t.Helper()
	cmd := exec.Command("ip", "-4", "-force", "-batch", "-")
	cmd.Stdin = strings.NewReader("link del u0\nlink del other\nlink del blue\nlink del red\nlink del br9\n" +
		"rule del from 192.0.2.5 lookup 100\nrule del from 192.0.2.5 lookup 501\nroute flush table 500\n")
	_ = cmd.Run() // as most of it is not there
	_ = exec.Command("ip", "-6", "route", "flush", "table", "500").Run()
}

func newAttacher(t *testing.T) *Attacher {
	return New(Config{Journal: t.TempDir(), Patience: 4 * time.Second, Logger: slog.New(slog.DiscardHandler)})
}

// seconds of lifetimes count down, and next hops get other ids.
var passing = regexp.MustCompile(`\b\d+sec\b`)

// show is what commands of ip(8) print, line by line and sorted, with continued lines joined.
func show(t *testing.T, commands ...string) []string {
	t.Helper()
	batches := map[string]string{}
	for _, c := range commands {
		of := "-4"
		if six, ok := strings.CutPrefix(c, "-6 "); ok {
			of, c = "-6", six
		}
		batches[of] += c + "\n"
	}
	var out []byte
	for of, batch := range batches {
		cmd := exec.Command("ip", "-d", of, "-batch", "-")
		cmd.Stdin = strings.NewReader(batch)
		said, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("ip -d %s: %v: %s", batch, err, said)
		}
		out = append(out, said...)
	}
	var lines []string
	for line := range strings.Lines(string(out)) {
		text := strings.Join(strings.Fields(passing.ReplaceAllString(line, "N")), " ")
		switch {
		case text == "":
		case strings.HasPrefix(line, "\t") || strings.HasPrefix(line, " "):
			lines[len(lines)-1] += " " + text
		default:
			lines = append(lines, text)
		}
	}
	slices.Sort(lines)
	return lines
}

// shown is all that an administrator could have set, as ip(8) shows it.
func shown(t *testing.T) []string {
	t.Helper()
	lines := show(t, "addr show dev u0", "-6 addr show dev u0", "route show table all", "-6 route show table all", "rule show", "-6 rule show")
	// The order of addresses is not theirs to set.
	var all []string
	for _, line := range lines {
		if strings.Contains(line, "link/ether") {
			all = append(all, strings.Split(line, " inet")...)
		} else {
			all = append(all, line)
		}
	}
	return all
}

// snapshot is the same as the kernel tells of it, which takes a hundredth of the time.
func snapshot(t *testing.T) []string {
	t.Helper()
	r, err := openRtnetlink()
	if err != nil {
		t.Fatal(err)
	}
	defer r.close()
	v, err := r.observe()
	if err != nil {
		t.Fatal(err)
	}
	tables, err := r.ruleTables()
	if err != nil {
		t.Fatal(err)
	}
	all := []string{fmt.Sprint("tables of rules ", tables)}
	for _, l := range v.links {
		if l.name == "u0" {
			all = append(all, fmt.Sprintf("u0 up=%t in a master=%t", l.up, l.master != 0))
		}
	}
	for _, a := range v.addresses {
		state := ""
		if a.flags&unix.IFA_F_TENTATIVE != 0 {
			state = "tentative"
		}
		// Lifetimes count down.
		all = append(all, fmt.Sprintf("address %s flags %x %s %x", a, a.flags, state, a.with(0, nil, unix.IFA_CACHEINFO).bytes()))
	}
	for _, r := range v.routes {
		all = append(all, fmt.Sprintf("route %s via %s link %v protocol %d kind %d %x", r, r.routers, r.links, r.protocol, r.kind, r.bytes()))
	}
	return all
}

// settled is what is seen when no IPv6 address is checked for duplicates any more.
func settled(t *testing.T, see func(*testing.T) []string) []string {
	t.Helper()
	var last []string
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		last = see(t)
		if !strings.Contains(strings.Join(last, ""), "tentative") {
			break
		}
	}
	return last
}

// wantAsBefore waits until what is seen is what was.
func wantAsBefore(t *testing.T, what string, want []string, see func(*testing.T) []string) {
	t.Helper()
	var differs string
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if differs = diff(want, see(t)); differs == "" {
			return
		}
	}
	t.Errorf("%s: not as before\n%s", what, differs)
}

// diff lists the lines that only one of two has.
func diff(want, got []string) string {
	var b strings.Builder
	for _, line := range want {
		if !slices.Contains(got, line) {
			fmt.Fprintf(&b, "- %s\n", line)
		}
	}
	for _, line := range got {
		if !slices.Contains(want, line) {
			fmt.Fprintf(&b, "+ %s\n", line)
		}
	}
	return b.String()
}

// mainRoutes are the routes of u0 in table main or a VRF, less those that nobody carries.
func mainRoutes(t *testing.T, of string) []string {
	t.Helper()
	var routes []string
	for _, line := range show(t, "route show "+of, "-6 route show "+of) {
		kernels := regexp.MustCompile(`^(local|broadcast|anycast|multicast|unreachable) `).MatchString(line)
		if strings.Contains(line, "u0") && !kernels && !strings.Contains(line, "fe80::/64") && !strings.Contains(line, "dev other") {
			routes = append(routes, regexp.MustCompile(` table \S+`).ReplaceAllString(line, ""))
		}
	}
	return routes
}
