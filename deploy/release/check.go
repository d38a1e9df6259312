// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/ovn-uplink/ovn-uplink/deploy/release/check"
	"github.com/ovn-uplink/ovn-uplink/shared/agent"
	"github.com/spf13/cobra"
)

func checkCommand(f *flags) *cobra.Command {
	return &cobra.Command{
		Use:   "check",
		Short: "Check that locks, images, chart and packages are of one source",
		Long: `Reads the locks, the chart, and what is in dist: images, exported chart and packages. All must be there, and be
of the version and the commit in the locks. What is missing is named, and of what differs both values.`,
		Example: `  make images chart debs && release check`,
		Args:    agent.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			checkout, err := f.checkout(cmd)
			if err != nil {
				return err
			}
			report, err := check.Check(cmd.Context(), checkout)
			if err != nil {
				return err
			}
			table := agent.NewTable(cmd.OutOrStdout())
			for _, item := range report.Items {
				table.Line(item.What, "%s\t%s", cmp.Or(item.Version, "-"), cmp.Or(item.Commit, "-"))
			}
			table.Flush()
			if len(report.Problems) > 0 {
				return fmt.Errorf("this is no release:\n%w", errors.Join(report.Problems...))
			}
			return nil
		},
	}
}
