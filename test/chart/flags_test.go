// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ovn-uplink/ovn-uplink/test/kubelet"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

var workloads = []string{"DaemonSet ovn-uplink/ovn-uplink-host", "DaemonSet ovn-uplink/ovn-uplink-node", "Deployment ovn-uplink/ovn-uplink-cluster"}

// nowhere keeps an agent that is only to read its flags from everything on this machine.
var nowhere = map[string][]string{
	"ovn-uplink-host-agent": {"--health-address="},
	"ovn-uplink-dpu-agent":  {"--health-address=", "--ovs-db=unix:/nonexistent/db.sock", "--ovs-run-dir=/nonexistent", "--ovn-nb-db=unix:/nonexistent/nb.sock"},
}

// Every set of values makes flags that the agents take; a mistake in one would end them.
func TestAgentsTakeTheRenderedFlags(t *testing.T) {
	h := newHelm(t, nil)
	images := agents(t)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, []byte(`{"apiVersion":"v1","kind":"Config","clusters":[{"name":"a","cluster":{"server":"http://127.0.0.1:9"}}],`+
		`"contexts":[{"name":"a","context":{"cluster":"a","user":""}}],"current-context":"a"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, flags := range valueSets {
		t.Run(name, func(t *testing.T) {
			rendered := h.render(append(slices.Clone(flags), "--set", "logging.level=info")...)
			for _, workload := range workloads {
				if !slices.Contains(rendered.keys(), workload) {
					continue
				}
				pod := podOf(t, rendered.find(t, workload))
				container := pod.Spec.Containers[0]
				repository := kubelet.Repository(container)
				args := append(slices.Clone(container.Args), append(nowhere[repository], "--kubeconfig="+kubeconfig)...)
				env := []string{"NODE_NAME=worker-a", "POD_NAME=x", "POD_NAMESPACE=ovn-uplink"}
				if said, ok := starts(t, images[repository].Program, args, env); !ok {
					t.Errorf("%s does not start with %q: %s", workload, args, said)
				}
			}
		})
	}
}

// starts tells whether an agent got as far as its start, and ends it.
func starts(t *testing.T, program string, args, env []string) (said string, ok bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = env
	out, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Wait() }()
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		said += lines.Text() + "\n"
		if strings.Contains(lines.Text(), "starting") {
			cancel()
			return said, true
		}
	}
	return said, false
}

// What the node agent is told of the cluster.
func TestValuesBecomeFlags(t *testing.T) {
	h := newHelm(t, nil)
	for set, want := range map[string][]string{
		"podNetwork=10.244.0.0/16/24":                      {"--bypass-cidrs=10.244.0.0/16"},
		`podNetwork=10.244.0.0/16/24\, fd00:10::/48`:       {"--bypass-cidrs=10.244.0.0/16,fd00:10::/48"},
		"gateway.bypassCIDRs={192.0.2.0/24}":               {"--bypass-cidrs=192.0.2.0/24"},
		`serviceNetwork=10.96.0.0/16\, fd00:20::/112`:      {"--service-cidrs=10.96.0.0/16,fd00:20::/112"},
		"dynamicUDN.enabled=true":                          {"--dynamic-udn=true", "--inactive-grace=2m"},
		"gateway.enabled=false":                            {"--gateway=false"},
		"gateway.defaultGatewayBridge=br-ex":               {"--default-gateway-bridge=br-ex"},
		"gateway.transitSubnets={100.71.0.0/16,fd71::/64}": {"--transit-subnets=100.71.0.0/16,fd71::/64"},
		"logging.level=debug,logging.format=json":          {"--log-level=debug", "--log-format=json"},
		"metrics.enabled=true":                             {"--health-address=[$(HOST_IP)]:9982"},
	} {
		args := podOf(t, h.render("--set", set).find(t, workloads[1])).Spec.Containers[0].Args
		for _, arg := range want {
			if !slices.Contains(args, arg) {
				t.Errorf("%s: no %s in %q", set, arg, args)
			}
		}
	}
	for url, want := range map[string][2]string{
		"https://172.25.0.2:6443":       {"172.25.0.2", "6443"},
		"https://[fd00::1]:6443":        {"fd00::1", "6443"},
		"https://[fd00::1]":             {"fd00::1", "443"},
		"https://api.example.com:6443/": {"api.example.com", "6443"},
		"https://api.example.com":       {"api.example.com", "443"},
	} {
		rendered := h.render("--set", "k8sAPIServer="+url)
		for _, workload := range workloads {
			env := map[string]string{}
			for _, v := range podOf(t, rendered.find(t, workload)).Spec.Containers[0].Env {
				env[v.Name] = v.Value
			}
			if got := [2]string{env["KUBERNETES_SERVICE_HOST"], env["KUBERNETES_SERVICE_PORT"]}; got != want {
				t.Errorf("%s, %s: %v, want %v", workload, url, got, want)
			}
		}
	}
}

// Every node has exactly one of the two agents.
func TestEveryNodeHasOneAgent(t *testing.T) {
	h := newHelm(t, nil)
	for label, nodes := range map[string]map[string]bool{ // by the node's label: is it a host with a DPU
		"k8s.ovn.org/dpu-host": {"k8s.ovn.org/dpu-host=": true, "k8s.ovn.org/dpu-host=true": true, "other=true": false},
		"example.com/dpu=yes":  {"example.com/dpu=yes": true, "example.com/dpu=no": false, "k8s.ovn.org/dpu-host=": false},
		"example.com/dpu=":     {"example.com/dpu=": true, "example.com/dpu=yes": false},
	} {
		rendered := h.render("--set", "dpuHostLabel="+label)
		for node, isHost := range nodes {
			name, value, _ := strings.Cut(node, "=")
			set := labels.Set{"kubernetes.io/os": "linux", name: value}
			for workload, want := range map[string]bool{workloads[0]: isHost, workloads[1]: !isHost} {
				if got := scheduled(t, rendered.find(t, workload), set); got != want {
					t.Errorf("dpuHostLabel %s, node %s: %s runs: %v, want %v", label, node, workload, got, want)
				}
			}
		}
	}
}

// scheduled tells whether a node with these labels gets a pod of the DaemonSet.
func scheduled(t *testing.T, o *unstructured.Unstructured, node labels.Set) bool {
	t.Helper()
	pod := podOf(t, o)
	if !labels.SelectorFromSet(pod.Spec.NodeSelector).Matches(node) {
		return false
	}
	operators := map[corev1.NodeSelectorOperator]selection.Operator{
		corev1.NodeSelectorOpIn: selection.In, corev1.NodeSelectorOpNotIn: selection.NotIn,
		corev1.NodeSelectorOpExists: selection.Exists, corev1.NodeSelectorOpDoesNotExist: selection.DoesNotExist,
	}
	return slices.ContainsFunc(pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms, func(term corev1.NodeSelectorTerm) bool {
		return !slices.ContainsFunc(term.MatchExpressions, func(e corev1.NodeSelectorRequirement) bool {
			requirement, err := labels.NewRequirement(e.Key, operators[e.Operator], e.Values)
			if err != nil {
				t.Fatal(err)
			}
			return !requirement.Matches(node)
		})
	})
}
