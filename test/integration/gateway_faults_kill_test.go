// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"errors"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/ovn-uplink/ovn-uplink/test/lab"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Killed at random points while networks come and go, and between the steps of taking an Uplink down, dpu-agent ends
// where it would have ended without, and leaves nothing behind (B22).
func TestB22GatewaySurvivesKills(t *testing.T) {
	t.Parallel()
	c := newGatewayCluster(t, version(t, "newer"))
	s := c.regularSite("worker-a", lab.RegularSpec{})
	s.foreigners()
	var networks []*lab.Network
	for _, spec := range []lab.NetworkSpec{{CUDN: "blue"}, {CUDN: "flat", Topology: lab.Layer2}, {CUDN: "red"}} {
		n, err := c.Network(t.Context(), spec, s.zone)
		c.must(err)
		networks = append(networks, n)
	}
	c.must(s.zone.Sync(t.Context()))
	before := s.look()

	c.uplink("tenant-blue", nodeConfig(s.iface, nil))
	agent := s.dpuAgent()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	there := map[string]bool{}
	for cycle := 1; cycle <= 50; cycle++ {
		n := networks[random.IntN(len(networks))]
		if there[n.Spec.CUDN] = !there[n.Spec.CUDN]; there[n.Spec.CUDN] {
			c.cudn("tenant-blue", n)
		} else {
			c.must(c.DeleteCUDN(t.Context(), n.Spec.CUDN))
		}
		pause(t, time.Duration(random.IntN(1500))*time.Millisecond)
		if random.IntN(4) > 0 {
			c.must(agent.Kill(t.Context()))
			agent = s.start(s.ovs, "dpu-agent", s.args...)
		}
		if cycle%10 > 0 {
			continue
		}
		var want []string
		for _, n := range networks {
			if there[n.Spec.CUDN] {
				want = append(want, n.Spec.CUDN)
			}
		}
		t.Logf("after %d cycles: %v", cycle, want)
		c.within(programmed, "tenant-blue", s.node, covers(want...))
		s.untouched(before, "cycles of networks")
	}
	for _, n := range networks {
		c.must(c.DeleteCUDN(t.Context(), n.Spec.CUDN))
	}
	c.within(programmed, "tenant-blue", s.node, covers())
	s.gone(before)

	c.cudn("tenant-blue", networks[0])
	c.cudn("tenant-blue", networks[1])
	s.interrupted(agent, before)
}

// interrupted takes the Uplink down while one of the components does not answer, kills the agent while it waits for
// that one, and has the next one finish.
func (s *site) interrupted(agent *lab.Process, before footprint) {
	s.t.Helper()
	signal := func(p *lab.Process, sig syscall.Signal) func() error { return func() error { return p.Signal(sig) } }
	for _, step := range []struct {
		what       string
		stop, goOn func() error
	}{
		{"northbound database", signal(s.zone.NBProcess(), syscall.SIGSTOP), signal(s.zone.NBProcess(), syscall.SIGCONT)},
		{"ovn-controller", signal(s.zone.ControllerProcess(), syscall.SIGSTOP), signal(s.zone.ControllerProcess(), syscall.SIGCONT)},
		{"ovs-vswitchd", signal(s.ovs.OVS.VswitchdProcess(), syscall.SIGSTOP), signal(s.ovs.OVS.VswitchdProcess(), syscall.SIGCONT)},
		{"the agent alone", func() error { return nil }, func() error { return nil }},
	} {
		s.within(programmed, "tenant-blue", s.node, covers("blue", "flat"))
		s.must(step.stop())
		s.dropUplink("tenant-blue")
		for range 3 {
			pause(s.t, time.Duration(300+rand.IntN(1500))*time.Millisecond)
			s.must(agent.Kill(s.t.Context()))
			agent = s.start(s.ovs, "dpu-agent", s.args...)
		}
		s.must(step.goOn())
		s.must(lab.Eventually(s.t.Context(), programmed, func(ctx context.Context) error {
			if _, err := s.state(ctx, "tenant-blue", s.node); !apierrors.IsNotFound(err) {
				return errors.Join(errors.New("the state is still there"), err)
			}
			return nil
		}))
		s.t.Logf("taken down by one agent after the other while this was held up: %s", step.what)
		s.gone(before)
		s.uplink("tenant-blue", nodeConfig(s.iface, nil))
	}
}
