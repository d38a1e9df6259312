// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/ovn-uplink/ovn-uplink/test/lab"
	corev1 "k8s.io/api/core/v1"
)

// late: a connection whose first SYN had no answer comes about by a later one, and the host sees none of them.
func (s *shop) late(f *field, p *post) {
	ctx := f.t.Context()
	for _, a := range p.addresses {
		to, client := netip.AddrPortFrom(a, blueHTTP), clientAddresses[index(a.Is6())]
		f.service(s.web, s.blue, s.bluePod[p])
		f.answers(to, s.bluePod[p].Name)
		atPod, err := s.bluePod[p].Capture("eth0")
		f.must(err)
		lost := []string{"blackhole", netip.PrefixFrom(client, client.BitLen()).String(), "metric", "1"}
		way := f.route("show", client.String())
		f.route("del", client.String())
		f.route(append([]string{"add"}, lost...)...)
		done := make(chan error, 1)
		go func() {
			ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
			defer cancel()
			got, err := f.client.HTTPGet(ctx, to)
			if err == nil && got.Name != s.bluePod[p].Name {
				err = fmt.Errorf("answer of %s", got.Name)
			}
			done <- err
		}()
		again := func(p lab.Packet) bool { return !p.Outgoing && p.TCPFlags == 2 }
		f.check(lab.Eventually(ctx, 10*time.Second, func(context.Context) error {
			if n := atPod.Count(again, lab.Port(podHTTP)); n < 2 {
				return fmt.Errorf("%d SYNs at the pod", n)
			}
			return nil
		}))
		f.route(append([]string{"del"}, lost...)...)
		f.route(append([]string{"add"}, strings.Fields(way)...)...)
		if err := <-done; err != nil {
			f.t.Errorf("a connection to %s whose SYNs had to be sent again: %v", to, err)
		}
		f.check(atPod.Close())
	}
	f.service(s.web, s.blue, s.all(s.bluePod)...)
}

// route runs ip(8) for a route of the gateways outside.
func (f *field) route(args ...string) string {
	f.t.Helper()
	family := "-4"
	if strings.Contains(strings.Join(args, " "), ":") {
		family = "-6"
	}
	out, err := f.external.IP(f.t.Context(), append([]string{family, "route"}, args...)...)
	f.must(err)
	return out
}

func index(second bool) int {
	if second {
		return 1
	}
	return 0
}

// addresses: services that have an address of their own, which two networks share by port.
func (s *shop) addresses(f *field) {
	ctx, p := f.t.Context(), s.posts[0]
	for i, gateway := range p.addresses {
		for _, a := range []netip.Addr{externalIPs[i], balancerIPs[i]} {
			_, err := f.external.IP(ctx, "route", "replace", netip.PrefixFrom(a, a.BitLen()).String(), "via", gateway.String())
			f.must(err)
		}
	}
	spec := twoPorts("blue", "owned", 0, 0)
	spec.Type, spec.ExternalIPs, spec.Ingress = corev1.ServiceTypeLoadBalancer, externalIPs, balancerIPs
	f.service(spec, s.blue, s.bluePod[p])
	shared := twoPorts("red", "owned", 0, 0)
	shared.ExternalIPs = externalIPs
	shared.Ports[0].Port, shared.Ports[1].Port = 81, 91
	f.service(shared, s.red, s.redPod[p])
	for i := range externalIPs {
		for _, a := range []netip.Addr{externalIPs[i], balancerIPs[i]} {
			f.answers(netip.AddrPortFrom(a, vipHTTP), s.bluePod[p].Name)
			f.fragments(f.client, netip.AddrPortFrom(a, vipEcho))
		}
		f.answers(netip.AddrPortFrom(externalIPs[i], 81), s.redPod[p].Name)
		f.echo(f.client, netip.AddrPortFrom(externalIPs[i], 91), 100)
	}
	f.service(spec, s.blue) // without endpoints
	f.refused(append(externalIPs[:2:2], balancerIPs...), vipHTTP, vipEcho)
}

// affinity: a client keeps its endpoint.
func (s *shop) affinity(f *field) {
	spec := twoPorts("blue", "sticky", 30480, 30490)
	spec.AffinitySeconds = 3600
	f.service(spec, s.blue, s.all(s.bluePod)...)
	for _, a := range s.posts[0].addresses {
		to := netip.AddrPortFrom(a, 30480)
		f.reaches("sticky service", func(ctx context.Context) error {
			first, err := f.ask(ctx, to)
			for range 12 {
				if err != nil {
					return err
				}
				var next lab.Answer
				if next, err = f.ask(ctx, to); err == nil && next.Name != first.Name {
					return fmt.Errorf("%s answered, and then %s", first.Name, next.Name)
				}
			}
			return err
		})
	}
}

// changeTries are how often the time of a change is taken: the shortest counts, on a machine that does other things too.
const changeTries = 4

// change: another endpoint is used within two seconds, and the one that is gone is not used any more.
func (s *shop) change(f *field) {
	p := s.posts[0]
	spec := twoPorts("red", "moving", 30580, 30590)
	pods := []*lab.Pod{s.redPod[p], f.pod(s.red, p, "b")}
	f.serve(pods[1].Node, pods[1].Addresses)
	f.service(spec, s.red, pods[0])
	to := netip.AddrPortFrom(p.addresses[0], 30580)
	f.answers(to, pods[0].Name)
	var best time.Duration
	for try := range changeTries {
		now := pods[(try+1)%2]
		begin := time.Now()
		f.service(spec, s.red, now)
		f.must(lab.Eventually(f.t.Context(), 20*time.Second, func(ctx context.Context) error {
			got, err := f.ask(ctx, to)
			if err == nil && got.Name != now.Name {
				err = errors.New(got.Name + " still answers")
			}
			return err
		}))
		took := time.Since(begin)
		f.answers(to, now.Name)
		f.t.Logf("the endpoint was another after %s", took)
		if best == 0 || took < best {
			best = took
		}
	}
	if best > 2*time.Second {
		f.t.Errorf("a change of endpoints takes %s at best", best)
	}
}

// sctp: a node port of SCTP.
func (s *shop) sctp(f *field, p *post) {
	lab.NeedSCTP(f.t)
	spec := lab.ServiceSpec{Namespace: "blue", Name: "signal", DualStack: true,
		Ports: []lab.ServicePort{{Protocol: corev1.ProtocolSCTP, Port: 99, NodePort: blueSCTP, Target: 9900}}}
	for _, a := range s.bluePod[p].Addresses {
		_, err := s.bluePod[p].StartSCTPEcho(netip.AddrPortFrom(a, 9900))
		f.must(err)
	}
	f.service(spec, s.blue, s.bluePod[p])
	for _, a := range p.addresses {
		f.reaches("SCTP", func(ctx context.Context) error {
			return f.client.EchoSCTP(ctx, netip.AddrPortFrom(a, blueSCTP), 100)
		})
	}
}
