// SPDX-License-Identifier: Apache-2.0

// Command demo runs the product for a person: a simulated cluster of one regular node and one host with a
// DPU, on this machine, with real Open vSwitch, OVN and agents. It shows what they publish, breaks two things, has
// pods of two networks talk to the world by one Uplink, and leaves everything up to be played with.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/ovn-uplink/ovn-uplink/shared/agent"
	"github.com/ovn-uplink/ovn-uplink/test/lab"
	"github.com/spf13/cobra"
)

func main() {
	dir := filepath.Join(lab.BaseDir(), "demo")
	root := &cobra.Command{Use: "demo", Short: "Run the product on a simulated cluster"}
	root.PersistentFlags().StringVar(&dir, "dir", dir, "`directory` of the demo's state")
	var bin string
	up := &cobra.Command{
		Use:   "up",
		Short: "Build the cluster, run the agents, show them, leave everything up",
		Args:  agent.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			ctx, cancel := context.WithTimeout(ctx, 30*time.Minute) // the first time it builds the API server
			defer cancel()
			return run(ctx, dir, bin)
		},
	}
	up.Flags().StringVar(&bin, "bin", "bin/linux-amd64", "`directory` of the agents' binaries")
	down := &cobra.Command{
		Use:   "down",
		Short: "End what up left running",
		Args:  agent.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return lab.Down(cmd.Context(), dir) },
	}
	root.AddCommand(up, down, serveCommand())
	agent.Main(root)
}

func run(ctx context.Context, dir, bin string) error {
	bin, err := filepath.Abs(bin)
	if err != nil {
		return err
	}
	for _, name := range []string{"host-agent", "dpu-agent"} {
		if _, err := os.Stat(filepath.Join(bin, name)); err != nil {
			return fmt.Errorf("the agents are not built (make build): %w", err)
		}
	}
	d := &demo{bin: bin}
	begin := time.Now()
	for _, step := range []struct {
		title string
		do    func(context.Context) error
	}{
		{"A cluster: one regular node, one host with a DPU, each with its own Open vSwitch and OVN (some seconds)", func(ctx context.Context) error { return d.build(ctx, dir) }},
		{"The agents: both node roles and the cluster role on worker-a, host-agent on worker-b, dpu-agent on its card", d.startAgents},
		{"An Uplink goes in, UplinkStates come out", d.resolve},
		{"Failure 1: the host's interface disappears", d.missingInterface},
		{"Failure 2: somebody names the integration bridge", d.integrationBridge},
		{"Two networks with the same pod addresses name the Uplink", d.networks},
		{"Pods go out: with the Uplink's address of their node", d.egress},
		{"The world comes in: a NodePort of each network, on each node", d.ingress},
		{"What that took: one patch port for both networks", d.inside},
	} {
		fmt.Printf("\n== %s\n", step.title)
		start := time.Now()
		if err := step.do(ctx); err != nil {
			return errors.Join(fmt.Errorf("%s: %w", step.title, err), errors.New("state and logs are in "+dir))
		}
		fmt.Printf("   (%.1f s)\n", time.Since(start).Seconds())
	}
	d.goodbye(dir, time.Since(begin))
	return nil
}
