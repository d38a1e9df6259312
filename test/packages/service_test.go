// SPDX-License-Identifier: Apache-2.0

package packages

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	uplinkclient "github.com/ovn-uplink/ovn-uplink/shared/api/client"
	"github.com/ovn-uplink/ovn-uplink/shared/api/v1alpha1"
	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
	"github.com/ovn-uplink/ovn-uplink/test/lab"
	"github.com/ovn-uplink/ovn-uplink/test/manifests"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The units are what systemd takes for right, and how exposed it takes them to be, from 0 to 10.
func TestUnits(t *testing.T) {
	t.Parallel()
	r := idleRoot(t, amd64Base)
	release := first
	release.archs = "amd64"
	r.install(release.build(t, "dpu-agent"), "ovn-uplink-dpu-agent")
	if out := r.must("systemd-analyze", "verify", "--man=no", agentUnit, timerUnit, "ovn-uplink-rotate.service"); strings.Contains(out, "ovn-uplink") {
		t.Errorf("systemd-analyze verify: %s", out)
	}
	overall := regexp.MustCompile(`Overall exposure level for (\S+): ([0-9.]+)`)
	for unit, most := range map[string]float64{agentUnit: 2.0, "ovn-uplink-rotate.service": 2.0} {
		out := r.must("systemd-analyze", "security", "--offline=true", "--no-pager", unit)
		m := overall.FindStringSubmatch(out)
		if m == nil {
			t.Fatalf("systemd-analyze security: %s", out)
		}
		level, err := strconv.ParseFloat(m[2], 64)
		must(t, err)
		t.Logf("%s: exposure %.1f", unit, level)
		if level > most {
			t.Errorf("%s is more exposed than %.1f:\n%s", unit, most, out)
		}
	}
}

// install copies a package into the root and installs it, without a repository.
func (r *root) install(debs, name string) {
	r.t.Helper()
	raw, err := os.ReadFile(deb(r.t, debs, name, strings.TrimSpace(r.must("dpkg", "--print-architecture"))))
	must(r.t, err)
	r.file(name+".deb", string(raw))
	r.must("dpkg", "--install", "/srv/"+name+".deb")
}

// The agent does its work as the service that the package installs, under all that the unit forbids it: it follows the
// API server, finds the card's bridge, programs a network's gateway, and a pod gets out by it.
func TestServiceProgramsAGateway(t *testing.T) {
	t.Parallel()
	c := newCard(t)
	r := bootRoot(t, surroundings{netns: c.pair.Card.NetNS, dir: filepath.Dir(filepath.Dir(c.pair.Card.Dir()))})
	release := first
	release.archs, release.bin = "amd64", binary(t, "amd64")
	r.install(release.build(t, "dpu-agent"), "ovn-uplink-dpu-agent")
	run := c.pair.Card.OVS.RunDir()
	r.write("/etc/default/ovn-uplink-dpu-agent", "644", fmt.Sprintf("DPU_AGENT_OPTIONS=\"--role dpu --devlink-ports %s --sysfs-root %s\"\nOVS_RUNDIR=%[3]s\nOVN_RUNDIR=%[3]s\n",
		c.pair.Card.DevlinkFile(), c.pair.Card.SysfsRoot(), run))
	kubeconfig, err := c.CertificateKubeconfig(manifests.DPUUser+c.node, manifests.DPUGroup)
	must(t, err)
	raw, err := os.ReadFile(kubeconfig)
	must(t, err)
	r.write("/etc/ovn-uplink/kubeconfig", "600", string(raw))
	r.must("systemctl", "start", agentUnit)
	r.unit("enabled", "active")
	t.Cleanup(func() {
		if t.Failed() {
			out, _ := r.run("journalctl", "--no-pager", "-u", agentUnit)
			t.Logf("the service's journal: %s", tail(out))
		}
	})

	network, err := c.Network(t.Context(), lab.NetworkSpec{CUDN: "blue"}, c.zone)
	must(t, err)
	must(t, c.CreateCUDN(t.Context(), network.Spec, "tenant-blue"))
	c.conditions(t, "Resolved", "GatewayReady")
	pod, err := network.Pod(t.Context(), c.zone, "a")
	must(t, err)
	must(t, lab.Eventually(t.Context(), 20*time.Second, func(ctx context.Context) error {
		_, err := pod.Exec(ctx, "ping", "-c", "1", "-W", "1", lab.InternetAddress.String())
		return err
	}))

	// That it was confined while it did all this.
	pid := strings.TrimSpace(r.must("systemctl", "show", "-p", "MainPID", "--value", agentUnit))
	status := r.must("cat", "/proc/"+pid+"/status")
	for _, want := range []string{`CapEff:\t0000000000001000`, `CapBnd:\t0000000000001000`, `NoNewPrivs:\t1`, `Seccomp:\t2`} {
		if !regexp.MustCompile(want).MatchString(status) {
			t.Errorf("the agent's process has no %s:\n%s", want, status)
		}
	}
	// The service's mounts are below its root, not the one of its mount namespace.
	within := func(script string) (string, error) {
		return r.run("nsenter", "--target", pid, "--mount", "--root", "--wd", "sh", "-c", script)
	}
	if out, err := within("for f in /usr/x /etc/x /etc/ovn-uplink/x /var/lib/x /proc/sys/kernel/x; do touch $f 2>/dev/null && echo $f; done; true"); err != nil || out != "" {
		t.Errorf("the service can write %s (%v)", out, err)
	}
	if out, err := within("touch /var/lib/ovn-uplink/x && cat /proc/sys/net/ipv4/conf/all/rp_filter >/proc/sys/net/ipv4/conf/all/rp_filter"); err != nil {
		t.Errorf("the service cannot write what it has to: %v: %s", err, out)
	}
	journal := r.must("journalctl", "--no-pager", "-u", agentUnit)
	for line := range strings.Lines(journal) {
		for _, bad := range []string{"not permitted", "ermission denied", "ead-only file system", "forbidden"} {
			if strings.Contains(line, bad) {
				t.Errorf("the agent was refused something: %s", line)
			}
		}
	}
	// Killed, it comes back, and traffic does not notice.
	r.must("systemctl", "kill", "--signal=KILL", agentUnit)
	r.eventually(20*time.Second, func() error {
		now := strings.TrimSpace(r.must("systemctl", "show", "-p", "MainPID", "--value", agentUnit))
		if now == pid || now == "0" {
			return fmt.Errorf("the service's process is %s", now)
		}
		return nil
	})
	if out, err := pod.Exec(t.Context(), "ping", "-c", "1", "-W", "1", lab.InternetAddress.String()); err != nil {
		t.Errorf("the gateway is gone after a restart: %v: %s", err, out)
	}
}

// card is a lab with a host and its DPU, whose agent is under test; the host's agent runs.
type card struct {
	*lab.Lab
	node   string
	pair   *lab.Pair
	zone   *lab.Zone
	client uplinkclient.Interface
}

func newCard(t *testing.T) *card {
	t.Helper()
	c := &card{Lab: lab.ForTest(t, lab.Options{}), node: "worker-b"}
	ctx := t.Context()
	must(t, manifests.Install(ctx, c.Lab, repository))
	must(t, c.ApplyFile(ctx, filepath.Join(repository, "deploy/host/ovn-kubernetes-crds")))
	var err error
	c.client, err = uplinkclient.NewForConfig(c.RESTConfig())
	must(t, err)
	// The lab calls OVN's rows after the machine that OVN runs on, and the CNI after the node.
	c.pair, err = c.Pair(ctx, c.node+"-host", lab.PairSpec{Card: c.node})
	must(t, err)
	_, err = c.pair.Card.OVS.Vsctl(ctx, "set", "Open_vSwitch", ".", "external_ids:host-k8s-nodename="+c.node,
		"external_ids:ovn-bridge-mappings=physnet:br-ex")
	must(t, err)
	must(t, c.CreateNode(ctx, c.node, nil))
	c.zone, err = c.pair.Card.StartOVN(ctx, lab.OVNSpec{})
	must(t, err)
	kubeconfig, err := c.PodKubeconfig(ctx, manifests.Namespace, manifests.HostAccount, c.node)
	must(t, err)
	_, err = c.pair.Host.Start(ctx, "host-agent", []string{program(t, runtime.GOARCH, "host-agent"), "--kubeconfig", kubeconfig, "--node-name", c.node, "--sysfs-root", c.pair.Host.SysfsRoot()}, nil)
	must(t, err)
	_, err = c.client.K8sV1alpha1().Uplinks().Create(ctx, &v1alpha1.Uplink{
		ObjectMeta: metav1.ObjectMeta{Name: "tenant-blue"},
		Spec: v1alpha1.UplinkSpec{NodeConfigs: []v1alpha1.UplinkNodeConfig{{
			Type: v1alpha1.OVSBridge, HostInterfaceName: v1alpha1.InterfaceName(c.pair.Spec.Interface),
		}}},
	}, metav1.CreateOptions{})
	must(t, err)
	return c
}

// conditions waits until the card's state has the conditions.
func (c *card) conditions(t *testing.T, types ...string) {
	t.Helper()
	must(t, lab.Eventually(t.Context(), 30*time.Second, func(ctx context.Context) error {
		state, err := c.client.K8sV1alpha1().UplinkStates().Get(ctx, uplinkstate.Name("tenant-blue", c.node), metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, name := range types {
			if !meta.IsStatusConditionTrue(state.Status.Conditions, name) {
				return fmt.Errorf("no %s: %+v", name, state.Status.Conditions)
			}
		}
		return nil
	}))
}
