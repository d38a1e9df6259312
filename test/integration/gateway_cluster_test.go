// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"net/netip"
	"path/filepath"
	"testing"
	"time"

	"github.com/ovn-uplink/ovn-uplink/shared/api/v1alpha1"
	"github.com/ovn-uplink/ovn-uplink/shared/kernel/kerneltest"
	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
	"github.com/ovn-uplink/ovn-uplink/test/lab"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const ovnkCRDs = "../../deploy/host/ovn-kubernetes-crds"

// programmed is how long a test waits for a gateway: OVN computes its flows anew, on a machine that does other things
// too. reached is how long one waits for a packet to come through: flows follow the status by a moment.
var programmed, reached = paced(60 * time.Second), paced(20 * time.Second)

// paced is a time in the virtual machine, which is some ten times slower than this one.
func paced(d time.Duration) time.Duration {
	if kerneltest.InGuest() {
		return 5 * d
	}
	return d
}

// site is a node with a gateway: a regular one, or a host and its card.
type site struct {
	*cluster
	// ovs is where Open vSwitch and OVN run, host where the Uplink's interface is.
	ovs, host *lab.Node
	zone      *lab.Zone
	external  *lab.External
	bridge    string
	iface     string
	// node is the name of the Node object.
	node string
	args []string
}

// newGatewayCluster is a cluster with the CRDs of OVN-Kubernetes too, on one version of Open vSwitch and OVN, with the
// kernel's datapath where the kernel is sure to have it.
func newGatewayCluster(t *testing.T, version lab.Version) *cluster {
	t.Helper()
	c := &cluster{Lab: lab.ForTest(t, lab.Options{OVS: version.Build, KernelDatapath: kerneltest.InGuest()}), t: t}
	c.connect()
	c.installCRDs()
	c.installNetworkCRDs()
	return c
}

// installNetworkCRDs installs what OVN-Kubernetes brings.
func (c *cluster) installNetworkCRDs() {
	c.t.Helper()
	files, err := filepath.Glob(filepath.Join(ovnkCRDs, "*.yaml"))
	c.must(err)
	for _, file := range files {
		c.must(c.ApplyFile(c.t.Context(), file))
	}
}

// regularSite makes a regular node with OVN.
func (c *cluster) regularSite(name string, spec lab.RegularSpec) *site {
	c.t.Helper()
	n := c.regular(name, spec)
	s := &site{cluster: c, ovs: n.Node, host: n.Node, external: n.External, bridge: n.Spec.Bridge, iface: n.Spec.Bridge, node: name}
	s.startOVN()
	s.args = regularArgs(n, s.gatewayArgs()...)
	return s
}

// pairSite makes a host and its card, with OVN on the card.
func (c *cluster) pairSite(name string) *site {
	c.t.Helper()
	return c.pairSiteOf(name, lab.PairSpec{})
}

// pairSiteOf is pairSite with a spec. The card has the node's name here, because the lab calls OVN's rows after the
// machine that OVN runs on, and the CNI after the node.
func (c *cluster) pairSiteOf(name string, spec lab.PairSpec) *site {
	c.t.Helper()
	spec.Card = name
	p, err := c.Pair(c.t.Context(), name+"-host", spec)
	c.must(err)
	c.vsctl(p.Card, "set", "Open_vSwitch", ".", "external_ids:host-k8s-nodename="+name)
	c.node(name, nil)
	c.defaultGatewayBridge(p.Card)
	s := &site{cluster: c, ovs: p.Card, host: p.Host, external: p.External, bridge: p.Spec.Bridge, iface: p.Spec.Interface, node: name}
	s.startOVN()
	s.args = cardArgs(p, s.gatewayArgs()...)
	return s
}

func (s *site) startOVN() {
	s.t.Helper()
	var err error
	s.zone, err = s.ovs.StartOVN(s.t.Context(), lab.OVNSpec{})
	s.must(err)
}

func (s *site) gatewayArgs() []string {
	return []string{"--gateway", "--ovn-nb-db", s.zone.NB(), "--ovs-run-dir", s.ovs.OVS.RunDir(), "--state-dir", filepath.Join(s.ovs.Dir(), "state")}
}

// agents starts the agents of the site: one process on a regular node, two on a pair.
func (s *site) agents() *lab.Process {
	s.t.Helper()
	if s.host != s.ovs {
		s.hostAgent(s.host, "--node-name", s.node)
	}
	return s.dpuAgent()
}

func (s *site) dpuAgent() *lab.Process {
	s.t.Helper()
	p := s.start(s.ovs, "dpu-agent", s.args...)
	s.ready(s.ovs, dpuHealth)
	return p
}

// tenantNetwork makes a network's rows on the sites and its CUDN, which names the Uplink.
func (c *cluster) tenantNetwork(uplink string, spec lab.NetworkSpec, sites ...*site) *lab.Network {
	c.t.Helper()
	var zones []*lab.Zone
	for _, s := range sites {
		zones = append(zones, s.zone)
	}
	n, err := c.Network(c.t.Context(), spec, zones...)
	c.must(err)
	c.cudn(uplink, n)
	return n
}

// cudn makes the CUDN of a network.
func (c *cluster) cudn(uplink string, n *lab.Network) {
	c.t.Helper()
	subnets := fmt.Sprintf("layer3: {role: Primary, subnets: [%s]}", joined(n.Spec.Subnets, `{cidr: "%s"}`))
	if n.Spec.Topology == lab.Layer2 {
		subnets = fmt.Sprintf("layer2: {role: Primary, subnets: [%s]}", joined(n.Spec.Subnets, `"%s"`))
	}
	c.must(c.Apply(c.t.Context(), fmt.Sprintf(`
apiVersion: v1
kind: Namespace
metadata: {name: %[1]s, labels: {k8s.ovn.org/primary-user-defined-network: "", network: %[1]s}}
---
apiVersion: k8s.ovn.org/v1
kind: ClusterUserDefinedNetwork
metadata: {name: %[2]s}
spec:
  namespaceSelector: {matchLabels: {network: %[1]s}}
  uplinks: [%[3]s]
  network: {topology: %[4]s, %[5]s}
`, n.Spec.Namespace, n.Spec.CUDN, uplink, n.Spec.Topology, subnets)))
}

func joined(prefixes []netip.Prefix, format string) string {
	text := ""
	for i, p := range prefixes {
		if i > 0 {
			text += ", "
		}
		text += fmt.Sprintf(format, p)
	}
	return text
}

// covers checks that the gateway is ready and covers exactly these networks.
func covers(networks ...string) func(*v1alpha1.UplinkState) error {
	return func(s *v1alpha1.UplinkState) error {
		ready := meta.FindStatusCondition(s.Status.Conditions, uplinkstate.GatewayReady)
		if ready == nil || ready.Status != metav1.ConditionTrue {
			return fmt.Errorf("GatewayReady is %+v", ready)
		}
		var got []string
		for _, n := range s.Status.Networks {
			if n.Phase != v1alpha1.NetworkReady {
				return fmt.Errorf("network %s is %s: %s", n.Name, n.Phase, n.Message)
			}
			got = append(got, n.Name)
		}
		return same("networks", got, networks)
	}
}

// gatewayFails checks that the gateway is not ready for the reason.
func gatewayFails(reason string) func(*v1alpha1.UplinkState) error {
	return condition(uplinkstate.GatewayReady, metav1.ConditionFalse, reason)
}

// pings waits until a machine reaches an address.
func (c *cluster) pings(from *lab.Node, to netip.Addr) {
	c.t.Helper()
	c.must(lab.Eventually(c.t.Context(), reached, func(ctx context.Context) error {
		_, err := from.Exec(ctx, "ping", "-c", "1", "-W", "2", to.String())
		return err
	}))
}
