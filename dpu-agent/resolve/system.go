// SPDX-License-Identifier: Apache-2.0

package resolve

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/ovn-uplink/ovn-uplink/dpu-agent/bridge"
	"github.com/ovn-uplink/ovn-uplink/dpu-agent/representor"
	"github.com/ovn-uplink/ovn-uplink/shared/agent"
	"github.com/ovn-uplink/ovn-uplink/shared/kernel"
	"github.com/spf13/pflag"
)

// System says where the machine's Open vSwitch, devlink and sysfs are.
type System struct {
	// OVSDB is where ovsdb-server listens, as in ovsdb(7).
	OVSDB string
	// DefaultGatewayBridge is the cluster's default gateway bridge; empty: what OVN maps physnet to.
	DefaultGatewayBridge string
	// RepresentorMap is the operator's own map of representors; empty for none.
	RepresentorMap string
	// DevlinkPorts is a file to be read instead of asking the kernel's devlink; empty for the kernel.
	DevlinkPorts string
	// SysfsRoot is where sysfs is mounted.
	SysfsRoot string
	// Resync is how often everything is read although no event came; zero for the default.
	Resync time.Duration
}

// AddFlags binds the fields to flags.
func (s *System) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&s.OVSDB, "ovs-db", defaultOVSDB(), "`endpoint` of the OVSDB server of Open vSwitch: unix:PATH or tcp:HOST:PORT")
	flags.StringVar(&s.DefaultGatewayBridge, "default-gateway-bridge", "", "`name` of the cluster's default gateway bridge, which cannot be an Uplink; default: the bridge that OVN maps the physical network physnet to")
	flags.StringVar(&s.RepresentorMap, "representor-map", "", "`file` that says which representor belongs to which function or MAC address of the host, for cards that do not tell")
	flags.StringVar(&s.DevlinkPorts, "devlink-ports", "", "`file` with the output of 'devlink -j port show', read instead of asking the kernel: for simulated cards and for looking into a report")
	flags.StringVar(&s.SysfsRoot, "sysfs-root", "/sys", "`directory` where sysfs is mounted")
}

// defaultOVSDB is where the tools of Open vSwitch look: OVS_RUNDIR goes before the directory that it was built with
// (ovs-vsctl(8), "--db").
func defaultOVSDB() string {
	return "unix:" + filepath.Join(cmp.Or(os.Getenv("OVS_RUNDIR"), "/var/run/openvswitch"), "db.sock")
}

// eyes are the monitors of everything that a decision is made from.
type eyes struct {
	system System
	links  *kernel.Monitor
	ovs    *bridge.Monitor
	card   *representor.Monitor
}

// open makes the monitors. An error is a mistake in a flag, or in a file that one names.
func open(system System) (*eyes, error) {
	if err := (&kernel.Sysfs{Root: system.SysfsRoot}).Check(); err != nil {
		return nil, &agent.UsageError{Err: err}
	}
	ovs, err := bridge.NewMonitor(bridge.Config{Endpoint: system.OVSDB})
	if err != nil {
		return nil, &agent.UsageError{Err: err}
	}
	card, err := representor.NewMonitor(representor.Config{
		Sysfs: system.SysfsRoot, DevlinkPorts: system.DevlinkPorts, Map: system.RepresentorMap, Resync: system.Resync,
	})
	if err != nil {
		return nil, &agent.UsageError{Err: err}
	}
	e := &eyes{system: system, links: kernel.NewMonitor(kernel.Options{Metrics: kernel.Prometheus(), Resync: system.Resync}), ovs: ovs, card: card}
	// Devlink tells of ports, rtnetlink of their network interfaces.
	e.links.OnChange(e.card.Trigger)
	return e, nil
}

func (e *eyes) onChange(f func()) {
	e.ovs.OnChange(f)
	e.card.OnChange(f)
}

func (e *eyes) run(ctx context.Context) {
	var running sync.WaitGroup
	for _, run := range []func(context.Context) error{e.links.Run, e.ovs.Run, e.card.Run} {
		running.Go(func() { _ = run(ctx) })
	}
	running.Wait()
}

func (e *eyes) healthy(now time.Time) error {
	for _, check := range []func(time.Time) error{e.links.Healthy, e.ovs.Healthy, e.card.Healthy} {
		if err := check(now); err != nil {
			return err
		}
	}
	return nil
}
