// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/ovn-uplink/ovn-uplink/dpu-agent/gateway"
	"github.com/ovn-uplink/ovn-uplink/shared/agent"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"
)

// errBroken ends explain with 1 when the chain does not hold; the explanation has said why.
var errBroken = errors.New("the network's gateway is not complete on this node")

func explainCommand(f *flags) *cobra.Command {
	var output string
	command := &cobra.Command{
		Use:   "explain CUDN",
		Short: "Print the chain from a network to the wire, with ok or why not for each link",
		Long: `Follows the chain that makes the gateway of a ClusterUserDefinedNetwork on this node: the bridge mapping,
OVN's edge router, localnet port and gateway router, the attachment to the CNI's router, the patch port,
what ovn-controller made of it, and the flows of the bridge. Reads only, and needs no API server. Ends
with 1 when a link is missing.`,
		Example: `  dpu-agent explain blue
  dpu-agent explain blue --node-name worker-a --role all -o json`,
		Args: oneName("ClusterUserDefinedNetwork"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.once(cmd.Context(), func(ctx context.Context, config gateway.Config) error {
				e, err := gateway.Explain(ctx, f.system, config, args[0])
				if err != nil {
					return err
				}
				if err := agent.Print(cmd.OutOrStdout(), output, e, func(w io.Writer) { printExplanation(w, e) }); err != nil {
					return err
				}
				if !e.OK() {
					return errBroken
				}
				return nil
			})
		},
	}
	agent.OutputFlag(command, &output)
	return command
}

func printExplanation(w io.Writer, e gateway.Explanation) {
	table := agent.NewTable(w)
	defer table.Flush()
	table.Line("network", "\t%s", e.Network)
	table.Line("node", "\t%s", e.Node)
	if e.Uplink != "" {
		table.Line("uplink", "\t%s", e.Uplink)
	}
	for _, l := range e.Lines {
		verdict := "ok"
		if !l.OK {
			verdict = "MISSING"
		}
		table.Line(l.What, "%s\t%s", verdict, l.Text)
	}
}

func cleanupCommand(f *flags) *cobra.Command {
	var uplink string
	command := &cobra.Command{
		Use:   "cleanup",
		Short: "Remove what the agent programmed on this node",
		Long: `Removes the rows in OVN's northbound database, the bridge mappings and the flows that the agent made on
this node, and nothing of anybody else's. Stop the agent first: it puts everything back. Needs no API
server; UplinkStates stay.`,
		Example: `  # before the agent is uninstalled
  dpu-agent cleanup

  # one Uplink
  dpu-agent cleanup --uplink tenant-blue`,
		Args: agent.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if uplink != "" && len(validation.IsDNS1123Label(uplink)) > 0 {
				return agent.Usagef("--uplink %q: is not the name of an Uplink", uplink)
			}
			return f.once(cmd.Context(), func(ctx context.Context, config gateway.Config) error {
				return gateway.Cleanup(ctx, f.system, config, uplink, func(format string, args ...any) {
					fmt.Fprintf(cmd.OutOrStdout(), format+"\n", args...)
				})
			})
		},
	}
	command.Flags().StringVar(&uplink, "uplink", "", "`name` of the one Uplink to clean up; default: all")
	return command
}

// once runs a command that looks at this machine's Open vSwitch and OVN.
func (f *flags) once(ctx context.Context, run func(context.Context, gateway.Config) error) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	slog.SetLogLoggerLevel(slog.LevelWarn)
	role, _, err := chooseRole(f.role)
	if err != nil {
		return err
	}
	config, err := f.gateway.Config()
	if err != nil {
		return err
	}
	f.system.Regular, f.system.HostNode = role == roleAll, f.hostNodeName
	if f.system.Regular {
		if err := agent.CheckNodeName("--node-name", f.NodeName); err != nil {
			return err
		}
		f.system.HostNode = f.NodeName
	}
	return run(ctx, config)
}

// oneName refuses everything but one name.
func oneName(kind string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != 1 {
			return agent.Usagef("name one %s, not %d", kind, len(args))
		}
		if problems := validation.IsDNS1123Subdomain(args[0]); len(problems) > 0 {
			return agent.Usagef("%q is not the name of a %s", args[0], kind)
		}
		return nil
	}
}
