// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ovn-uplink/ovn-uplink/test/lab"
)

// repaired is how soon flows have to be back.
const repaired = 2 * time.Second

// What a gateway stands on is restarted, or changed by other hands: everything of ours comes back by itself, all that
// is others' stays as it was, and packets flow again (B13, B14, B16, B17, B20).
func TestB20GatewaySubstrate(t *testing.T) {
	t.Parallel()
	for _, v := range lab.OVNVersions(t) {
		t.Run(v.Name, func(t *testing.T) {
			c := newGatewayCluster(t, v)
			s := c.pairSite("worker-b")
			s.foreigners()
			c.uplink("tenant-blue", nodeConfig(s.iface, nil))
			s.agents()
			blue := c.tenantNetwork("tenant-blue", lab.NetworkSpec{CUDN: "blue"}, s)
			flat := c.tenantNetwork("tenant-blue", lab.NetworkSpec{CUDN: "flat", Topology: lab.Layer2}, s)
			c.within(programmed, "tenant-blue", s.node, covers("blue", "flat"))
			pods := []*lab.Pod{s.pod(blue, "a"), s.pod(flat, "a")}

			s.flowsByHand(pods[0])
			s.mappingByHand(pods[0])
			s.rowsByHand(pods[0])
			s.routerAnew(blue, pods)
			s.databases(pods[0])
			s.patchPortAnew(pods)
			s.vswitchdAnew(pods)
			c.within(programmed, "tenant-blue", s.node, covers("blue", "flat"))
		})
	}
}

// restored asserts that within a time everything is as it was, and the gateway ready.
func (s *site) restored(want footprint, d time.Duration, what string) {
	s.t.Helper()
	start := time.Now()
	err := lab.Eventually(s.t.Context(), d, func(ctx context.Context) error { return s.like(ctx, want) })
	if err != nil {
		s.t.Errorf("%s: %v", what, err)
	}
	s.t.Logf("%s: all there after %s", what, time.Since(start).Round(time.Millisecond))
	s.within(programmed, "tenant-blue", s.node, covers("blue", "flat"))
}

// like compares all but the UUIDs of dpu-agent's rows, which it may have made anew.
func (s *site) like(ctx context.Context, want footprint) error {
	now, err := s.footprint(ctx)
	if err != nil {
		return err
	}
	for _, part := range []struct {
		what      string
		want, now string
	}{
		{"flows", anyPatch(want.Own), anyPatch(now.Own)},
		{"flows of others", strings.Join(want.Foreign, "\n"), strings.Join(now.Foreign, "\n")},
		{"ports without floods", strings.Join(want.Quiet, "\n"), strings.Join(now.Quiet, "\n")},
		{"external_ids", want.ExternalIDs, now.ExternalIDs},
		{"rows", ownRows(want.NB), ownRows(now.NB)},
		{"rows of others", othersRows(want.NB), othersRows(now.NB)},
	} {
		if part.want != part.now {
			return fmt.Errorf("%s are\n%s\nwant\n%s", part.what, part.now, part.want)
		}
	}
	return nil
}

// anyPatch are flows with a word for the number of the patch port, which changes when ovn-controller makes it anew.
func anyPatch(flows []string) string {
	all := strings.Join(flows, "\n")
	_, rest, _ := strings.Cut(all, "ct_clear,output:")
	number, _, _ := strings.Cut(rest, "\n")
	return strings.NewReplacer("ct_clear,output:"+number, "ct_clear,output:PATCH", "in_port="+number+",", "in_port=PATCH,",
		"in_port="+number+" ", "in_port=PATCH ").Replace(all)
}

func (s *site) flowsByHand(pod *lab.Pod) {
	want := s.look()
	del := func(args ...string) func() {
		return func() {
			_, err := s.ovs.OVS.Ofctl(s.t.Context(), append([]string{"del-flows"}, args...)...)
			s.must(err)
		}
	}
	for what, do := range map[string]func(){
		"one flow deleted":       del("--strict", s.bridge, "priority=31010,dl_src=02:42:ac:1c:00:03"),
		"all flows deleted":      del(s.bridge, ownCookies),
		"flows of a table":       del(s.bridge, ownCookies+",table=172"),
		"a flow with our cookie": func() { s.must(s.intrude()) },
	} {
		do()
		s.restored(want, repaired, what)
	}
	s.pings(pod.Node, lab.InternetAddress)
}

func (s *site) intrude() error {
	_, err := s.ovs.OVS.Ofctl(s.t.Context(), "add-flow", s.bridge, "cookie=0x75706c6b0000fac8,priority=31999,ip,nw_src=192.0.2.1,actions=drop")
	return err
}

// mappingByHand: the CNI writes the whole string, in its own order and from an old read.
func (s *site) mappingByHand(pod *lab.Pod) {
	ours := "uplink-tenant-blue:" + s.bridge
	for what, value := range map[string]string{
		"mapping gone":      "physnet:br-ex,other:br-other",
		"mapping reordered": ours + ",other:br-other,physnet:br-ex",
		"mapping to wrong":  "uplink-tenant-blue:br-wrong,physnet:br-ex,other:br-other",
		"mapping twice":     ours + ",physnet:br-ex," + ours,
	} {
		s.vsctl(s.ovs, "--no-wait", "set", "Open_vSwitch", ".", `external_ids:ovn-bridge-mappings="`+value+`"`)
		s.must(lab.Eventually(s.t.Context(), settled, func(ctx context.Context) error {
			now, err := s.ovs.OVS.Vsctl(ctx, "get", "Open_vSwitch", ".", "external_ids:ovn-bridge-mappings")
			if err != nil {
				return err
			}
			now = strings.Trim(strings.TrimSpace(now), `"`)
			foreign := func(v string) string {
				var kept []string
				for _, m := range strings.Split(v, ",") {
					if !strings.HasPrefix(m, "uplink-") {
						kept = append(kept, m)
					}
				}
				return strings.Join(kept, ",")
			}
			if strings.Count(","+now+",", ","+ours+",") != 1 || strings.Count(now, "uplink-") != 1 || foreign(now) != foreign(value) {
				return fmt.Errorf("%s: mappings are %s", what, now)
			}
			return nil
		}))
	}
	s.within(programmed, "tenant-blue", s.node, covers("blue", "flat"))
	s.pings(pod.Node, lab.InternetAddress)
}
