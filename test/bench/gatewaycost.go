// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/ovn-uplink/ovn-uplink/test/lab"
)

// arpCost is in how many tables one frame from the wire is looked up, in all bridges.
type arpCost struct{ request, reply int }

// arp traces an ARP request for the Uplink's address and a reply to it.
func (s *site) arp(ctx context.Context) (c arpCost, err error) {
	own, gateway := s.node.Spec.Addresses[0].Addr(), s.node.Spec.Gateways[0]
	// So that the bridge knows where the gateway is.
	if _, err := s.node.Exec(ctx, "ping", "-c", "1", "-W", "5", gateway.String()); err != nil {
		return c, err
	}
	port, err := s.ofport(ctx, s.node.Spec.Uplink)
	if err != nil {
		return c, err
	}
	mac, err := s.gatewayMAC(ctx)
	if err != nil {
		return c, err
	}
	for _, t := range []struct {
		to                *int
		op                int
		destination, hash string
	}{{&c.request, 1, "ff:ff:ff:ff:ff:ff", "00:00:00:00:00:00"}, {&c.reply, 2, s.node.Spec.MAC, s.node.Spec.MAC}} {
		flow := fmt.Sprintf("in_port=%d,arp,dl_src=%s,dl_dst=%s,arp_op=%d,arp_spa=%s,arp_tpa=%s,arp_sha=%s,arp_tha=%s",
			port, mac, t.destination, t.op, gateway, own, mac, t.hash)
		out, err := s.node.OVS.Appctl(ctx, "ofproto/trace", s.node.Spec.Bridge, flow)
		if err != nil {
			return c, err
		}
		*t.to = lookups(out)
	}
	return c, nil
}

// gatewayMAC is the MAC of the router on the wire, as the node has learned it.
func (s *site) gatewayMAC(ctx context.Context) (string, error) {
	var mac, via string
	out, err := s.node.IP(ctx, "neigh", "show", s.node.Spec.Gateways[0].String(), "dev", s.node.Spec.Bridge)
	if err == nil {
		_, err = fmt.Sscanf(out, "%s lladdr %s", &via, &mac)
	}
	if err != nil {
		return "", fmt.Errorf("MAC of the gateway in %q: %w", out, err)
	}
	return mac, nil
}

func arpRow(networks int, one, many arpCost) row {
	return row{
		Measure: "ARP from the wire: lookups", How: fmt.Sprintf("traced, all bridges; a request for the Uplink's address, a reply to it; 1 / %d networks", networks),
		Figure: fmt.Sprintf("request %d / %d; reply %d / %d", one.request, many.request, one.reply, many.reply),
		// Frames that are looked up nowhere would be equal, too.
		Target: "equal", Verdict: judge(one == many && one.request > 0 && one.reply > 0),
		Values: map[string]float64{
			"request1": float64(one.request), "requestMany": float64(many.request),
			"reply1": float64(one.reply), "replyMany": float64(many.reply),
		},
	}
}

// path is one kind of packets.
type path struct {
	name string
	cost
}

// costs sends real connections through the gateway of the first network, both ways, and reads in the datapath what
// their packets cost.
func (s *site) costs(ctx context.Context) ([]row, error) {
	pod, err := s.networks[0].Pod(ctx, s.zone, "a")
	if err != nil {
		return nil, err
	}
	outside := s.node.External.Node
	internet := netip.AddrPortFrom(lab.InternetAddress, 8080)
	inside := netip.AddrPortFrom(pod.Addresses[0], 80)
	for _, at := range []struct {
		node *lab.Node
		to   netip.AddrPort
	}{{outside, internet}, {pod.Node, inside}} {
		server, err := at.node.StartHTTP(at.to, "bench")
		if err != nil {
			return nil, err
		}
		defer func() { _ = server.Close() }()
	}
	spec := lab.ServiceSpec{Namespace: s.networks[0].Spec.Namespace, Name: "web", Ports: []lab.ServicePort{{Port: 80}}}
	svc, err := s.CreateService(ctx, spec)
	if err != nil {
		return nil, err
	}
	if err := s.MirrorEndpoints(ctx, spec, s.networks[0], pod); err != nil {
		return nil, err
	}
	nodePort := netip.AddrPortFrom(s.node.Spec.Addresses[0].Addr(), uint16(svc.Spec.Ports[0].NodePort))

	var paths []path
	for _, t := range []struct {
		out, in string
		client  *lab.Node
		to      netip.AddrPort
	}{{"pod egress", "its reply", pod.Node, internet}, {"NodePort reply", "NodePort", outside, nodePort}} {
		out, in, err := s.observe(ctx, t.client, t.to, pod.Plug)
		if err != nil {
			return nil, err
		}
		paths = append(paths, path{t.out, out}, path{t.in, in})
	}
	return []row{costRow(paths)}, nil
}

// observe makes connections and returns what the datapath shows of their packets: those that a pod sent by its port,
// and those that came from the wire.
func (s *site) observe(ctx context.Context, client *lab.Node, to netip.AddrPort, pod string) (out, in cost, err error) {
	get := func(ctx context.Context) error {
		_, err := client.HTTPGet(ctx, to)
		return err
	}
	if err := lab.Eventually(ctx, converged, get); err != nil {
		return out, in, fmt.Errorf("connect to %s: %w", to, err)
	}
	if _, err := s.node.OVS.Appctl(ctx, "revalidator/purge"); err != nil {
		return out, in, err
	}
	// The datapath learns a flow some time after the packet that it is for.
	err = lab.Eventually(ctx, time.Minute, func(ctx context.Context) error {
		for range 3 {
			if err := get(ctx); err != nil {
				return fmt.Errorf("connect to %s: %w", to, err)
			}
		}
		dump, err := s.node.OVS.Appctl(ctx, "dpctl/dump-flows", "--names")
		if err != nil {
			return err
		}
		var wrong error
		out, err = pathCost(dump, pod)
		in, wrong = pathCost(dump, s.node.Spec.Uplink)
		return errors.Join(err, wrong)
	})
	return out, in, err
}

func costRow(paths []path) row {
	r := row{
		Measure: "conntrack passes + recirculations", How: "on the bridge, and in OVN: the dearest way of a TCP packet in the datapath",
		Target: "≤ 1 pass on the bridge", Verdict: met, Values: map[string]float64{},
	}
	r.Figure = series(paths, func(p path) string { return fmt.Sprintf("%s %s, OVN %s", p.name, p.bridge, p.ovn) })
	for _, p := range paths {
		r.Values[p.name+" on the bridge"], r.Values[p.name+" in OVN"] = float64(p.bridge.conntrack), float64(p.ovn.conntrack)
		if p.bridge.conntrack > 1 {
			r.Verdict = missed
		}
	}
	return r
}
