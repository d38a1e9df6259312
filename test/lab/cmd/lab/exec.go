// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/ovn-uplink/ovn-uplink/test/lab"
)

func execCommand(dir *string) *cobra.Command {
	return &cobra.Command{
		Use:   "exec NODE -- COMMAND [ARGUMENT...]",
		Short: "Run a command on a node, where it finds the node's Open vSwitch",
		Example: `  lab exec worker-a -- ip addr show ovsbr1
  lab exec worker-b-dpu -- ovs-appctl fdb/show br-ext
  lab exec worker-b -- bash`,
		Args: cobra.MinimumNArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			s, err := lab.ReadStatus(*dir)
			if err != nil {
				return err
			}
			var names []string
			for _, ns := range s.Namespaces {
				if ns.Name == args[0] {
					return become(ns, args[1:])
				}
				names = append(names, ns.Name)
			}
			return fmt.Errorf("no node %q in the lab, there are %s", args[0], strings.Join(names, ", "))
		},
	}
}

// become replaces this process with the command.
func become(ns lab.NamespaceStatus, argv []string) error {
	ip, err := exec.LookPath("ip")
	if err != nil {
		return fmt.Errorf("run %s: %w", argv[0], err)
	}
	full := slices.Concat([]string{"ip", "netns", "exec", ns.NetNS}, argv)
	// Environ drops all but the last of several values of a variable.
	env := &exec.Cmd{Env: slices.Concat(os.Environ(), ns.Env)}
	if err := syscall.Exec(ip, full, env.Environ()); err != nil {
		return fmt.Errorf("run %s: %w", argv[0], err)
	}
	return nil
}
