// SPDX-License-Identifier: Apache-2.0

// Package locate follows the chain from a host's interface to the wire: the PCI function behind the interface, its
// representor, the OVS port and bridge, the port by which the bridge reaches the wire. It has an Observer of all that
// the chain is made of, and both roles of the dpu-agent, the one that publishes what was found and the one that
// programs it, ask the same one, so that they cannot disagree.
package locate

import (
	"cmp"
	"os"
	"path/filepath"
	"time"

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
	// Chassis is the name that ovn-controller was started with (-n); empty for none.
	Chassis string
	// ChassisFile is the file by which ovn-controller(8) is told another chassis name than external_ids:system-id; it
	// need not exist.
	ChassisFile string
	// HostNode is the name of the Node whose Uplinks to serve; empty: what Open vSwitch says of the host.
	HostNode string
	// Regular is true where Open vSwitch runs on the same machine as the workload.
	Regular bool
	// Resync is how often everything is read although no event came; zero for the default.
	Resync time.Duration
}

// AddFlags binds the fields to flags.
func (s *System) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&s.OVSDB, "ovs-db", defaultOVSDB(), "`endpoint` of the OVSDB server of Open vSwitch: unix:PATH or tcp:HOST:PORT")
	flags.StringVar(&s.DefaultGatewayBridge, "default-gateway-bridge", "", "`name` of the cluster's default gateway bridge, which cannot be an Uplink; default: the bridge that OVN maps the physical network physnet to")
	flags.StringVar(&s.RepresentorMap, "representor-map", "", "`file` that says which representor belongs to which function or MAC address of the host, for cards that do not tell")
	flags.StringVar(&s.DevlinkPorts, "devlink-ports", "", "`file` with the output of 'devlink -j port show', read instead of asking the kernel: for simulated cards and for looking into a report")
	flags.StringVar(&s.Chassis, "chassis", "", "`name` of the chassis that ovn-controller was started with (its option -n)")
	flags.StringVar(&s.ChassisFile, "chassis-file", defaultChassisFile(), "`file` from which ovn-controller takes its chassis name, if it is there, before external_ids:system-id")
	flags.StringVar(&s.SysfsRoot, "sysfs-root", "/sys", "`directory` where sysfs is mounted")
}

// defaultOVSDB is where the tools of Open vSwitch look: OVS_RUNDIR goes before the directory that it was built with
// (ovs-vsctl(8), "--db").
func defaultOVSDB() string {
	return "unix:" + filepath.Join(cmp.Or(os.Getenv("OVS_RUNDIR"), "/var/run/openvswitch"), "db.sock")
}

// defaultChassisFile is where ovn-controller looks (ovn-controller(8), "system-id-override").
func defaultChassisFile() string {
	return filepath.Join(cmp.Or(os.Getenv("OVN_SYSCONFDIR"), "/etc/ovn"), "system-id-override")
}
