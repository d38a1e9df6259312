// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ovn-uplink/ovn-uplink/dpu-agent/openflow"
	"github.com/ovn-uplink/ovn-uplink/dpu-agent/ovn"
	"github.com/ovn-uplink/ovn-uplink/test/lab"
)

// minFaster is by how much adding one service beats writing the whole bridge again, with the most services.
const minFaster = 50

// serviceSteps are the numbers of services beside which one more is added.
func (b *bench) serviceSteps() []int { return full(b, []int{10, 1000, 5000, 20000}, []int{10, 1000}) }

// withSwitch makes a node with a bridge and a northbound database, but nothing that computes flows from it.
func (b *bench) withSwitch(ctx context.Context, f func(*lab.Lab, *lab.Regular, *lab.Zone) ([]row, error)) (rows []row, err error) {
	l, err := lab.New(ctx, lab.Options{Dir: b.dir, Log: b.say, NoAPIServer: true})
	if err != nil {
		return nil, err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Minute)
		defer cancel()
		err = errors.Join(err, l.Close(ctx))
	}()
	node, err := l.RegularNode(ctx, worker, lab.RegularSpec{})
	if err != nil {
		return nil, err
	}
	zone, err := node.StartOVN(ctx, lab.OVNSpec{})
	if err != nil {
		return nil, err
	}
	if err := errors.Join(zone.StopController(ctx), zone.StopNorthd(ctx)); err != nil {
		return nil, err
	}
	return f(l, node, zone)
}

// services measures the agent's packages in this process: on a real bridge, and on a real northbound database.
func (b *bench) services(ctx context.Context) ([]row, error) {
	return b.withSwitch(ctx, func(l *lab.Lab, node *lab.Regular, zone *lab.Zone) ([]row, error) {
		rows, err := b.switchRows(ctx, node)
		if err != nil {
			return rows, err
		}
		more, err := b.databaseRows(ctx, l, node, zone)
		return append(rows, more...), err
	})
}

// flowStep is what adding one service beside many costs on a bridge.
type flowStep struct {
	services, flows int
	// mods are the most that one service took.
	mods          int
	took, replace time.Duration
}

// switchRows programs services on a real bridge.
func (b *bench) switchRows(ctx context.Context, node *lab.Regular) ([]row, error) {
	bridge, err := bridgeOf(ctx, node)
	if err != nil {
		return nil, err
	}
	p := openflow.New(openflow.Config{RunDir: node.OVS.RunDir(), Timeout: time.Minute})
	ctx, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = p.Run(ctx)
	}()
	defer func() { stop(); <-done }()
	var steps []flowStep
	for _, m := range b.serviceSteps() {
		b.say("a service beside %d on a bridge", m)
		step, err := addServices(ctx, p, node, bridge, m)
		if err != nil {
			return nil, fmt.Errorf("%d services on a bridge: %w", m, err)
		}
		steps = append(steps, step)
	}
	advertised, err := traceAdvertised(ctx, p, node, bridge)
	if err != nil {
		return nil, err
	}
	return append(flowRows(steps), advertised), nil
}

// bridgeOf is what the agent would know of the node's bridge, with a patch port that leads to another bridge.
func bridgeOf(ctx context.Context, node *lab.Regular) (openflow.Bridge, error) {
	bridge := node.Spec.Bridge
	_, err := node.OVS.Vsctl(ctx, "add-br", "br-ovn", "--", "set", "Bridge", "br-ovn", "datapath_type=netdev", "--",
		"add-port", bridge, "to-ovn", "--", "set", "Interface", "to-ovn", "type=patch", "options:peer=to-wire", "--",
		"add-port", "br-ovn", "to-wire", "--", "set", "Interface", "to-wire", "type=patch", "options:peer=to-ovn")
	if err != nil {
		return openflow.Bridge{}, err
	}
	ports := map[string]uint32{node.Spec.Uplink: 0, "to-ovn": 0}
	for name := range ports {
		out, err := node.OVS.Vsctl(ctx, "get", "Interface", name, "ofport")
		var port uint32
		if err == nil {
			_, err = fmt.Sscan(out, &port)
		}
		if err != nil {
			return openflow.Bridge{}, fmt.Errorf("port %s: %w", name, err)
		}
		ports[name] = port
	}
	return describe(node.Spec, ports[node.Spec.Uplink], ports["to-ovn"])
}

// describe is a node's bridge without services.
func describe(spec lab.RegularSpec, uplink, patch uint32) (openflow.Bridge, error) {
	mac, err := net.ParseMAC(spec.MAC)
	if err != nil {
		return openflow.Bridge{}, err
	}
	return openflow.Bridge{
		Name: spec.Bridge, HostPort: openflow.Local, Uplinks: []uint32{uplink}, Patch: patch, MAC: mac,
		Addresses: []netip.Addr{spec.Addresses[0].Addr()}, Gateways: spec.Gateways,
		Transit: []netip.Prefix{netip.MustParsePrefix("100.91.0.0/16")}, Unroutable: ovn.Ranges{}.Unroutable(), Zone: firstZone,
	}, nil
}

// someServices are n services: node ports and addresses of their own in turn.
func someServices(b openflow.Bridge, n int) []openflow.Service {
	all := make([]openflow.Service, n)
	target := b.Transit[0].Addr().Next().Next()
	for i := range all {
		if i%2 == 0 {
			all[i] = openflow.Service{Protocol: openflow.TCP, Address: b.Addresses[0], Port: uint16(30000 + i/2), Target: target}
		} else {
			all[i] = openflow.Service{Protocol: openflow.TCP, Address: externalAddress(i), Port: 80}
		}
	}
	return all
}

// addServices adds a service to many, several times, and has ovs-ofctl do the same with the whole set.
func addServices(ctx context.Context, p *openflow.Programmer, node *lab.Regular, b openflow.Bridge, m int) (flowStep, error) {
	const rounds = 10
	step := flowStep{services: m}
	all := someServices(b, m+rounds)
	program := func(n int) (openflow.Change, error) {
		b.Services = all[:n]
		return p.Program(ctx, b)
	}
	if _, err := program(m); err != nil {
		return step, err
	}
	// The second time nothing is read: the bridge is known from here on.
	if change, err := program(m); err != nil || change != (openflow.Change{}) {
		return step, cmp.Or(err, fmt.Errorf("at rest %+v was sent", change))
	}
	var times []time.Duration
	for i := range rounds {
		began := time.Now()
		change, err := program(m + i + 1)
		if err != nil {
			return step, err
		}
		times = append(times, time.Since(began))
		step.mods = max(step.mods, change.Added+change.Deleted)
	}
	step.took = percentile(times, 50)

	b.Services = all[:m+1]
	text, n, err := wholeBridge(b)
	if err != nil {
		return step, err
	}
	step.flows = n
	path := filepath.Join(node.Dir(), "flows")
	if err := os.WriteFile(path, text, 0o644); err != nil {
		return step, err
	}
	if _, err := program(m); err != nil {
		return step, err
	}
	began := time.Now()
	if _, err := node.OVS.Ofctl(ctx, "replace-flows", b.Name, path); err != nil {
		return step, err
	}
	step.replace = time.Since(began)
	return step, nil
}

// wholeBridge are all flows of a bridge, as a file for ovs-ofctl.
func wholeBridge(b openflow.Bridge) ([]byte, int, error) {
	flows, err := b.Flows()
	if err != nil {
		return nil, 0, err
	}
	var text strings.Builder
	text.WriteString("priority=0,actions=NORMAL\n")
	for _, f := range flows {
		text.WriteString(f.String() + "\n")
	}
	return []byte(text.String()), len(flows), nil
}
