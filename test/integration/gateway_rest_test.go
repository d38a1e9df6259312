// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ovn-uplink/ovn-uplink/shared/api/v1alpha1"
	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
	"github.com/ovn-uplink/ovn-uplink/test/lab"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// At rest nothing is written anywhere; a restart of the agent is none that anybody could notice; and what GatewayReady
// says of a new network is true at every moment (B20, B21).
func TestGatewayAtRest(t *testing.T) {
	t.Parallel()
	c := newGatewayCluster(t, version(t, "installed"))
	s := c.regularSite("worker-a", lab.RegularSpec{})
	s.foreigners()
	c.uplink("tenant-blue", nodeConfig(s.iface, nil))
	agent := s.dpuAgent()
	blue := c.tenantNetwork("tenant-blue", lab.NetworkSpec{CUDN: "blue"}, s)
	c.tenantNetwork("tenant-blue", lab.NetworkSpec{CUDN: "flat", Topology: lab.Layer2}, s)
	c.within(programmed, "tenant-blue", s.node, covers("blue", "flat"))
	pod := s.pod(blue, "a")
	l := s.ledger()
	l.settle()

	before := s.sentMods()
	l.still(10*time.Second, "at rest", func() {})
	if now := s.sentMods(); now != before || before == "" {
		t.Errorf("flow mods at rest: %s, before %s", now, before)
	}
	for _, end := range []struct {
		what string
		do   func(*lab.Process, context.Context) error
	}{{"SIGTERM", (*lab.Process).Stop}, {"SIGKILL", (*lab.Process).Kill}} {
		c.lossless(pod.Node, "restart by "+end.what, func() {
			l.still(10*time.Second, "restart by "+end.what, func() {
				c.must(end.do(agent, t.Context()))
				agent = s.dpuAgent()
			})
		})
		for line := range strings.Lines(s.sentMods()) {
			if !strings.HasSuffix(strings.TrimSpace(line), " 0") {
				t.Errorf("after a restart by %s the agent has sent %s", end.what, line)
			}
		}
	}
	s.announced(l, pod)
}

// announced follows a new network: not ready before anything of it is programmed, ready when all of it is.
func (s *site) announced(l *ledger, pod *lab.Pod) {
	s.t.Helper()
	pending := condition(uplinkstate.GatewayReady, metav1.ConditionFalse, uplinkstate.ReasonGatewayConfigurationPending)
	rows := func(ctx context.Context) (string, error) { return s.zone.Nbctl(ctx, "lr-list") }
	red, err := s.Network(s.t.Context(), lab.NetworkSpec{CUDN: "red"}, s.zone)
	s.must(err)
	s.must(s.zone.Sync(s.t.Context()))
	l.settle()

	// With the database held up nothing can be programmed yet; what is published now was published before.
	s.must(s.zone.NBProcess().Signal(syscall.SIGSTOP))
	before := l.counts()
	s.cudn("tenant-blue", red)
	s.within(4*time.Second, "tenant-blue", s.node, func(state *v1alpha1.UplinkState) error {
		if err := pending(state); err != nil {
			return err
		}
		if message := meta.FindStatusCondition(state.Status.Conditions, uplinkstate.GatewayReady).Message; !strings.Contains(message, "red: the set of active networks has changed") {
			return fmt.Errorf("message %q", message)
		}
		return all(phase("blue", v1alpha1.NetworkReady), phase("flat", v1alpha1.NetworkReady), phase("red", v1alpha1.NetworkPending))(state)
	})
	if got := l.counts().minus(before); got.OVSDB+got.NB+got.Flows != 0 {
		s.t.Errorf("programmed before it was announced: %+v", got)
	}
	// Everything but ovn-controller has done its part: it is still not ready.
	s.must(s.zone.ControllerProcess().Signal(syscall.SIGSTOP))
	s.must(s.zone.NBProcess().Signal(syscall.SIGCONT))
	s.must(lab.Eventually(s.t.Context(), settled, func(ctx context.Context) error {
		out, err := rows(ctx)
		if err == nil && !strings.Contains(out, "uplink_tenant-blue_gw_cluster_udn_red_") {
			err = fmt.Errorf("routers: %s", out)
		}
		return err
	}))
	l.settle()
	s.within(settled, "tenant-blue", s.node, all(pending, phase("red", v1alpha1.NetworkPending, "waiting for ovn-controller")))
	s.lossless(pod.Node, "a network comes and goes", func() {
		s.must(s.zone.ControllerProcess().Signal(syscall.SIGCONT))
		s.within(programmed, "tenant-blue", s.node, covers("blue", "flat", "red"))
		s.pod(red, "a")
		l.settle()
		if got := l.counts().minus(before); got.Flows != 0 || got.NB == 0 {
			s.t.Errorf("a network more on an Uplink: %+v, want no flow of the bridge changed", got)
		}
		s.must(s.DeleteCUDN(s.t.Context(), "red"))
		s.within(programmed, "tenant-blue", s.node, covers("blue", "flat"))
	})
	s.must(lab.Eventually(s.t.Context(), settled, func(ctx context.Context) error {
		out, err := rows(ctx)
		if err == nil && (strings.Contains(out, "_gw_cluster_udn_red_") || !strings.Contains(out, "_gw_cluster_udn_blue_")) {
			err = fmt.Errorf("routers after the network was deleted: %s", out)
		}
		return err
	}))
}
