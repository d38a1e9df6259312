// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	uplinkclient "github.com/ovn-uplink/ovn-uplink/shared/api/client"
	"github.com/ovn-uplink/ovn-uplink/shared/api/v1alpha1"
	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
	"github.com/ovn-uplink/ovn-uplink/test/kubelet"
	"github.com/ovn-uplink/ovn-uplink/test/lab"
	"github.com/ovn-uplink/ovn-uplink/test/manifests"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// programmed is how long the agents may take for what they do together.
const programmed = 40 * time.Second

// site is a cluster into which the chart was installed: a regular node with OVN, and a host with a DPU.
type site struct {
	*kubelet.Kubelet
	lab     *lab.Lab
	client  kubernetes.Interface
	t       *testing.T
	helm    *helmCLI
	uplinks uplinkclient.Interface
	regular *lab.Regular
	pair    *lab.Pair
	zone    *lab.Zone
}

// newSite makes the nodes and installs the chart, which is told the API server's address as nodes without kube-proxy are.
func newSite(t *testing.T, flags ...string) *site {
	t.Helper()
	l := lab.ForTest(t, lab.Options{})
	s := &site{t: t, lab: l, helm: newHelm(t, l)}
	var err error
	s.client, err = l.Client()
	s.must(err)
	s.Kubelet = &kubelet.Kubelet{T: t, Lab: l, Client: s.client, Images: agents(t)}
	s.uplinks, err = uplinkclient.NewForConfig(l.RESTConfig())
	s.must(err)
	s.must(l.ApplyFile(t.Context(), root+"/deploy/host/ovn-kubernetes-crds"))
	s.helm.must(append([]string{"upgrade", "--install", "ovn-uplink", chartDir, "-f", nvkeValues, "--set", "k8sAPIServer=" + kubelet.APIServerURL(t, l).String(),
		"--set", "podNetwork=10.244.0.0/16/24,logging.level=debug"}, append(tagged, flags...)...)...)
	s.must(manifests.Await(t.Context(), l))

	s.regular, err = l.RegularNode(t.Context(), "worker-a", lab.RegularSpec{})
	s.must(err)
	s.pair, err = l.Pair(t.Context(), "worker-b", lab.PairSpec{})
	s.must(err)
	s.must(l.CreateNode(t.Context(), "worker-a", map[string]string{"side": "node"}))
	s.must(l.CreateNode(t.Context(), "worker-b", map[string]string{"side": "host", "k8s.ovn.org/dpu-host": ""}))
	s.zone, err = s.regular.StartOVN(t.Context(), lab.OVNSpec{})
	s.must(err)
	return s
}

func (s *site) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// agents builds the programs that the images have as their entry points.
func agents(t *testing.T) map[string]kubelet.Image {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-buildvcs=false", "-o", dir, root+"/host-agent", root+"/dpu-agent")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build the agents: %v\n%s", err, out)
	}
	return map[string]kubelet.Image{
		"ovn-uplink-host-agent": {Program: filepath.Join(dir, "host-agent")},
		"ovn-uplink-dpu-agent":  {Program: filepath.Join(dir, "dpu-agent")},
	}
}

// template is the pod template of a workload, as the API server has it.
func (s *site) template(workload string) corev1.PodTemplateSpec {
	s.t.Helper()
	apps := s.client.AppsV1()
	if workload == "ovn-uplink-cluster" {
		d, err := apps.Deployments("ovn-uplink").Get(s.t.Context(), workload, metav1.GetOptions{})
		s.must(err)
		return d.Spec.Template
	}
	d, err := apps.DaemonSets("ovn-uplink").Get(s.t.Context(), workload, metav1.GetOptions{})
	s.must(err)
	return d.Spec.Template
}

// eventually waits for a check; its last error fails the test.
func (s *site) eventually(what string, check func(context.Context) error) {
	s.t.Helper()
	if err := lab.Eventually(s.t.Context(), programmed, check); err != nil {
		s.t.Fatalf("%s: %v", what, err)
	}
}

func (s *site) condition(name, kind string) func(context.Context) error {
	return func(ctx context.Context) error {
		state, err := s.uplinks.K8sV1alpha1().UplinkStates().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		return isTrue(state.Status.Conditions, kind)
	}
}

func isTrue(conditions []metav1.Condition, kind string) error {
	if c := meta.FindStatusCondition(conditions, kind); c == nil || c.Status != metav1.ConditionTrue {
		return fmt.Errorf("%s is %+v", kind, c)
	}
	return nil
}

// Every role does all its work when it is started as its pod says: with the flags, variables, mounts, user and
// capabilities of the template and the rights of its ServiceAccount, and nothing else.
func TestRolesStartFromTheRenderedPods(t *testing.T) {
	for name, flags := range map[string][]string{
		"default":                 nil,
		"metrics and Dynamic UDN": {"--set", "metrics.enabled=true,metrics.dashboard.enabled=true,dynamicUDN.enabled=true,logging.format=json"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, flags...)
			dynamic := len(flags) > 0
			if dynamic { // a finding, which is an Event and a metric
				_, err := s.regular.OVS.Vsctl(t.Context(), "set", "Interface", s.regular.Spec.Bridge, "mtu_request=1400")
				s.must(err)
			}
			host := s.Run(s.pair.Host, "worker-b", s.template("ovn-uplink-host"), "ovn-uplink-host-x")
			node := s.Run(s.regular.Node, "worker-a", s.template("ovn-uplink-node"), "ovn-uplink-node-x")
			other, err := s.lab.AddNode(t.Context(), "pod-1")
			s.must(err)
			cluster := s.Run(other, "worker-a", s.template("ovn-uplink-cluster"), "ovn-uplink-cluster-x")
			all := []*kubelet.Running{host, node, cluster}

			s.uplink("node-side", s.regular.Spec.Bridge, "node")
			s.uplink("host-side", s.pair.Spec.Interface, "host")
			s.eventually("the host's half", s.condition("host-side.worker-b", uplinkstate.HostDataReady))
			s.eventually("both halves", s.condition("node-side.worker-a", uplinkstate.Resolved))
			for _, r := range all {
				s.eventually(r.Name+" is ready", func(context.Context) error {
					out, err := r.Probe(t.Context(), r.Pod.Spec.Containers[0].ReadinessProbe)
					return errors.Join(err, wrong(out, err))
				})
				for _, probe := range []*corev1.Probe{r.Pod.Spec.Containers[0].LivenessProbe, r.Pod.Spec.Containers[0].StartupProbe} {
					if out, err := r.Probe(t.Context(), probe); err != nil {
						t.Errorf("%s: %v %s", r.Name, err, out)
					}
				}
			}

			blue, err := s.lab.Network(t.Context(), lab.NetworkSpec{CUDN: "blue"}, s.zone)
			s.must(err)
			s.must(s.lab.CreateCUDN(t.Context(), blue.Spec, "node-side"))
			if dynamic {
				_, err := s.client.CoreV1().Pods("blue").Create(t.Context(), tenantPod("worker-a"), metav1.CreateOptions{})
				s.must(err)
			}
			s.eventually("the gateway", s.covers("node-side.worker-a", "blue"))
			s.eventually("the Uplink", func(ctx context.Context) error {
				u, err := s.uplinks.K8sV1alpha1().Uplinks().Get(ctx, "node-side", metav1.GetOptions{})
				if err != nil {
					return err
				}
				return isTrue(u.Status.Conditions, uplinkstate.Ready)
			})
			pod, err := blue.Pod(t.Context(), s.zone, "a")
			s.must(err)
			s.eventually("traffic of a pod by the Uplink", func(ctx context.Context) error {
				_, err := pod.Exec(ctx, "ping", "-c", "1", "-W", "2", lab.InternetAddress.String())
				return err
			})

			// What a right, a capability or a mount that is missing looks like.
			for _, r := range all {
				for line := range strings.Lines(strings.ToLower(r.Log(1 << 20))) {
					for _, sign := range []string{"forbidden", "not allowed", "permission denied", "operation not permitted", "read-only file system", "no such file"} {
						if strings.Contains(line, sign) {
							t.Errorf("%s: %s", r.Name, line)
						}
					}
				}
			}
			if dynamic {
				s.metricsAreReal(all)
				s.eventually("the Event", func(ctx context.Context) error {
					events, err := s.client.EventsV1().Events("default").List(ctx, metav1.ListOptions{})
					if err == nil && len(events.Items) == 0 {
						err = errors.New("there is none")
					}
					return err
				})
			} else {
				s.loopbackOnly(host, node)
				s.setsSysctls(node)
			}
		})
	}
}

// wrong says what a probe answered with an error.
func wrong(answer string, err error) error {
	if err == nil {
		return nil
	}
	return errors.New(answer)
}

func tenantPod(node string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "main", Image: "none"}}}}
}

func (s *site) uplink(name, iface, side string) {
	s.t.Helper()
	_, err := s.uplinks.K8sV1alpha1().Uplinks().Create(s.t.Context(), &v1alpha1.Uplink{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.UplinkSpec{NodeConfigs: []v1alpha1.UplinkNodeConfig{{
			Type: v1alpha1.OVSBridge, HostInterfaceName: v1alpha1.InterfaceName(iface),
			NodeSelector: metav1.LabelSelector{MatchLabels: map[string]string{"side": side}},
		}}},
	}, metav1.CreateOptions{})
	s.must(err)
}

// covers checks that the gateway of a state has a network.
func (s *site) covers(name, network string) func(context.Context) error {
	return func(ctx context.Context) error {
		state, err := s.uplinks.K8sV1alpha1().UplinkStates().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, n := range state.Status.Networks {
			if n.Name == network && n.Phase == v1alpha1.NetworkReady {
				return nil
			}
		}
		return fmt.Errorf("networks are %+v", state.Status.Networks)
	}
}

// loopbackOnly checks that nobody but the node itself reads the agents' metrics unless they are asked for.
func (s *site) loopbackOnly(all ...*kubelet.Running) {
	s.t.Helper()
	for _, r := range all {
		port := r.Pod.Spec.Containers[0].ReadinessProbe.HTTPGet.Port.String()
		if out, err := r.Node.Exec(s.t.Context(), "curl", "-sS", "-m", "3", "http://"+r.Node.Address.String()+":"+port+"/metrics"); err == nil {
			s.t.Errorf("%s answers at the node's address:\n%.200s", r.Name, out)
		}
	}
}

// setsSysctls checks that the agent may write what VRFs need: this kernel may have no VRF, so that the agent does not.
func (s *site) setsSysctls(node *kubelet.Running) {
	s.t.Helper()
	args := node.Pod.Spec.Containers[0].Args
	i := slices.IndexFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "--sysctl-root=") })
	if i < 0 {
		s.t.Fatalf("no --sysctl-root in %q", args)
	}
	setting := strings.TrimPrefix(args[i], "--sysctl-root=") + "/ipv4/conf/" + s.regular.Spec.Bridge + "/rp_filter"
	inside := func(command string) error {
		_, err := node.Inside(s.t.Context(), "/bin/sh", "-c", command, "sh", setting)
		return err
	}
	s.must(inside(`echo 2 >"$1"`))
	if out, err := node.Node.Exec(s.t.Context(), "cat", "/proc/sys/net/ipv4/conf/"+s.regular.Spec.Bridge+"/rp_filter"); err != nil || strings.TrimSpace(out) != "2" {
		s.t.Errorf("rp_filter is %q, want 2: %v", out, err)
	}
	if inside(`echo 2 >/proc/sys/net/ipv4/conf/all/rp_filter`) == nil {
		s.t.Error("/proc/sys is writable in the container, which it is in none")
	}
}

var metricName = regexp.MustCompile(`\bovn_uplink_[a-z_]+`)

// metricsAreReal checks that the agents serve where the Services say, and have every metric of the alerts and of the dashboard.
func (s *site) metricsAreReal(all []*kubelet.Running) {
	s.t.Helper()
	served := map[string]bool{}
	for _, r := range all {
		service, err := s.client.CoreV1().Services("ovn-uplink").Get(s.t.Context(), r.Pod.Spec.ServiceAccountName, metav1.GetOptions{})
		s.must(err)
		for label, value := range service.Spec.Selector {
			if r.Pod.Labels[label] != value {
				s.t.Errorf("Service %s selects %v, not pod %s", service.Name, service.Spec.Selector, r.Pod.Name)
			}
		}
		out, err := r.Node.Exec(s.t.Context(), "curl", "-sS", "-m", "5", "http://"+r.Node.Address.String()+":"+service.Spec.Ports[0].TargetPort.String()+"/metrics")
		s.must(err)
		for _, name := range metricName.FindAllString(out, -1) {
			served[name] = true
		}
	}
	for _, file := range []string{"monitoring/alerts.yaml", "monitoring/dashboard.json"} {
		raw, err := os.ReadFile(filepath.Join(chartDir, file))
		s.must(err)
		for _, name := range metricName.FindAllString(string(raw), -1) {
			if !served[name] {
				s.t.Errorf("%s has %s, which no agent has: %v", file, name, slices.Sorted(maps.Keys(served)))
			}
		}
	}
	dashboard, err := s.client.CoreV1().ConfigMaps("ovn-uplink").Get(s.t.Context(), "ovn-uplink-dashboard", metav1.GetOptions{})
	s.must(err)
	if !json.Valid([]byte(dashboard.Data["ovn-uplink.json"])) {
		s.t.Errorf("the dashboard is no JSON: %v", dashboard.Data)
	}
}
