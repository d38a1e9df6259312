// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"strings"
	"testing"

	"github.com/ovn-uplink/ovn-uplink/test/lab"
	"github.com/ovn-uplink/ovn-uplink/test/manifests"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Gateways need no more rights than deploy/host gives: on a card those of a DPU, on a regular node those of its agent.
func TestGatewayWithItsOwnRights(t *testing.T) {
	t.Parallel()
	c := newGuardedCluster(t)
	c.installNetworkCRDs()
	pair, regular := c.pairSite("worker-b"), c.regularSite("worker-a", lab.RegularSpec{})
	c.uplink("host-side", nodeConfig(pair.iface, map[string]string{"side": "host"}))
	c.uplink("node-side", nodeConfig(regular.iface, map[string]string{"side": "node"}))
	c.must(c.SetNodeLabels(t.Context(), "worker-b", map[string]string{"side": "host"}))
	c.must(c.SetNodeLabels(t.Context(), "worker-a", map[string]string{"side": "node"}))
	c.startAs(pair.host, c.podOf(manifests.HostAccount, "worker-b"), "host-agent", "--node-name", "worker-b", "--sysfs-root", pair.host.SysfsRoot())
	dynamic := []string{"--dynamic-udn", "--inactive-grace", "1s"}
	agents := map[string]*lab.Process{
		"host-side": c.startAs(pair.ovs, c.dpuOf("worker-b"), "dpu-agent", append(pair.args, dynamic...)...),
		"node-side": c.startAs(regular.ovs, c.podOf(manifests.NodeAccount, "worker-a"), "dpu-agent", append(regular.args, dynamic...)...),
	}
	for uplink, s := range map[string]*site{"host-side": pair, "node-side": regular} {
		c.ready(s.ovs, dpuHealth)
		blue := c.tenantNetwork(uplink, lab.NetworkSpec{CUDN: "blue-" + s.node}, s)
		c.within(programmed, uplink, s.node, covers())
		client, err := c.Client()
		c.must(err)
		scheduled, err := client.CoreV1().Pods(blue.Spec.Namespace).Create(t.Context(), podOn(s.node), metav1.CreateOptions{})
		c.must(err)
		c.within(programmed, uplink, s.node, covers(blue.Spec.CUDN))
		pod, err := blue.Pod(t.Context(), s.zone, "a")
		c.must(err)
		c.pings(pod.Node, lab.InternetAddress)
		zero := int64(0)
		c.must(client.CoreV1().Pods(blue.Spec.Namespace).Delete(t.Context(), scheduled.Name, metav1.DeleteOptions{GracePeriodSeconds: &zero}))
		c.within(programmed, uplink, s.node, covers())
		c.must(c.SetNodeLabels(t.Context(), s.node, nil))
		c.noState(uplink, s.node, settled)
	}
	for _, agent := range agents {
		for line := range strings.Lines(agent.Log(1_000_000)) {
			if strings.Contains(line, "forbidden") || strings.Contains(line, "not allowed") {
				t.Errorf("%s was refused something: %s", agent.Name, line)
			}
		}
	}
}

// podOn is a pod that is scheduled to a node, which nothing runs.
func podOn(node string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "scheduled"},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "main", Image: "none"}}},
	}
}
