// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	uplinkclient "github.com/ovn-uplink/ovn-uplink/shared/api/client"
	"github.com/ovn-uplink/ovn-uplink/shared/api/v1alpha1"
	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
	"github.com/ovn-uplink/ovn-uplink/test/lab"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
)

const crds = "../../deploy/host/chart/crds"

// binaries is where the agents under test are.
var binaries string

func TestMain(m *testing.M) {
	flag.Parse()
	if os.Geteuid() != 0 || testing.Short() {
		os.Exit(m.Run()) // every test is skipped by the lab, with the reason
	}
	if binaries = os.Getenv(lab.AgentsVariable); binaries != "" {
		os.Exit(m.Run())
	}
	dir, err := os.MkdirTemp("", "ovn-uplink-bin")
	if err != nil {
		panic(err)
	}
	binaries = dir
	// With the race detector, like the tests; the agent whose weight is measured as it is shipped.
	run("go", "build", "-trimpath", "-buildvcs=false", "-race", "-o", dir, "../../host-agent", "../../dpu-agent")
	run("make", "-s", "-C", "../..", "build", "ARCHES="+runtime.GOARCH, "OUT="+dir)
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// shipped is where below binaries the host agent is as it is shipped.
var shipped = filepath.Join("linux-"+runtime.GOARCH, "host-agent")

func run(program string, args ...string) {
	cmd := exec.Command(program, args...)
	// Make says itself whether it wants cgo.
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "CGO_ENABLED=") })
	if out, err := cmd.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build the agents: %v\n%s", err, out)
		os.Exit(1)
	}
}

// cluster is a lab with the CRDs installed.
type cluster struct {
	*lab.Lab
	t      *testing.T
	client uplinkclient.Interface
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{Lab: lab.ForTest(t, lab.Options{}), t: t}
	c.connect()
	c.installCRDs()
	return c
}

func (c *cluster) connect() {
	client, err := uplinkclient.NewForConfig(c.RESTConfig())
	c.must(err)
	c.client = client
}

func (c *cluster) installCRDs() {
	c.t.Helper()
	files, err := filepath.Glob(filepath.Join(crds, "*.yaml"))
	c.must(err)
	for _, file := range files {
		c.must(c.ApplyFile(c.t.Context(), file))
	}
}

func (c *cluster) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// node makes a Node object.
func (c *cluster) node(name string, labels map[string]string) {
	c.t.Helper()
	c.must(c.CreateNode(c.t.Context(), name, labels))
}

// nodeConfig is one nodeConfig; no labels select every node.
func nodeConfig(iface string, labels map[string]string) v1alpha1.UplinkNodeConfig {
	return v1alpha1.UplinkNodeConfig{
		Type:              v1alpha1.OVSBridge,
		NodeSelector:      metav1.LabelSelector{MatchLabels: labels},
		HostInterfaceName: v1alpha1.InterfaceName(iface),
	}
}

// uplink creates an Uplink, or replaces its nodeConfigs.
func (c *cluster) uplink(name string, configs ...v1alpha1.UplinkNodeConfig) {
	c.t.Helper()
	uplinks := c.client.K8sV1alpha1().Uplinks()
	// The cluster role may write its part in between.
	c.must(retry.RetryOnConflict(retry.DefaultRetry, func() error {
		existing, err := uplinks.Get(c.t.Context(), name, metav1.GetOptions{})
		if err == nil {
			existing.Spec.NodeConfigs = configs
			_, err = uplinks.Update(c.t.Context(), existing, metav1.UpdateOptions{})
			return err
		}
		_, err = uplinks.Create(c.t.Context(), &v1alpha1.Uplink{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       v1alpha1.UplinkSpec{NodeConfigs: configs},
		}, metav1.CreateOptions{})
		return err
	}))
}

// hostAgent starts a host-agent inside a node's namespace and waits until it is ready.
func (c *cluster) hostAgent(n *lab.Node, args ...string) *lab.Process {
	c.t.Helper()
	p := c.start(n, "host-agent", append(append([]string{"--node-name", n.Name}, sysfs(n)...), args...)...)
	c.ready(n, "127.0.0.1:9981")
	return p
}

// sysfs gives an agent the node's simulated sysfs where it has one; else it reads the one of its namespace.
func sysfs(n *lab.Node) []string {
	if _, err := os.Stat(n.SysfsRoot()); err != nil {
		return nil
	}
	return []string{"--sysfs-root", n.SysfsRoot()}
}

// start starts an agent with the administrator's credentials.
func (c *cluster) start(n *lab.Node, agent string, args ...string) *lab.Process {
	c.t.Helper()
	kubeconfig, err := c.NodeKubeconfig(lab.AdminUser)
	c.must(err)
	return c.startAs(n, kubeconfig, agent, args...)
}

func (c *cluster) startAs(n *lab.Node, kubeconfig, agent string, args ...string) *lab.Process {
	c.t.Helper()
	argv := append([]string{filepath.Join(binaries, agent), "--kubeconfig", kubeconfig, "--log-level", "debug"}, args...)
	p, err := n.Start(c.t.Context(), filepath.Base(agent), argv, []string{"GORACE=halt_on_error=1"})
	c.must(err)
	c.t.Cleanup(func() {
		if strings.Contains(p.Log(1<<20), "DATA RACE") {
			c.t.Errorf("%s has a data race:\n%s", p.Name, p.Log(8000))
		}
	})
	return p
}

func (c *cluster) ready(n *lab.Node, address string) {
	c.t.Helper()
	c.must(lab.Eventually(c.t.Context(), 20*time.Second, func(ctx context.Context) error {
		return readyz(ctx, n, address)
	}))
}

// readyz asks an agent from inside its namespace.
func readyz(ctx context.Context, n *lab.Node, address string) error {
	out, err := n.Exec(ctx, "curl", "-sS", "-m", "3", "-w", "%{http_code}", "http://"+address+"/readyz")
	if err != nil {
		return err
	}
	if !strings.HasSuffix(out, "200") {
		return fmt.Errorf("not ready: %s", out)
	}
	return nil
}

// state reads an UplinkState.
func (c *cluster) state(ctx context.Context, uplink, node string) (*v1alpha1.UplinkState, error) {
	return c.client.K8sV1alpha1().UplinkStates().Get(ctx, uplinkstate.Name(uplink, node), metav1.GetOptions{})
}

// settled is how long a test waits for a state to follow the world, generously: that it follows within the settle
// time and 500 ms is what TestFollowsInTime is for, on a machine that does nothing else.
const settled = 20 * time.Second

// within waits until the check of a state holds and returns the state.
func (c *cluster) within(d time.Duration, uplink, node string, check func(*v1alpha1.UplinkState) error) *v1alpha1.UplinkState {
	c.t.Helper()
	var last *v1alpha1.UplinkState
	err := lab.Eventually(c.t.Context(), d, func(ctx context.Context) error {
		state, err := c.state(ctx, uplink, node)
		if err != nil {
			return err
		}
		last = state
		return check(state)
	})
	if err != nil {
		if last != nil {
			c.t.Logf("last seen: %+v", last.Status)
		}
		c.t.Fatalf("%s on %s: %v", uplink, node, err)
	}
	return last
}

// condition checks status and reason of a condition.
func condition(kind string, status metav1.ConditionStatus, reason string) func(*v1alpha1.UplinkState) error {
	return func(s *v1alpha1.UplinkState) error {
		got := meta.FindStatusCondition(s.Status.Conditions, kind)
		if got == nil {
			return fmt.Errorf("no condition %s", kind)
		}
		if got.Status != status || got.Reason != reason {
			return fmt.Errorf("%s is %s/%s (%s), want %s/%s", kind, got.Status, got.Reason, got.Message, status, reason)
		}
		return nil
	}
}

// all joins checks.
func all(checks ...func(*v1alpha1.UplinkState) error) func(*v1alpha1.UplinkState) error {
	return func(s *v1alpha1.UplinkState) error {
		for _, check := range checks {
			if err := check(s); err != nil {
				return err
			}
		}
		return nil
	}
}

var (
	hostReady = condition(uplinkstate.HostDataReady, metav1.ConditionTrue, uplinkstate.ReasonHostDataDiscovered)
	resolved  = condition(uplinkstate.Resolved, metav1.ConditionTrue, uplinkstate.ReasonResolved)
)

func hostFails(reason string) func(*v1alpha1.UplinkState) error {
	return condition(uplinkstate.HostDataReady, metav1.ConditionFalse, reason)
}

func unresolved(reason string) func(*v1alpha1.UplinkState) error {
	return condition(uplinkstate.Resolved, metav1.ConditionFalse, reason)
}

func addresses(want ...string) func(*v1alpha1.UplinkState) error {
	return func(s *v1alpha1.UplinkState) error { return same("ipAddresses", s.Status.IPAddresses, want) }
}

func gateways(want ...string) func(*v1alpha1.UplinkState) error {
	return func(s *v1alpha1.UplinkState) error { return same("defaultGateways", s.Status.DefaultGateways, want) }
}

func same(what string, got, want []string) error {
	if strings.Join(got, " ") != strings.Join(want, " ") {
		return fmt.Errorf("%s are %v, want %v", what, got, want)
	}
	return nil
}
