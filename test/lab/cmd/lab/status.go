// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/ovn-uplink/ovn-uplink/test/lab"
)

func statusCommand(dir *string) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "status",
		Short: "List the lab's processes and namespaces, and whether they are alive",
		Long: `Lists what is recorded of the lab. Exits with 1 when there is no lab or when
something of it is dead.`,
		Example: "  lab status\n  lab status -o json | jq '.processes[] | select(.alive | not)'",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := lab.ReadStatus(*dir)
			if err != nil {
				return err
			}
			switch output {
			case "json":
				enc := json.NewEncoder(cmd.OutOrStdout())
				enc.SetIndent("", "  ")
				err = enc.Encode(s)
			case "":
				err = printStatus(cmd.OutOrStdout(), s)
			default:
				return fmt.Errorf("output format %q: want json or nothing", output)
			}
			if err != nil {
				return err
			}
			return s.Healthy()
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", `"json", or empty for tables`)
	return cmd
}

func printStatus(out io.Writer, s lab.Status) error {
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	_, _ = fmt.Fprintf(w, "KUBECONFIG\t%s\nSERVER\t%s\n\n", s.Kubeconfig, s.Server)
	_, _ = fmt.Fprintln(w, "NAMESPACE\tSTATE\tROLE\tADDRESS\tNETNS")
	for _, ns := range s.Namespaces {
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", ns.Name, state(ns.Alive), ns.Role, orDash(ns.Address), ns.NetNS)
	}
	if len(s.Zones) > 0 {
		_, _ = fmt.Fprintln(w, "\nOVN OF\tSTATE\tNORTHBOUND DATABASE")
	}
	for _, z := range s.Zones {
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\n", z.Node, state(z.Alive), z.Northbound)
	}
	_, _ = fmt.Fprintln(w, "\nPROCESS\tSTATE\tPID\tMEMORY\tLOG")
	for _, p := range s.Processes {
		_, _ = fmt.Fprintf(w, "%s\t%s\t%d\t%d MiB\t%s\n", p.Name, state(p.Alive), p.Pid, p.RSS>>20, p.Log)
	}
	return w.Flush() // reports the first error of the writes before, too
}

func state(alive bool) string {
	if alive {
		return "alive"
	}
	return "dead"
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
