// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
	"github.com/ovn-uplink/ovn-uplink/test/lab"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The address, MAC, gateway and bridge of an Uplink change while its networks use it: rows, flows and packets follow,
// without a restart. And then it goes (B15).
func TestGatewayFollowsItsUplink(t *testing.T) {
	t.Parallel()
	c := newGatewayCluster(t, version(t, "installed"))
	s := c.pairSite("worker-b")
	s.foreigners()
	c.vsctl(s.ovs, "add-br", "br-two", "--", "set", "Bridge", "br-two", "datapath_type=netdev")
	c.ip(s.ovs, "link", "set", "br-two", "up")
	before := s.look()
	c.uplink("tenant-blue", nodeConfig(s.iface, nil))
	s.agents()
	blue := c.tenantNetwork("tenant-blue", lab.NetworkSpec{CUDN: "blue"}, s)
	flat := c.tenantNetwork("tenant-blue", lab.NetworkSpec{CUDN: "flat", Topology: lab.Layer2}, s)
	c.within(programmed, "tenant-blue", s.node, covers("blue", "flat"))
	pods := []*lab.Pod{s.pod(blue, "a"), s.pod(flat, "a")}
	web := netip.AddrPortFrom(lab.InternetAddress, 80)
	_, err := s.external.StartHTTP(web, "internet")
	c.must(err)
	leaves := func(from string) {
		t.Helper()
		for _, pod := range pods {
			s.pings(pod.Node, lab.InternetAddress)
			answer, err := pod.HTTPGet(t.Context(), web)
			if err != nil || answer.Client.Addr().String() != from {
				t.Errorf("pod of %s is seen as %s (%v), want %s", pod.Network.Spec.CUDN, answer.Client, err, from)
			}
		}
	}
	leaves("172.28.0.3")

	c.ip(s.host, "addr", "del", "172.28.0.3/16", "dev", s.iface)
	c.ip(s.host, "addr", "add", "172.28.0.9/16", "dev", s.iface)
	c.ip(s.host, "route", "replace", "default", "via", "172.28.0.1", "dev", s.iface)
	s.carried("br-ext", "172.28.0.9", "172.28.0.3")
	leaves("172.28.0.9")

	ports, err := s.ovs.Devlink() // a card knows of its function's new MAC
	c.must(err)
	for handle, port := range ports {
		if port.Netdev == "pf0hpf" {
			port.Function = &lab.DevlinkFunction{HWAddr: "02:42:ac:1c:00:77"}
			ports[handle] = port
		}
	}
	c.must(s.ovs.SetDevlink(ports))
	c.ip(s.host, "link", "set", s.iface, "address", "02:42:ac:1c:00:77")
	c.ip(s.ovs, "link", "set", "pf0hpf", "alias", "renewed") // what would be devlink's event is one of the link
	s.carried("br-ext", "02:42:ac:1c:00:77", "02:42:ac:1c:00:03")
	c.pings(s.host, lab.InternetAddress) // the gateway has the old MAC until the host says otherwise
	leaves("172.28.0.9")

	device, err := s.external.Exec(t.Context(), "sh", "-c", "ip -o addr show to 172.28.0.1 | awk '{print $2}'")
	c.must(err)
	c.ip(s.external.Node, "addr", "add", "172.28.0.200/16", "dev", strings.TrimSpace(device))
	c.ip(s.host, "route", "replace", "default", "via", "172.28.0.200", "dev", s.iface)
	s.carried("br-ext", "172.28.0.200", "172.28.0.1")
	leaves("172.28.0.9")

	// With both of its ports, so that the new bridge leads somewhere.
	c.vsctl(s.ovs, "del-port", "pf0hpf", "--", "del-port", "p0", "--", "add-port", "br-two", "pf0hpf", "--", "add-port", "br-two", "p0")
	s.carried("br-two", "172.28.0.9", "172.28.0.3")
	leaves("172.28.0.9")
	c.pings(s.host, lab.InternetAddress)
	for _, flow := range s.look().Own {
		if !strings.HasPrefix(flow, "br-two ") {
			t.Errorf("left on the old bridge: %s", flow)
		}
	}
	s.untouchedBut(before, "changes of the Uplink")

	s.vanishes(pods)
	s.loses(pods)
	s.deselected(before)
}

// carried waits until the gateway is ready with rows and flows, on this bridge alone, that have the new and not the old.
func (s *site) carried(bridge, now, old string) {
	s.t.Helper()
	s.must(lab.Eventually(s.t.Context(), programmed, func(ctx context.Context) error {
		f, err := s.footprint(ctx)
		if err != nil {
			return err
		}
		flows := strings.Join(f.Own, "\n")
		for what, text := range map[string]string{"rows": ownRows(f.NB), "flows": flows} {
			for _, end := range []string{" ", ",", "/", ")", `"`, "]", "\n"} {
				if strings.Contains(text, old+end) {
					return fmt.Errorf("%s still have %s:\n%s", what, old, text)
				}
			}
			if !strings.Contains(text, now) {
				return fmt.Errorf("%s do not have %s:\n%s", what, now, text)
			}
		}
		for _, flow := range f.Own {
			if !strings.HasPrefix(flow, bridge+" ") {
				return fmt.Errorf("a flow that is not on %s: %s", bridge, flow)
			}
		}
		return nil
	}))
	s.within(programmed, "tenant-blue", s.node, all(covers("blue", "flat"), onBridge(bridge, "p0", 0)))
}

// untouchedBut is untouched without the rows: there are networks now that there were not before.
func (s *site) untouchedBut(before footprint, after string) {
	s.t.Helper()
	before.NB = s.look().NB
	s.untouched(before, after)
}

// vanishes: the state is deleted by accident, again and again, and nobody on the network notices.
func (s *site) vanishes(pods []*lab.Pod) {
	states := s.client.K8sV1alpha1().UplinkStates()
	s.lossless(pods[0].Node, "the state is deleted 20 times", func() {
		for range 20 {
			_ = states.Delete(s.t.Context(), uplinkstate.Name("tenant-blue", s.node), metav1.DeleteOptions{}) // perhaps not there yet
			pause(s.t, 500*time.Millisecond)
		}
		s.within(programmed, "tenant-blue", s.node, all(covers("blue", "flat"), resolved, addresses("172.28.0.9/16"), gateways("172.28.0.200"), onBridge("br-two", "p0", 0)))
	})
}

// loses: a network goes, and only what is its own goes with it.
func (s *site) loses(pods []*lab.Pod) {
	of := func(network string) string {
		var rows []string
		for _, row := range strings.Split(s.look().NB, "\n") {
			if strings.Contains(strings.ReplaceAll(row, `"`, ""), "ovn-uplink/network=cluster_udn_"+network+",") {
				rows = append(rows, row)
			}
		}
		return strings.Join(rows, "\n")
	}
	before := of("blue")
	s.lossless(pods[0].Node, "another network is deleted", func() {
		s.must(s.DeleteCUDN(s.t.Context(), "flat"))
		s.within(programmed, "tenant-blue", s.node, covers("blue"))
		s.must(lab.Eventually(s.t.Context(), settled, func(context.Context) error {
			if rows := of("flat"); rows != "" {
				return fmt.Errorf("rows of the deleted network: %s", rows)
			}
			return nil
		}))
	})
	if now := of("blue"); now != before || before == "" {
		s.t.Errorf("rows of the network that stays are\n%s\nwere\n%s", now, before)
	}
}

// deselected: the Uplink leaves the node, one half after the other, and nothing of it stays.
func (s *site) deselected(before footprint) {
	r := s.record()
	start := time.Now()
	s.uplink("tenant-blue", nodeConfig(s.iface, map[string]string{"nobody": "has-this"}))
	s.must(lab.Eventually(s.t.Context(), programmed, func(ctx context.Context) error {
		if _, err := s.state(ctx, "tenant-blue", s.node); err == nil {
			return fmt.Errorf("the state is still there")
		}
		return nil
	}))
	if took := time.Since(start); took > 15*time.Second {
		s.t.Errorf("the state was there for %s", took)
	} else {
		s.t.Logf("the state was gone after %s", took.Round(time.Millisecond))
	}
	var halves []string
	for _, v := range r.since(0) {
		halves = append(halves, fmt.Sprintf("gateway %t bridge %t", uplinkstate.HoldsGateway(v), v.Status.OVSBridge != nil))
	}
	if order := strings.Join(halves, ", "); !strings.Contains(order, "gateway true bridge true, gateway false bridge true, gateway false bridge false") {
		s.t.Errorf("the halves went as: %s", order)
	}
	s.must(lab.Eventually(s.t.Context(), settled, s.noFlows))
	if rows := ownRows(s.look().NB); rows != "" {
		s.t.Errorf("rows are left: %s", rows)
	}
	s.untouchedBut(before, "deselection")
}
