// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// absentInterval is how often a kind is looked for that the cluster need not have.
const absentInterval = 10 * time.Second

// absence knows whether the CRD of a kind is missing that need not be there. A nil absence is that of a kind which must.
type absence struct{ now atomic.Bool }

func (a *absence) is() bool { return a != nil && a.now.Load() }

// unless is the probe that goes on looking for the kind as long as it is missing, and says so once.
func (a *absence) unless(what string, probe func(context.Context) error) func(context.Context) error {
	if a == nil {
		return probe
	}
	return func(ctx context.Context) error {
		for {
			err := probe(ctx)
			missing := apierrors.IsNotFound(err)
			if before := a.now.Swap(missing); missing && !before {
				slog.Info("the cluster has no such kind; going on without", "resource", what)
			}
			if !missing {
				return err
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(absentInterval):
			}
		}
	}
}
