// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ovn-uplink/ovn-uplink/test/lab"
)

// ownRows are dpu-agent's rows of a dump without UUIDs, sorted.
func ownRows(dump string) string {
	var kept []string
	for _, row := range strings.Split(dump, "\n") {
		if strings.Contains(row, "ovn-uplink/owner") {
			kept = append(kept, uuids.ReplaceAllString(row, ""))
		}
	}
	slices.Sort(kept)
	return strings.Join(kept, "\n")
}

// rowsByHand takes rows of ours away.
func (s *site) rowsByHand(pod *lab.Pod) {
	want := s.look()
	for what, args := range map[string][]string{
		"edge router deleted":     {"lr-del", "uplink_tenant-blue_edge_worker-b"},
		"external switch deleted": {"ls-del", "uplink_tenant-blue_ext_worker-b"},
		"gateway router deleted":  {"lr-del", "uplink_tenant-blue_gw_cluster_udn_blue_worker-b"},
		"policies deleted":        {"lr-policy-del", "cluster_udn_blue_ovn_cluster_router", "90"},
		"MAC changed":             {"set", "Logical_Router_Port", "uplink_tenant-blue_edge_worker-b-ext", `mac="02:00:00:00:00:99"`},
	} {
		_, err := s.zone.Nbctl(s.t.Context(), args...)
		s.must(err)
		s.restored(want, settled, what)
	}
	s.pings(pod.Node, lab.InternetAddress)
}

// routerAnew: the CNI makes the routers of a network anew, under the same names.
func (s *site) routerAnew(blue *lab.Network, pods []*lab.Pod) {
	// What was put back before is carried out.
	s.must(s.zone.Sync(s.t.Context()))
	s.pings(pods[1].Node, lab.InternetAddress)
	s.lossless(pods[1].Node, "the other network's routers are made anew", func() {
		s.must(blue.Delete(s.t.Context()))
		pause(s.t, time.Second)
		s.must(blue.Recreate(s.t.Context()))
		s.within(programmed, "tenant-blue", s.node, covers("blue", "flat"))
		s.pings(pods[0].Node, lab.InternetAddress)
	})
}

// databases: restarts of the servers and of ovn-northd are nothing that packets notice.
func (s *site) databases(pod *lab.Pod) {
	want := s.look()
	restart := func(stop, start func(context.Context) error) func() error {
		return func() error {
			if err := stop(s.t.Context()); err != nil {
				return err
			}
			return start(s.t.Context())
		}
	}
	o := s.ovs.OVS
	for what, do := range map[string]func() error{
		"Open vSwitch's database restarted": restart(o.StopDB, o.StartDB),
		"northbound database restarted":     restart(s.zone.StopNB, s.zone.StartNB),
		"southbound database restarted":     restart(s.zone.StopSB, s.zone.StartSB),
		"ovn-northd restarted":              restart(s.zone.StopNorthd, s.zone.StartNorthd),
	} {
		s.lossless(pod.Node, what, func() {
			s.must(do())
			pause(s.t, time.Second)
			s.ready(s.ovs, dpuHealth)
			s.restored(want, settled, what)
		})
	}
}

// patchPort is the OpenFlow number of the patch port, as Open vSwitch has it.
func (s *site) patchPort(ctx context.Context) (string, error) {
	out, err := s.ovs.OVS.Vsctl(ctx, "--bare", "--columns=name", "find", "Port", "external_ids:ovn-localnet-port=uplink_tenant-blue_phys_worker-b")
	if err != nil {
		return "", err
	}
	for _, name := range strings.Fields(out) {
		bridge, err := s.ovs.OVS.Vsctl(ctx, "port-to-br", name)
		if err != nil {
			return "", err
		}
		if strings.TrimSpace(bridge) == s.bridge {
			number, err := s.ovs.OVS.Vsctl(ctx, "get", "Interface", name, "ofport")
			return strings.TrimSpace(number), err
		}
	}
	return "", fmt.Errorf("no patch port on %s among %q", s.bridge, out)
}

// patchPortAnew: ovn-controller takes its patch ports away when it ends and makes them again, with another number.
func (s *site) patchPortAnew(pods []*lab.Pod) {
	old, err := s.patchPort(s.t.Context())
	s.must(err)
	s.must(s.zone.StopController(s.t.Context()))
	s.vsctl(s.ovs, "add-port", s.bridge, "squatter", "--", "set", "Interface", "squatter", "type=internal", "ofport_request="+old)
	s.must(s.zone.StartController(s.t.Context()))
	s.within(programmed, "tenant-blue", s.node, covers("blue", "flat"))
	s.must(lab.Eventually(s.t.Context(), settled, func(ctx context.Context) error {
		now, err := s.patchPort(ctx)
		if err != nil {
			return err
		}
		flows, err := s.flows(ctx, s.bridge, ownCookies)
		if err != nil {
			return err
		}
		all := strings.Join(flows, "\n")
		if !strings.Contains(all, "output:"+now+"\n") || old == now || strings.Contains(all, "in_port="+old+" ") || strings.Contains(all, "in_port="+old+",") {
			return fmt.Errorf("patch port %s, before %s, flows:\n%s", now, old, all)
		}
		return nil
	}))
	s.vsctl(s.ovs, "del-port", s.bridge, "squatter")
	s.within(programmed, "tenant-blue", s.node, covers("blue", "flat"))
	for _, pod := range pods {
		s.pings(pod.Node, lab.InternetAddress)
	}
}

// vswitchdAnew: ovs-vswitchd ends, and all flows with it.
func (s *site) vswitchdAnew(pods []*lab.Pod) {
	for _, kill := range []bool{false, true} {
		if kill {
			s.must(s.ovs.OVS.VswitchdProcess().Kill(s.t.Context()))
		} else {
			s.must(s.ovs.OVS.StopVswitchd(s.t.Context()))
		}
		s.must(s.ovs.OVS.StartVswitchd(s.t.Context()))
		start := time.Now()
		s.must(lab.Eventually(s.t.Context(), settled, func(ctx context.Context) error {
			flows, err := s.flows(ctx, s.bridge, ownCookies)
			if err == nil && len(flows) < 20 {
				err = fmt.Errorf("%d flows", len(flows))
			}
			return err
		}))
		if took := time.Since(start); took > repaired {
			s.t.Errorf("flows were back %s after ovs-vswitchd", took)
		} else {
			s.t.Logf("flows were back %s after ovs-vswitchd", took.Round(time.Millisecond))
		}
		s.within(programmed, "tenant-blue", s.node, covers("blue", "flat"))
		for _, pod := range pods {
			s.pings(pod.Node, lab.InternetAddress)
		}
	}
}
