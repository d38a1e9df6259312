// SPDX-License-Identifier: Apache-2.0

package packages

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ovn-uplink/ovn-uplink/test/lab"
	"github.com/ovn-uplink/ovn-uplink/test/manifests"
)

// finding is a line of check-card.sh -o json.
type finding struct {
	Result, Check, Message, Hint string
}

// A card that is as it should be has no FAIL; what is broken is found, and the line says what to do.
func TestCheckCard(t *testing.T) {
	t.Parallel()
	c := newCard(t)
	kubeconfig, err := c.CertificateKubeconfig(manifests.DPUUser+c.node, manifests.DPUGroup)
	must(t, err)
	must(t, os.Chmod(kubeconfig, 0o600))
	// The kernel here has no card to show, so devlink is a stand-in that says what one does.
	tools := t.TempDir()
	mode := filepath.Join(tools, "mode")
	must(t, os.WriteFile(mode, []byte("switchdev"), 0o644))
	must(t, os.WriteFile(filepath.Join(tools, "devlink"), fmt.Appendf(nil, `#!/bin/sh
case "$*" in
'port show') echo 'pci/%[1]s/65535: type eth netdev p0 flavour physical port 0 splittable false' ;;
'dev eswitch show pci/%[1]s') echo "pci/%[1]s: mode $(cat %[2]s) inline-mode none encap-mode basic" ;;
*) exit 1 ;;
esac
`, lab.PairAddress, mode), 0o755))
	script, err := filepath.Abs(filepath.Join(repository, "hack/bluefield/check-card.sh"))
	must(t, err)
	run := func(options ...string) (string, error) {
		args := []string{"env", "PATH=" + tools + ":" + os.Getenv("PATH"), script, "--sysfs-root", c.pair.Card.SysfsRoot(), "--kubeconfig", kubeconfig}
		return c.pair.Card.Exec(t.Context(), append(args, options...)...)
	}
	before := state(t, c)
	text, err := run()
	if err != nil {
		t.Fatalf("the card fails: %v", err)
	}
	t.Logf("\n%s", text)
	for _, want := range []string{
		"ok    eswitch       pci/" + lab.PairAddress + " is in mode switchdev",
		"ok    representors  1 of the host: pf0hpf",
		"ok    bridge        br-ext: to the wire p0, of the host pf0hpf",
		"ok    mtu           br-ext: 1500 on all of it",
		"ok    node          the host is the node worker-b",
		"ok    ovn-nb ",
		"ok    certificate   valid until",
		"ok    apiserver     https://",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no line %q", want)
		}
	}
	if after := state(t, c); after != before {
		t.Errorf("the check changed something:\n%s\n%s", before, after)
	}
	vsctl := func(args ...string) func() {
		return func() {
			t.Helper()
			_, err := c.pair.Card.OVS.Vsctl(t.Context(), args...)
			must(t, err)
		}
	}
	write := func(content string) func() { return func() { must(t, os.WriteFile(mode, []byte(content), 0o644)) } }
	ip := func(args ...string) func() {
		return func() {
			t.Helper()
			_, err := c.pair.Card.IP(t.Context(), args...)
			must(t, err)
		}
	}
	nothing := func() {}
	for _, test := range []struct {
		name, result, check, says string
		harm, mend                func()
		options                   []string
	}{
		{"legacy mode", "FAIL", "eswitch", "is in mode legacy", write("legacy"), write("switchdev"), nil},
		{"no port to the wire", "FAIL", "bridge", "no bridge connects", vsctl("del-port", "p0"), vsctl("add-port", "br-ext", "p0"), nil},
		{"no such bridge", "FAIL", "bridge", "there is no bridge br-none", nothing, nothing, []string{"--bridge", "br-none"}},
		{"no host's node", "FAIL", "node", "host-k8s-nodename is not set", vsctl("remove", "Open_vSwitch", ".", "external_ids", "host-k8s-nodename"),
			vsctl("set", "Open_vSwitch", ".", "external_ids:host-k8s-nodename="+c.node), nil},
		{"another MTU", "warn", "mtu", "p0=1400", ip("link", "set", "p0", "mtu", "1400"), ip("link", "set", "p0", "mtu", "1500"), nil},
		{"bridge down", "warn", "bridge", "the interface br-ext itself is down", ip("link", "set", "br-ext", "down"), ip("link", "set", "br-ext", "up"), nil},
		{"readable key", "warn", "kubeconfig", "others than root can read", func() { must(t, os.Chmod(kubeconfig, 0o644)) }, func() { must(t, os.Chmod(kubeconfig, 0o600)) }, nil},
		{"no kubeconfig", "warn", "kubeconfig", "there is no /nowhere", nothing, nothing, []string{"--kubeconfig", "/nowhere"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.harm()
			defer test.mend()
			r := &root{t: t}
			r.eventually(startTime, func() error { // Open vSwitch tells of links a moment later
				out, err := run(append(test.options, "-o", "json")...)
				if (err != nil) != (test.result == "FAIL") {
					return fmt.Errorf("result %w: %s", err, out)
				}
				if err != nil { // the output is in the error
					out = err.Error()[strings.Index(err.Error(), "["):]
					out = out[:strings.LastIndex(out, "]")+1]
				}
				var all []finding
				if err := json.Unmarshal([]byte(out), &all); err != nil {
					return fmt.Errorf("%w: %s", err, out)
				}
				for _, f := range all {
					if f.Result == test.result && f.Check == test.check && strings.Contains(f.Message, test.says) && f.Hint != "" {
						return nil
					}
				}
				return fmt.Errorf("no such finding: %+v", all)
			})
		})
	}
}

// state is what Open vSwitch has configured.
func state(t *testing.T, c *card) string {
	t.Helper()
	out, err := c.pair.Card.OVS.Vsctl(t.Context(), "show")
	must(t, err)
	return out
}
