// SPDX-License-Identifier: Apache-2.0

package locate

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/ovn-uplink/ovn-uplink/dpu-agent/bridge"
	"github.com/ovn-uplink/ovn-uplink/dpu-agent/representor"
	"github.com/ovn-uplink/ovn-uplink/shared/agent"
	"github.com/ovn-uplink/ovn-uplink/shared/kernel"
	"github.com/ovn-uplink/ovn-uplink/shared/kube"
	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
)

// Observer watches Open vSwitch, the card and the kernel's links. It implements agent.Role.
type Observer struct {
	// OVS is the view of Open vSwitch.
	OVS *bridge.Monitor

	system System
	locate locator
	links  *kernel.Monitor
	card   *representor.Monitor
}

// Open makes an Observer; Run makes it look. An error is a mistake in a flag, or in a file that one names.
func Open(system System) (*Observer, error) {
	if err := (&kernel.Sysfs{Root: system.SysfsRoot}).Check(); err != nil {
		return nil, &agent.UsageError{Err: err}
	}
	ovs, err := bridge.NewMonitor(bridge.Config{Endpoint: system.OVSDB, Chassis: system.Chassis, ChassisFile: system.ChassisFile})
	if err != nil {
		return nil, &agent.UsageError{Err: err}
	}
	card, err := representor.NewMonitor(representor.Config{
		Sysfs: system.SysfsRoot, DevlinkPorts: system.DevlinkPorts, Map: system.RepresentorMap, Resync: system.Resync,
	})
	if err != nil {
		return nil, &agent.UsageError{Err: err}
	}
	o := &Observer{
		OVS: ovs, system: system, locate: onCard, card: card,
		links: kernel.NewMonitor(kernel.Options{Metrics: kernel.Prometheus(), Resync: system.Resync}),
	}
	if system.Regular {
		o.locate = onNode
	}
	// Devlink tells of ports, rtnetlink of their network interfaces.
	o.links.OnChange(o.card.Trigger)
	return o, nil
}

// OnChange adds a function to be called after anything that the chain is made of changed. It must not block, and is
// to be added before Run.
func (o *Observer) OnChange(f func()) {
	o.OVS.OnChange(f)
	o.OnCardChange(f)
}

// OnCardChange is OnChange without what changes in Open vSwitch.
func (o *Observer) OnCardChange(f func()) { o.card.OnChange(f) }

// Regular tells whether the host's interfaces are those of this machine.
func (o *Observer) Regular() bool { return o.system.Regular }

// Find follows the chain with what is seen now. The error is a *uplinkstate.Problem for a finding; any other means
// that nobody can say.
func (o *Observer) Find(host uplinkstate.HostData) (Finding, Report, error) {
	seen, err := o.look()
	if err != nil {
		return Finding{}, Report{}, err
	}
	return find(seen, o.locate, host)
}

// look takes what the monitors see now; an error says what is not known.
func (o *Observer) look() (sight, error) {
	ovs, known := o.OVS.Latest()
	if !known {
		return sight{}, fmt.Errorf("look at Open vSwitch: %w", o.OVS.Ready())
	}
	card, err := o.card.Latest()
	if card == nil {
		return sight{}, fmt.Errorf("look at the card: %w", err)
	}
	// An index that may be old says so itself where it matters.
	return sight{ovs: ovs, card: card, defaults: o.system.DefaultGatewayBridge}, nil
}

// Name implements agent.Role.
func (o *Observer) Name() string { return "observe" }

// Run implements agent.Role.
func (o *Observer) Run(ctx context.Context) error {
	var running sync.WaitGroup
	for _, run := range []func(context.Context) error{o.links.Run, o.OVS.Run, o.card.Run} {
		running.Go(func() { _ = run(ctx) })
	}
	running.Wait()
	return nil
}

// Ready implements agent.Role.
func (o *Observer) Ready() error {
	if err := o.OVS.Ready(); err != nil {
		return fmt.Errorf("waiting for Open vSwitch: %w", err)
	}
	return kube.AllReady(o.card, o.links)
}

// Healthy implements agent.Role.
func (o *Observer) Healthy(now time.Time) error {
	for _, check := range []func(time.Time) error{o.links.Healthy, o.OVS.Healthy, o.card.Healthy} {
		if err := check(now); err != nil {
			return err
		}
	}
	return nil
}
