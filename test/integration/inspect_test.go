// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ovn-uplink/ovn-uplink/test/lab"
)

// What inspect prints is what the agents decide with: the whole chain, each rejected candidate and why.
func TestInspect(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	p := c.pair("worker-b")
	n := c.regular("worker-a", lab.RegularSpec{})
	c.uplink("blue", nodeConfig("ens1f0", nil))
	c.hostAgent(p.Host)
	c.within(settled, "blue", "worker-b", hostReady)
	kubeconfig, err := c.NodeKubeconfig(lab.AdminUser)
	c.must(err)

	card := cardArgs(p)[1:] // inspect has no --gateway: it programs nothing
	for name, tc := range map[string]struct {
		node *lab.Node
		argv []string
		fail bool
		want []string
	}{
		"host interface": {p.Host, []string{"host-agent", "inspect", "ens1f0", "--sysfs-root", p.Host.SysfsRoot()}, false, []string{
			"MAC            02:42:ac:1c:00:03",
			"address        172.28.0.3/16                      chosen",
			"gateway        172.28.0.1 (metric 0, protocol 3)  chosen",
			"PCI function   PF 0, MAC of the PF 02:42:ac:1c:00:03",
			"would publish  HostDataReady=True, MAC 02:42:ac:1c:00:03, addresses 172.28.0.3/16, gateways 172.28.0.1",
		}},
		"host interface that is missing": {p.Host, []string{"host-agent", "inspect", "nope0"}, true, []string{
			"would publish  HostDataReady=False, HostInterfaceNotFound: interface nope0 was not found",
		}},
		"card, by Uplink": {p.Card, append([]string{"dpu-agent", "inspect", "blue", "--kubeconfig", kubeconfig}, card...), false, []string{
			"interface    ens1f0, MAC 02:42:ac:1c:00:03",
			"representor  pf0hpf, found by host function, verified by MAC",
			"bridge       br-ext, found by host function",
			"host port    pf0hpf, OpenFlow port 2",
			"uplink port  p0",
			"  rejected   br-ext/br-ext (the bridge's own port)",
			"  rejected   br-ext/pf0hpf (host-facing representor)",
			"result       Resolved=True",
		}},
		"card, by hand": {p.Card, append([]string{"dpu-agent", "inspect", "--mac", "02:42:ac:1c:00:03", "--pf", "0", "--pf-mac", "02:42:ac:1c:00:03"}, card...), false, []string{
			"interface    of the host, MAC 02:42:ac:1c:00:03", "result       Resolved=True",
		}},
		"card, another PF": {p.Card, append([]string{"dpu-agent", "inspect", "--mac", "02:42:ac:1c:00:99", "--pf", "0"}, card...), true, []string{
			"representor  none", "  rejected   pf0hpf", "its function has MAC address 02:42:ac:1c:00:03, not 02:42:ac:1c:00:99",
			"result       Resolved=False, BridgeNotFound",
		}},
		"regular node": {n.Node, []string{"dpu-agent", "inspect", "--role", "all", "--interface", "ovsbr1", "--ovs-db", n.OVS.DB()}, false, []string{
			"bridge       ovsbr1, found by its name", "host port    ovsbr1, OpenFlow port 65534", "uplink port  up0", "result       Resolved=True",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			argv := append([]string{filepath.Join(binaries, tc.argv[0])}, tc.argv[1:]...)
			out, err := tc.node.Exec(t.Context(), argv...)
			if (err != nil) != tc.fail {
				t.Fatalf("ended with %v", err)
			}
			if err != nil {
				out = err.Error()
			}
			for _, want := range tc.want {
				if !strings.Contains(out, want) {
					t.Errorf("no %q in:\n%s", want, out)
				}
			}
			if tc.fail {
				return
			}
			out, err = tc.node.Exec(t.Context(), append(argv, "-o", "json")...)
			if err != nil || !json.Valid([]byte(out)) {
				t.Errorf("-o json: %v: %s", err, out)
			}
		})
	}
}
