// SPDX-License-Identifier: Apache-2.0

package openflow

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ovn-uplink/ovn-uplink/test/lab"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const testMAC = "02:00:00:00:01:01"

func mac(t testing.TB, s string) net.HardwareAddr {
	t.Helper()
	m, err := net.ParseMAC(s)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

func prefixes(s ...string) []netip.Prefix {
	var all []netip.Prefix
	for _, p := range s {
		all = append(all, netip.MustParsePrefix(p))
	}
	return all
}

// dual is an Uplink with both families, as the rig's.
func dual(t testing.TB) Bridge {
	return Bridge{
		Name: "br0", HostPort: Local, Uplinks: []uint32{1}, Patch: 2, MAC: mac(t, testMAC),
		Addresses:  []netip.Addr{addr("192.0.2.10"), addr("2001:db8:1::10")},
		Gateways:   []netip.Addr{addr("192.0.2.1"), addr("2001:db8:1::1")},
		Transit:    prefixes("100.91.0.0/16", "fd91::/64"),
		Unroutable: prefixes("10.96.0.0/16", "fd96::/112", "100.92.0.0/30"),
		Zone:       64200,
	}
}

// eachOVS runs a test on every version of Open vSwitch that the tests of OVN have.
func eachOVS(t *testing.T, test func(*testing.T, *lab.OVSBuild)) {
	for _, version := range lab.OVNVersions(t) {
		t.Run(version.Name, func(t *testing.T) { test(t, version.Build) })
	}
}

// rig is a node whose bridge br0 has a wire to one machine, and a patch port through which another machine plays
// OVN: it has the Uplink's MAC.
type rig struct {
	lab             *lab.Lab
	node, wire, ovn *lab.Node
	ofctl           string
}

func newRig(t *testing.T, build *lab.OVSBuild) *rig {
	t.Helper()
	r := &rig{lab: lab.ForTest(t, lab.Options{NoAPIServer: true, OVS: build}), ofctl: "ovs-ofctl"}
	if build != nil {
		r.ofctl = filepath.Join(build.Path, "ovs-ofctl")
	}
	ctx := t.Context()
	r.node, r.wire, r.ovn = made(t, r.lab.AddNode, "n"), made(t, r.lab.AddExternal, "w"), made(t, r.lab.AddExternal, "o")
	do(t, r.node.StartOVS(ctx), r.lab.Wire(ctx, r.node, "up0", r.wire, "eth0"),
		r.lab.Wire(ctx, r.node, "o0", r.ovn, "eth0"))
	r.vsctl(t, "add-br", "br0", "--", "set", "bridge", "br0", "datapath_type=netdev", "other_config:hwaddr="+testMAC,
		"--", "add-port", "br0", "up0", "--", "set", "interface", "up0", "ofport_request=1")
	r.vsctl(t, "add-br", "brn", "--", "set", "bridge", "brn", "datapath_type=netdev", "--", "add-port", "brn", "o0")
	r.patch(t, 2)
	r.ip(t, r.ovn, "link set eth0 address "+testMAC)
	// The kernel sees the frames of the userspace datapath's ports as well, and would answer for the bridge.
	for _, n := range []*lab.Node{r.node, r.ovn} {
		_, err := n.Exec(ctx, "sysctl", "-qw", "net.ipv4.conf.all.arp_ignore=1")
		do(t, err)
	}
	r.hostUp(t)
	r.ip(t, r.wire, "addr add 192.0.2.1/24 dev eth0", "addr add 2001:db8:1::1/64 dev eth0 nodad",
		"link set lo up", "addr add 203.0.113.9/32 dev lo", "addr add 2001:db8:9::9/128 dev lo nodad")
	r.ip(t, r.ovn, "link set lo up", "addr add 100.91.0.6/32 dev eth0", "addr add fd91::6/128 dev eth0 nodad",
		"route add 192.0.2.1/32 dev eth0", "route add 2001:db8:1::1/128 dev eth0",
		"route add default via 192.0.2.1 dev eth0 onlink src 100.91.0.6",
		"route add default via 2001:db8:1::1 dev eth0 onlink src fd91::6",
		"neigh add 192.0.2.1 dev eth0 lladdr "+r.mac(t, r.wire), "neigh add 2001:db8:1::1 dev eth0 lladdr "+r.mac(t, r.wire))
	return r
}

// hostUp configures the bridge's interface, which ovs-vswitchd makes anew when it starts.
func (r *rig) hostUp(t *testing.T) {
	t.Helper()
	r.ip(t, r.node, "link set br0 up", "addr replace 192.0.2.10/24 dev br0", "addr replace 2001:db8:1::10/64 dev br0 nodad",
		"route replace default via 192.0.2.1", "route replace default via 2001:db8:1::1 dev br0")
}

// patch makes the patch port with a number, in place of the one there is.
func (r *rig) patch(t *testing.T, number int) {
	t.Helper()
	r.vsctl(t, "--if-exists", "del-port", "br0", "pn", "--", "--if-exists", "del-port", "brn", "np")
	r.vsctl(t, "add-port", "br0", "pn", "--", "set", "interface", "pn", "type=patch", "options:peer=np",
		"ofport_request="+strconv.Itoa(number), "--", "add-port", "brn", "np", "--",
		"set", "interface", "np", "type=patch", "options:peer=pn")
}

func (r *rig) programmer(t *testing.T) *Programmer {
	t.Helper()
	return New(Config{RunDir: r.node.OVS.RunDir(), Program: r.ofctl})
}

// run runs a programmer until the test ends and returns its drifts.
func run(t *testing.T, p *Programmer) <-chan string {
	t.Helper()
	drifts := make(chan string, 100)
	p.OnDrift(func(bridge string) { drifts <- bridge })
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("run: %v", err)
		}
	})
	return drifts
}

func (r *rig) vsctl(t testing.TB, args ...string) string {
	t.Helper()
	out, err := r.node.OVS.Vsctl(t.Context(), args...)
	do(t, err)
	return strings.TrimSpace(out)
}

func (r *rig) ofctlRun(t testing.TB, args ...string) string {
	t.Helper()
	out, err := r.node.OVS.Ofctl(t.Context(), args...)
	do(t, err)
	return out
}

func (r *rig) ip(t testing.TB, n *lab.Node, lines ...string) {
	t.Helper()
	for _, line := range lines {
		args := strings.Fields(line)
		if strings.Contains(line, "::") {
			args = append([]string{"-6"}, args...)
		}
		if _, err := n.IP(t.Context(), args...); err != nil {
			t.Fatalf("%s: ip %s: %v", n.Name, line, err)
		}
	}
}

func (r *rig) mac(t testing.TB, n *lab.Node) string {
	t.Helper()
	out, err := n.Exec(t.Context(), "cat", "/sys/class/net/eth0/address")
	do(t, err)
	return strings.TrimSpace(out)
}

func ping(ctx context.Context, n *lab.Node, to string) error {
	_, err := n.Exec(ctx, "ping", "-c1", "-W2", to)
	return err
}

// program programs a bridge and fails the test when that fails.
func program(t *testing.T, p *Programmer, b Bridge) Change {
	t.Helper()
	change, err := p.Program(t.Context(), b)
	do(t, err)
	return change
}

func made(t testing.TB, f func(context.Context, string) (*lab.Node, error), name string) *lab.Node {
	t.Helper()
	n, err := f(t.Context(), name)
	do(t, err)
	return n
}

func do(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func eventually(t testing.TB, d time.Duration, check func(context.Context) error) {
	t.Helper()
	do(t, lab.Eventually(t.Context(), d, check))
}

// services are n of them, on ports from 20000, on the Uplink's address of IPv4.
func services(n int) []Service {
	all := make([]Service, n)
	for i := range all {
		all[i] = Service{Protocol: TCP, Address: addr("192.0.2.10"), Port: uint16(20000 + i), Target: addr("100.91.0.6")}
	}
	return all
}

func flowText(flows []Flow) string {
	var b strings.Builder
	for _, f := range flows {
		fmt.Fprintln(&b, f)
	}
	return b.String()
}
