// SPDX-License-Identifier: Apache-2.0

package hostlink

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/ovn-uplink/ovn-uplink/shared/kernel"
	"github.com/ovn-uplink/ovn-uplink/shared/kernel/kerneltest"
	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
	"go.uber.org/goleak"
)

// TestDiscoverInNamespace takes one veth through the life of an Uplink's interface, in a real kernel.
func TestDiscoverInNamespace(t *testing.T) {
	ns := kerneltest.NewNamespace(t)
	t.Cleanup(func() { goleak.VerifyNone(t) })
	changed := make(chan struct{}, 1)
	monitor := kernel.NewMonitor(kernel.Options{Namespace: &ns.Handle})
	monitor.OnChange(func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = monitor.Run(ctx)
	}()
	t.Cleanup(func() { cancel(); <-ended })

	steps := []struct {
		do        []string
		reason    string
		addresses []string
		gateways  []string
	}{
		{do: []string{"link add br0 type bridge"}, reason: uplinkstate.ReasonHostInterfaceNotFound},
		{do: []string{"link add eth7 type veth peer name peer", "link set eth7 addrgenmode none up", "link property add dev eth7 altname enp65s0f0np0pf0vf0"},
			reason: uplinkstate.ReasonInvalidHostInterface},
		{do: []string{"link set peer up"}, reason: uplinkstate.ReasonGatewayInfoUnavailable},
		{do: []string{"addr add 192.0.2.200/32 dev eth7 preferred_lft 0", "addr add 192.0.2.5/24 dev eth7"}, addresses: []string{"192.0.2.5/24"}},
		{do: []string{"addr add 2001:db8::5/64 dev eth7 nodad"}, addresses: []string{"192.0.2.5/24", "2001:db8::5/64"}},
		{do: []string{"route add default via 192.0.2.1 metric 200", "-6 route add default via fe80::1 dev eth7 proto ra"},
			addresses: []string{"192.0.2.5/24", "2001:db8::5/64"}, gateways: []string{"192.0.2.1", "fe80::1"}},
		{do: []string{"route add default metric 100 nexthop via 192.0.2.3 dev eth7 nexthop via 192.0.2.2 dev eth7 weight 2"},
			addresses: []string{"192.0.2.5/24", "2001:db8::5/64"}, gateways: []string{"192.0.2.2", "fe80::1"}},
		{do: []string{"route add default via 192.0.2.9 metric 20 proto bgp", "route add unreachable default metric 4278198272", "-6 route del default"},
			addresses: []string{"192.0.2.5/24", "2001:db8::5/64"}, gateways: []string{"192.0.2.2"}},
		{do: []string{"addr del 192.0.2.5/24 dev eth7"}, addresses: []string{"192.0.2.200/32", "2001:db8::5/64"}, gateways: []string{"192.0.2.2"}},
		{do: []string{"link set peer down"}, reason: uplinkstate.ReasonInvalidHostInterface},
		{do: []string{"link del eth7"}, reason: uplinkstate.ReasonHostInterfaceNotFound},
	}
	for _, step := range steps {
		ns.IP(step.do...)
		deadline := time.After(5 * time.Second)
		for {
			var data uplinkstate.HostData
			var problem *uplinkstate.Problem
			if s, ok := monitor.Latest(); ok {
				data, problem = Discover(s, "enp65s0f0np0pf0vf0")
				reason := ""
				if problem != nil {
					reason = problem.Reason
				}
				if reason == step.reason && slices.Equal(textOf(data.Addresses), step.addresses) && slices.Equal(textOf(data.Gateways), step.gateways) {
					break
				}
			}
			select {
			case <-changed:
				continue
			case <-deadline:
				t.Fatalf("after %q: %+v, %v; want %+v", step.do, data, problem, step)
			}
		}
	}
}
