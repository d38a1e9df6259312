// SPDX-License-Identifier: Apache-2.0

// Command lab starts, shows and ends the surroundings in which the product's
// agents are tried: a real API server, nodes with Open vSwitch, a host and
// DPU pair. It needs root.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/ovn-uplink/ovn-uplink/test/lab"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := root().ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "lab:", err)
		os.Exit(1)
	}
}

func root() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "lab",
		Short: "A Kubernetes API server, nodes with Open vSwitch and a host and DPU pair, on this machine",
		Long: `Starts, shows and ends a lab: a real kube-apiserver with etcd, a regular node,
a host with a DPU, and the external network that they lead to. Each is a
network namespace; nothing of the machine's own network is used except one
port on 127.0.0.1 for the API server. Everything is recorded in one directory.`,
		Example: `  lab up                                  # about 8 seconds once kube-apiserver is built
  lab status
  lab exec worker-b -- ping -c1 203.0.113.9
  lab down`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	cmd.PersistentFlags().StringVar(&dir, "dir", lab.DefaultDir(), "state directory of the lab; keep the path short")
	cmd.AddCommand(upCommand(&dir), downCommand(&dir), statusCommand(&dir), execCommand(&dir), prepareCommand())
	return cmd
}

func downCommand(dir *string) *cobra.Command {
	return &cobra.Command{
		Use:   "down",
		Short: "End the lab and remove its directory",
		Long: `Ends every process of the lab, removes its namespaces and its directory. It is
no error when there is no lab, or when it crashed or was ended half way.`,
		Example: "  lab down\n  lab down --dir /tmp/mylab",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return lab.Down(cmd.Context(), *dir)
		},
	}
}

func prepareCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "prepare",
		Short: "Build kube-apiserver, Helm, and kubectl where there is none, and fetch a newer OVN, unless cached",
		Long: `Builds and fetches what the lab needs and no package of this machine provides,
with progress, so that tests do not spend their time limit on it. The second
time it does nothing.`,
		Example: "  lab prepare",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log := logger(cmd.ErrOrStderr())
			server, err := lab.APIServerBinary(cmd.Context(), log)
			if err != nil {
				return err
			}
			kubectl, err := lab.KubectlBinary(cmd.Context(), log)
			if err != nil {
				return err
			}
			helm, err := lab.HelmBinary(cmd.Context(), log)
			if err != nil {
				return err
			}
			ovn, err := lab.NewerOVN(cmd.Context(), log)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s\n%s\n%s\n%s\n", server, kubectl, helm, ovn.Path)
			return err
		},
	}
}
