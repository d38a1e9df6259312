// SPDX-License-Identifier: Apache-2.0

// Command dpu-agent runs beside Open vSwitch and OVN: on a DPU's Arm cores, or on a regular node, where it does
// the host's part too. It finds the bridge behind the interface that the host published, validates it, programs the
// gateways of the networks that use it, and publishes all that through the UplinkState and nothing else.
package main

import (
	"log/slog"
	"os"

	"github.com/ovn-uplink/ovn-uplink/dpu-agent/gateway"
	"github.com/ovn-uplink/ovn-uplink/dpu-agent/locate"
	"github.com/ovn-uplink/ovn-uplink/dpu-agent/resolve"
	"github.com/ovn-uplink/ovn-uplink/host-agent/hostlink"
	"github.com/ovn-uplink/ovn-uplink/shared/agent"
	"github.com/ovn-uplink/ovn-uplink/shared/kube"
	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
)

const component = "dpu-agent"

func main() { agent.Main(command()) }

// flags are what the command line says.
type flags struct {
	agent.Options
	role         string
	hostNodeName string
	system       locate.System
	gateway      gateway.Flags
	programs     bool
}

func command() *cobra.Command {
	f := &flags{Options: agent.Options{Component: component, HealthAddress: "127.0.0.1:9982", NodeName: os.Getenv("NODE_NAME")}}
	root := &cobra.Command{
		Use:   component,
		Short: "Find the OVS bridge of every Uplink and program the gateways of its networks",
		Long: `Finds, for every UplinkState of its node, the OVS bridge behind the interface that the host published:
through the card's representors on a DPU, by the bridge or port of that name on a regular node. It
validates the bridge and publishes it with the Resolved condition. For the networks that are active on the
node it programs the gateway: OVN's northbound rows, the bridge mapping and the flows of the bridge, and
publishes GatewayReady. It follows every change by OVSDB, OpenFlow, netlink and devlink events. Stopping it
changes nothing; 'dpu-agent cleanup' removes what it made.`,
		Example: `  # on a BlueField card: serves the host whose node name OVS has in external_ids:host-k8s-nodename
  dpu-agent --kubeconfig /etc/ovn-uplink/kubeconfig

  # on a regular node: both roles in one process
  dpu-agent --role all --node-name worker-a --kubeconfig /etc/ovn-uplink/kubeconfig

  # the whole chain for one Uplink, with every candidate that was rejected and why
  dpu-agent inspect tenant-blue`,
		Args: agent.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	f.AddFlags(root.Flags())
	root.Flags().BoolVar(&f.programs, "gateway", true, "program gateways; without it bridges are found, validated and published, and nothing is written to Open vSwitch or OVN")
	f.addShared(root)
	root.AddCommand(inspectCommand(f), explainCommand(f), cleanupCommand(f))
	return root
}

// addShared adds the flags that inspect has too.
func (f *flags) addShared(root *cobra.Command) {
	p := root.PersistentFlags()
	p.StringVar(&f.role, "role", roleAuto, "what this machine is: dpu (a card that serves its host), all (a regular node) or auto")
	p.StringVar(&f.NodeName, "node-name", f.NodeName, "`name` of this node's Node object, for role all; default: the environment variable NODE_NAME")
	p.StringVar(&f.hostNodeName, "host-node-name", "", "`name` of the host's Node object, for role dpu; default: external_ids:host-k8s-nodename of Open vSwitch")
	f.system.AddFlags(p)
	f.gateway.AddFlags(p)
}

func (f *flags) run(cmd *cobra.Command) error {
	if err := f.Validate(); err != nil {
		return err
	}
	config, err := kube.Config(f.Kubeconfig, component, agent.Version)
	if err != nil {
		return &agent.UsageError{Err: err}
	}
	roles, err := f.roles(config)
	if err != nil {
		return err
	}
	return agent.Run(cmd.Context(), f.Options, roles...)
}

func (f *flags) roles(config *rest.Config) ([]agent.Role, error) {
	role, why, err := chooseRole(f.role)
	if err != nil {
		return nil, err
	}
	slog.Info("role", "role", role, "why", why)
	f.system.Regular, f.system.Resync = role == roleAll, f.Resync
	if role == roleDPU {
		if f.hostNodeName != "" {
			if err := agent.CheckNodeName("--host-node-name", f.hostNodeName); err != nil {
				return nil, err
			}
		}
		f.system.HostNode = f.hostNodeName
		return f.dpuRoles(config)
	}
	if err := agent.CheckNodeName("--node-name", f.NodeName); err != nil {
		return nil, err
	}
	f.system.HostNode = f.NodeName
	host, err := hostlink.New(config, hostlink.Config{
		Node: f.NodeName, Settle: f.Settle, Resync: f.Resync, SysfsRoot: f.system.SysfsRoot,
	})
	if err != nil {
		return nil, err
	}
	dpu, err := f.dpuRoles(config)
	return append([]agent.Role{host}, dpu...), err
}

// dpuRoles are the roles of the side that Open vSwitch runs on, and the observer that they share.
func (f *flags) dpuRoles(config *rest.Config) ([]agent.Role, error) {
	observer, err := locate.Open(f.system)
	if err != nil {
		return nil, err
	}
	resolver, err := resolve.New(config, observer, resolve.Config{Settle: f.Settle, Resync: f.Resync, Component: component})
	if err != nil {
		return nil, err
	}
	if !f.programs {
		return []agent.Role{observer, resolver}, nil
	}
	gatewayConfig, err := f.gateway.Config()
	if err != nil {
		return nil, err
	}
	gatewayConfig.Resync, gatewayConfig.Component = f.Resync, component
	programmer, err := gateway.New(config, observer, gatewayConfig)
	if err != nil {
		return nil, err
	}
	return []agent.Role{observer, resolver, programmer}, nil
}
