// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ovn-uplink/ovn-uplink/test/manifests"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The real cluster role does all that it is for with the rights of deploy/host and under its admission policies.
func TestClusterRoleWithItsOwnRights(t *testing.T) {
	t.Parallel()
	c := newGuardedCluster(t)
	c.must(c.ApplyFile(t.Context(), ovnKubernetesCRDs))
	for _, node := range []string{"control", "worker-a", "worker-b", "worker-c"} {
		c.node(node, blue)
	}
	c.must(c.SetNodeLabels(t.Context(), "control", nil))
	n, err := c.AddNode(t.Context(), "control")
	c.must(err)
	p, err := n.Start(t.Context(), "cluster", []string{filepath.Join(binaries, "host-agent"), "cluster", "--log-level", "debug",
		"--kubeconfig", c.podOf("ovn-uplink-cluster", "control"), "--leader-elect-lease-namespace", manifests.Namespace,
		"--deselected-state-grace", "2s"}, []string{"POD_NAME=control"})
	c.must(err)
	c.ready(n, clusterHealth)

	c.uplink("blue", nodeConfig("e0", blue))
	c.network("net", "blue")
	c.protected("blue", true)
	c.resolve("blue", "worker-a", "worker-b", "worker-c")
	c.uplinkIs("blue", yes("Ready", allResolved))
	for _, node := range []string{"worker-a", "worker-b", "worker-c"} {
		c.gateway("blue", node, covered("net"))
	}
	c.must(c.DeleteNode(t.Context(), "worker-c"))
	c.noState("blue", "worker-c", settled)
	c.must(c.SetNodeLabels(t.Context(), "worker-b", nil))
	c.noState("blue", "worker-b", settled)

	c.must(c.client.K8sV1alpha1().Uplinks().Delete(t.Context(), "blue", metav1.DeleteOptions{}))
	pause(t, 2*time.Second)
	c.protected("blue", true)
	c.deleteNetwork("net")
	c.gone("blue", settled)
	if log := strings.ToLower(p.Log(1 << 20)); strings.Contains(log, "forbidden") {
		t.Errorf("it lacks a right:\n%s", log)
	}
}
