// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ovn-uplink/ovn-uplink/test/lab"
)

// An Uplink's bridge has as many flows with a hundred networks as with one, and a network more or less sends none.
// Ten networks are reached by real pods, all have their gateway routers carried out by ovn-controller, and for ten
// others ovn-trace(8) says that what their node sends leaves by the Uplink.
func TestGatewayScale(t *testing.T) {
	t.Parallel()
	const networks = 100
	c := newGatewayCluster(t, version(t, "newer"))
	s := c.regularSite("worker-a", lab.RegularSpec{})
	c.uplink("tenant-blue", nodeConfig(s.iface, nil))
	s.dpuAgent()
	all := make([]*lab.Network, networks)
	names := make([]string, networks)
	for i := range all {
		names[i] = fmt.Sprintf("net%03d", i)
	}
	all[0] = c.tenantNetwork("tenant-blue", lab.NetworkSpec{CUDN: names[0]}, s)
	c.within(programmed, "tenant-blue", s.node, covers(names[:1]...))
	one, err := s.flows(t.Context(), s.bridge, ownCookies)
	c.must(err)

	l := s.ledger()
	l.settle()
	mods, before := s.sentMods(), l.counts()
	start := time.Now()
	var makers sync.WaitGroup
	errs := make([]error, networks)
	for worker := range 4 {
		makers.Go(func() {
			for i := 1 + worker; i < networks-1; i += 4 {
				if all[i], errs[i] = c.Network(t.Context(), lab.NetworkSpec{CUDN: names[i]}, s.zone); errs[i] == nil {
					errs[i] = c.CreateCUDN(t.Context(), all[i].Spec, "tenant-blue")
				}
			}
		})
	}
	makers.Wait()
	for _, err := range errs {
		c.must(err)
	}
	c.within(2*programmed, "tenant-blue", s.node, covers(names[:networks-1]...))
	t.Logf("%d networks were ready after %s", networks-1, time.Since(start).Round(time.Second))
	start = time.Now()
	all[networks-1] = c.tenantNetwork("tenant-blue", lab.NetworkSpec{CUDN: names[networks-1]}, s)
	c.within(programmed, "tenant-blue", s.node, covers(names...))
	t.Logf("one more was ready after %s", time.Since(start).Round(time.Millisecond))

	hundred, err := s.flows(t.Context(), s.bridge, ownCookies)
	c.must(err)
	if strings.Join(one, "\n") != strings.Join(hundred, "\n") {
		t.Errorf("the bridge has %d flows with one network and %d with %d", len(one), len(hundred), networks)
	}
	if now := s.sentMods(); now != mods || l.counts().Flows != before.Flows {
		t.Errorf("for %d networks more there were %d changes of flows; the agent says %s, before %s",
			networks-1, l.counts().Flows-before.Flows, now, mods)
	}
	order := rand.Perm(networks)
	for _, i := range order[:10] {
		s.pod(all[i], "a")
	}
	for _, i := range order[10:20] {
		s.must(s.tracesOut(t.Context(), all[i]))
	}
}

// tracesOut has ovn-trace follow a packet of the node's own port of a network to the outside.
func (s *site) tracesOut(ctx context.Context, n *lab.Network) error {
	port, subnet := "k8s-"+n.Prefix+s.ovs.Name, n.NodeSubnets(s.zone)[0]
	from := subnet.Masked().Addr().Next().Next()
	mac, err := s.zone.Nbctl(ctx, "--bare", "--columns=mac", "find", "Logical_Router_Port", "name=rtos-"+n.Prefix+s.ovs.Name)
	if err != nil {
		return err
	}
	own, err := s.zone.Nbctl(ctx, "--bare", "lsp-get-addresses", port)
	if err != nil {
		return err
	}
	out, err := s.ovs.Exec(ctx, "ovn-trace", "--db="+s.zone.SB(), "--minimal", n.Switch(s.zone), fmt.Sprintf(
		`inport == "%s" && eth.src == %s && eth.dst == %s && ip4.src == %s && ip4.dst == %s && ip.ttl == 64 && icmp4.type == 8`,
		port, strings.Fields(own)[0], strings.TrimSpace(mac), from, lab.InternetAddress))
	if err != nil {
		return err
	}
	if !strings.Contains(out, "uplink_tenant-blue_phys_worker-a") {
		return fmt.Errorf("network %s: a packet does not leave by the Uplink:\n%s", n.Spec.CUDN, out)
	}
	return nil
}
