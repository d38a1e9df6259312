// SPDX-License-Identifier: Apache-2.0

// Command host-agent runs on the host: it reads the interface that an Uplink names, and publishes MAC, IPs,
// default gateways and PCI function for the dpu-agent, through the UplinkState and nothing else.
package main

import (
	"os"

	"github.com/ovn-uplink/ovn-uplink/host-agent/hostlink"
	"github.com/ovn-uplink/ovn-uplink/shared/agent"
	"github.com/ovn-uplink/ovn-uplink/shared/kernel"
	"github.com/ovn-uplink/ovn-uplink/shared/kube"
	"github.com/spf13/cobra"
)

const component = "host-agent"

func main() { agent.Main(command()) }

func command() *cobra.Command {
	options := agent.Options{Component: component, HealthAddress: "127.0.0.1:9981", NodeName: os.Getenv("NODE_NAME")}
	var sysfs string
	root := &cobra.Command{
		Use:   component,
		Short: "Publish what the host sees of its Uplink interfaces",
		Long: `Publishes, for every Uplink that selects this node, what the host sees of the interface that the
Uplink names: MAC, IP addresses, default gateways and PCI function, as the host half of the
UplinkState "<uplink>.<node>". It follows every change of the interface by netlink events.`,
		Example: `  # in a pod, with the name of the node from the downward API in NODE_NAME
  host-agent

  # on a host, by hand
  host-agent --node-name worker-a --kubeconfig /etc/ovn-uplink/kubeconfig

  # what would be published of an interface, and why not
  host-agent inspect ens1f0`,
		Args: agent.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := options.Validate(); err != nil {
				return err
			}
			if err := agent.CheckNodeName("--node-name", options.NodeName); err != nil {
				return err
			}
			if err := (&kernel.Sysfs{Root: sysfs}).Check(); err != nil {
				return &agent.UsageError{Err: err}
			}
			config, err := kube.Config(options.Kubeconfig, component, agent.Version)
			if err != nil {
				return &agent.UsageError{Err: err}
			}
			role, err := hostlink.New(config, hostlink.Config{
				Node:      options.NodeName,
				Settle:    options.Settle,
				Resync:    options.Resync,
				SysfsRoot: sysfs,
			})
			if err != nil {
				return err
			}
			return agent.Run(cmd.Context(), options, role)
		},
	}
	options.AddFlags(root.Flags())
	root.Flags().StringVar(&options.NodeName, "node-name", options.NodeName, "`name` of this node's Node object; default: the environment variable NODE_NAME")
	root.PersistentFlags().StringVar(&sysfs, "sysfs-root", "/sys", "`directory` where sysfs is mounted")
	root.AddCommand(inspectCommand(&sysfs), clusterCommand())
	return root
}
