// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"testing"
	"time"

	"github.com/ovn-uplink/ovn-uplink/test/lab"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// podObject makes a Pod object on a node, which nothing runs.
func (c *cluster) podObject(namespace, name, node string) {
	c.t.Helper()
	c.must(c.Apply(c.t.Context(), fmt.Sprintf(`
apiVersion: v1
kind: ServiceAccount
metadata: {name: default, namespace: %[1]s}
---
apiVersion: v1
kind: Pod
metadata: {name: %[2]s, namespace: %[1]s}
spec:
  nodeName: %[3]s
  containers: [{name: main, image: none}]
`, namespace, name, node)))
}

func (c *cluster) deletePod(namespace, name string) {
	c.t.Helper()
	client, err := c.Client()
	c.must(err)
	now := int64(0)
	c.must(client.CoreV1().Pods(namespace).Delete(c.t.Context(), name, metav1.DeleteOptions{GracePeriodSeconds: &now}))
}

// With Dynamic UDN a network has a gateway where it has pods, and for a while where it had some.
func TestGatewayDynamicUDN(t *testing.T) {
	t.Parallel()
	c := newGatewayCluster(t, version(t, "installed"))
	s := c.regularSite("worker-a", lab.RegularSpec{})
	c.node("worker-b", nil)
	c.uplink("tenant-blue", nodeConfig(s.iface, nil))
	blue := c.tenantNetwork("tenant-blue", lab.NetworkSpec{CUDN: "blue"}, s)
	c.must(s.zone.Sync(t.Context()))
	before := s.look()
	const grace = 3 * time.Second
	s.args = append(s.args, "--dynamic-udn", "--inactive-grace", grace.String())
	s.dpuAgent()

	c.podObject("blue", "elsewhere", "worker-b")
	c.within(programmed, "tenant-blue", s.node, covers())
	pause(t, time.Second)
	c.within(settled, "tenant-blue", s.node, covers())
	s.gone(before)

	c.podObject("blue", "here", "worker-a")
	c.within(programmed, "tenant-blue", s.node, covers("blue"))
	c.podObject("blue", "here-too", "worker-a")
	c.deletePod("blue", "here")
	pause(t, grace+2*time.Second)
	c.within(settled, "tenant-blue", s.node, covers("blue"))

	// A pod that comes before the grace is over keeps the gateway: no packet is lost.
	pod := s.pod(blue, "a")
	c.lossless(pod.Node, "the last pod goes and another comes", func() {
		c.deletePod("blue", "here-too")
		pause(t, grace/2)
		c.podObject("blue", "next", "worker-a")
		pause(t, grace+time.Second)
		c.within(settled, "tenant-blue", s.node, covers("blue"))
	})

	start := time.Now()
	c.deletePod("blue", "next")
	c.within(programmed, "tenant-blue", s.node, covers())
	if after := time.Since(start); after < grace {
		t.Errorf("the gateway was gone after %s, before the grace of %s was over", after, grace)
	}
	c.must(lab.Eventually(t.Context(), settled, s.noFlows))
	if rows := ownRows(s.look().NB); rows != "" {
		t.Errorf("rows are left: %s", rows)
	}
	c.podObject("blue", "again", "worker-a")
	c.within(programmed, "tenant-blue", s.node, covers("blue"))
	c.pings(pod.Node, lab.InternetAddress)
}
