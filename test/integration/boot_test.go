// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ovn-uplink/ovn-uplink/test/lab"
)

// unready waits until an agent says that it is not ready, and returns why.
func (c *cluster) unready(n *lab.Node, address string) (why string) {
	c.t.Helper()
	c.must(lab.Eventually(c.t.Context(), 20*time.Second, func(ctx context.Context) error {
		out, err := n.Exec(ctx, "curl", "-sS", "-m", "3", "-w", "%{http_code}", "http://"+address+"/readyz")
		if err != nil {
			return err
		}
		if !strings.HasSuffix(out, "503") {
			return fmt.Errorf("it is ready: %s", out)
		}
		why = strings.TrimSuffix(out, "503")
		return nil
	}))
	return why
}

// logged waits until an agent's log has a text.
func (c *cluster) logged(p *lab.Process, text string) {
	c.t.Helper()
	c.must(lab.Eventually(c.t.Context(), 20*time.Second, func(context.Context) error {
		if log := p.Log(100_000); !strings.Contains(log, text) {
			return fmt.Errorf("%s did not log %q", p.Name, text)
		}
		return nil
	}))
}

func (c *cluster) healthy(n *lab.Node, address string) {
	c.t.Helper()
	out, err := n.Exec(c.t.Context(), "curl", "-sS", "-m", "3", "-w", "%{http_code}", "http://"+address+"/healthz")
	if err != nil || !strings.HasSuffix(out, "200") {
		c.t.Errorf("an agent that waits is not healthy: %s %v", out, err)
	}
}

// Nothing is there at boot: no API server, then no CRDs, no Open vSwitch, no host name. The agents wait, say for
// what, stay healthy, and start as soon as it is there.
func TestBootWithoutAnything(t *testing.T) {
	t.Parallel()
	c := &cluster{Lab: lab.ForTest(t, lab.Options{NoAPIServer: true}), t: t}
	c.connect()
	p, err := c.Pair(t.Context(), "worker-b", lab.PairSpec{})
	c.must(err)
	c.defaultGatewayBridge(p.Card)
	c.vsctl(p.Card, "remove", "Open_vSwitch", ".", "external_ids", "host-k8s-nodename")
	c.must(p.Card.OVS.StopVswitchd(t.Context()))
	c.must(p.Card.OVS.StopDB(t.Context()))

	host := c.start(p.Host, "host-agent", "--node-name", "worker-b", "--sysfs-root", p.Host.SysfsRoot())
	card := c.start(p.Card, "dpu-agent", cardArgs(p)...)
	c.logged(host, "the API server cannot be reached")
	c.logged(card, "for Open vSwitch")
	t.Log("host:", c.unready(p.Host, hostHealth), "card:", c.unready(p.Card, dpuHealth))
	c.healthy(p.Host, hostHealth)
	c.healthy(p.Card, dpuHealth)

	c.must(p.Card.OVS.StartDB(t.Context()))
	c.must(p.Card.OVS.StartVswitchd(t.Context()))
	c.ip(p.Card, "link", "set", "br-ext", "up")
	c.logged(card, "external_ids:host-k8s-nodename=NODE")
	c.vsctl(p.Card, "set", "Open_vSwitch", ".", "external_ids:host-k8s-nodename=worker-b")
	c.logged(card, "the API server cannot be reached")

	c.must(c.StartAPIServer(t.Context()))
	c.logged(host, "the CRD is not installed")
	c.logged(card, "the CRD is not installed")
	c.healthy(p.Host, hostHealth)
	c.healthy(p.Card, dpuHealth)
	c.installCRDs()
	c.ready(p.Card, dpuHealth)
	if why := c.unready(p.Host, hostHealth); !strings.Contains(why, "waiting for Node worker-b") {
		t.Errorf("not ready because of %q", why)
	}
	c.node("worker-b", nil)
	c.ready(p.Host, hostHealth)

	c.uplink("blue", nodeConfig("ens1f0", nil))
	c.within(settled, "blue", "worker-b", resolved)
	for _, agent := range []*lab.Process{host, card} {
		if !agent.Running() {
			t.Errorf("%s ended while it waited", agent.Name)
		}
	}
}

// The API server goes away and comes back: nothing is lost, what changed meanwhile is published.
func TestAPIServerRestart(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	n := c.host("worker-a", nil)
	c.uplink("blue", nodeConfig("e0", nil))
	agent := c.hostAgent(n)
	c.within(settled, "blue", n.Name, hostReady)
	c.must(c.StopAPIServer(t.Context()))
	if why := c.unready(n, hostHealth); !strings.Contains(why, "the API server cannot be reached") {
		t.Errorf("not ready because of %q", why)
	}
	c.healthy(n, hostHealth)
	c.ip(n, "addr", "add", "2001:db8::5/64", "dev", "e0", "nodad")
	pause(t, 3*time.Second)
	c.must(c.StartAPIServer(t.Context()))
	c.within(40*time.Second, "blue", n.Name, addresses("192.0.2.5/24", "2001:db8::5/64"))
	c.ready(n, hostHealth)
	c.must(agent.Stop(t.Context())) // orderly, on SIGTERM
}

// A mistake in the call ends with 2 and says what is wrong; it never panics and never starts.
func TestUsage(t *testing.T) {
	t.Parallel()
	lab.NeedRoot(t)
	dir := t.TempDir()
	bad := filepath.Join(dir, "bad.kubeconfig")
	if err := os.WriteFile(bad, []byte("{not yaml"), 0o600); err != nil {
		t.Fatal(err)
	}
	good := filepath.Join(dir, "good.kubeconfig")
	if err := os.WriteFile(good, []byte("apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: https://127.0.0.1:1}}]\ncontexts: [{name: c, context: {cluster: c}}]\ncurrent-context: c\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	badMap := filepath.Join(dir, "map.yaml")
	if err := os.WriteFile(badMap, []byte("- {representor: pf0hpf, mac: nonsense}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		agent, args, want string
	}{
		{"host-agent", "--no-such-flag", "unknown flag"},
		{"host-agent", "frobnicate", "frobnicate"},
		{"host-agent", "", "--node-name is required"},
		{"host-agent", "--node-name w", "no --kubeconfig given and not running in a pod"},
		{"host-agent", "--node-name w --kubeconfig /does/not/exist", "no such file"},
		{"host-agent", "--node-name w --kubeconfig " + bad, "load kubeconfig"},
		{"host-agent", "--node-name UPPER --kubeconfig " + good, "is not a node name"},
		{"host-agent", "--node-name w --log-level loud --kubeconfig " + good, "must be debug, info, warn or error"},
		{"host-agent", "--node-name w --log-format xml --kubeconfig " + good, "must be text or json"},
		{"host-agent", "--node-name w --settle 5h --kubeconfig " + good, "--settle"},
		{"host-agent", "--node-name w --settle soon --kubeconfig " + good, "--settle"},
		{"host-agent", "--node-name w --resync 1s --kubeconfig " + good, "--resync"},
		{"host-agent", "--node-name w --health-address nowhere --kubeconfig " + good, "--health-address"},
		{"host-agent", "--node-name w --sysfs-root /does/not/exist --kubeconfig " + good, "there is no sysfs at"},
		{"host-agent", "inspect", "name one interface"},
		{"host-agent", "inspect lo -o yaml", "must be text or json"},
		{"host-agent", "cluster --kubeconfig " + good, "--leader-elect-lease-namespace is required"},
		{"host-agent", "cluster --leader-elect-lease-namespace UPPER --kubeconfig " + good, "--leader-elect-lease-namespace"},
		{"host-agent", "cluster --leader-elect-lease-namespace x --leader-elect-lease-name a/b --kubeconfig " + good, "--leader-elect-lease-name"},
		{"host-agent", "cluster --leader-elect=perhaps", "--leader-elect"},
		{"host-agent", "cluster --leader-elect=false --gateway-mode bridged --kubeconfig " + good, "must be shared or local"},
		{"host-agent", "cluster --leader-elect=false --deselected-state-grace 0s --kubeconfig " + good, "--deselected-state-grace"},
		{"host-agent", "cluster --leader-elect=false --settle 5h --kubeconfig " + good, "--settle"},
		{"host-agent", "cluster --leader-elect=false", "no --kubeconfig given and not running in a pod"},
		{"host-agent", "cluster worker-a", "unexpected argument"},
		{"dpu-agent", "--role card --kubeconfig " + good, "must be auto, dpu or all"},
		{"dpu-agent", "--role all --kubeconfig " + good, "--node-name is required"},
		{"dpu-agent", "--role dpu --host-node-name UPPER --kubeconfig " + good, "is not a node name"},
		{"dpu-agent", "--role dpu --ovs-db nonsense --kubeconfig " + good, "method must be unix, tcp or ssl"},
		{"dpu-agent", "--role dpu --representor-map " + badMap + " --kubeconfig " + good, "nonsense"},
		{"dpu-agent", "--role dpu --representor-map /does/not/exist --kubeconfig " + good, "no such file"},
		{"dpu-agent", "--role dpu --devlink-ports " + bad + " --kubeconfig " + good, "bad.kubeconfig"},
		{"dpu-agent", "--role dpu --sysfs-root /does/not/exist --kubeconfig " + good, "there is no sysfs at"},
		{"dpu-agent", "inspect", "say what to inspect"},
		{"dpu-agent", "inspect --mac 00:00:00:00:00:00 --role dpu", "--mac"},
		{"dpu-agent", "inspect --mac 02:00:5e:00:53:01 --vf 3 --role dpu", "need --pf"},
	} {
		t.Run(tc.agent+" "+strings.ReplaceAll(tc.args, dir, ""), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			cmd := exec.CommandContext(ctx, filepath.Join(binaries, tc.agent), strings.Fields(tc.args)...)
			cmd.Env = []string{}
			out, err := cmd.CombinedOutput()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != 2 {
				t.Errorf("ended with %v, want exit code 2; it said: %s", err, out)
			}
			if !strings.Contains(string(out), tc.want) || strings.Contains(string(out), "goroutine") {
				t.Errorf("said %q, want something with %q", out, tc.want)
			}
		})
	}
}

func (c *cluster) mapFile(content string) string {
	c.t.Helper()
	path := filepath.Join(c.Dir(), "representors.yaml")
	c.writeMap(path, content)
	return path
}

func (c *cluster) writeMap(path, content string) {
	c.t.Helper()
	c.must(os.WriteFile(path+".new", []byte(content), 0o600))
	c.must(os.Rename(path+".new", path))
}
