// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/ovn-uplink/ovn-uplink/test/lab"
)

// routes has BGP teach the node many routes, and then change one.
func (s *site) routes(ctx context.Context) ([]row, error) {
	n := full(s.b, 10_000, 500)
	s.b.say("importing %d routes", n)
	var batch strings.Builder
	for i := range n {
		fmt.Fprintf(&batch, "route add 11.%d.%d.0/24 via %s proto bgp metric 20\n", i/256, i%256, s.node.Spec.Gateways[0])
	}
	file := filepath.Join(s.node.Dir(), "routes")
	if err := os.WriteFile(file, []byte(batch.String()), 0o600); err != nil {
		return nil, err
	}
	all, err := s.measure(ctx, func() error {
		if _, err := s.node.IP(ctx, "-batch", file); err != nil {
			return err
		}
		return s.imported(ctx, n)
	})
	if err != nil {
		return nil, fmt.Errorf("import %d routes: %w", n, err)
	}
	one, err := s.measure(ctx, func() error {
		if _, err := s.node.IP(ctx, "route", "del", "11.0.7.0/24"); err != nil {
			return err
		}
		return s.imported(ctx, n-1)
	})
	if err != nil {
		return nil, fmt.Errorf("change one of %d routes: %w", n, err)
	}
	return []row{{
		Measure: "route import", How: fmt.Sprintf("%d routes of BGP into OVN, from the first in the kernel to the last row", n),
		Figure:  fmt.Sprintf("%.1f s, %.0f rows/s, %d transactions, flow mods %d", all.took.Seconds(), float64(n)/all.took.Seconds(), all.nb.transactions, all.flows),
		Verdict: judge(all.nb.inserts == n && all.flows == 0), Target: "each row once",
		Values: map[string]float64{"seconds": all.took.Seconds(), "transactions": float64(all.nb.transactions), "inserts": float64(all.nb.inserts), "flows": float64(all.flows)},
	}, {
		Measure: "route import: one change", How: fmt.Sprintf("one of %d routes withdrawn", n),
		Figure: fmt.Sprintf("%.2f s, northbound %d inserts, %d changes, %d deletes in %d transactions",
			one.took.Seconds(), one.nb.inserts, one.nb.changes, one.nb.deletes, one.nb.transactions),
		Target: "one row", Verdict: judge(one.nb.transactions == 1 && one.nb.inserts+one.nb.deletes == 0 && one.nb.changes == 1),
		Values: map[string]float64{"seconds": one.took.Seconds(), "transactions": float64(one.nb.transactions), "changes": float64(one.nb.changes)},
	}}, nil
}

// imported waits until OVN has so many of the routes.
func (s *site) imported(ctx context.Context, n int) error {
	return lab.Eventually(ctx, converged, func(ctx context.Context) error {
		out, err := s.zone.Nbctl(ctx, "--bare", "--columns=ip_prefix", "list", "Logical_Router_Static_Route")
		if err != nil {
			return err
		}
		if got := strings.Count("\n"+out, "\n11."); got != n {
			return fmt.Errorf("%d routes, want %d", got, n)
		}
		return nil
	})
}
