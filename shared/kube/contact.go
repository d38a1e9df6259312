// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// contact knows whether the last list or watch of a kind came about. What was seen before stays what is known while
// it is lost; that it may be old is what readiness says.
type contact struct {
	what string

	mu   sync.Mutex
	lost error
}

// through notes the outcome of every list and watch.
func (c *contact) through(lw cache.ListerWatcher) cache.ListerWatcher {
	inner := cache.ToListerWatcherWithContext(lw)
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			list, err := inner.ListWithContext(ctx, o)
			c.note(ctx, err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			w, err := inner.WatchWithContext(ctx, o)
			c.note(ctx, err)
			return w, err
		},
	}
}

func (c *contact) note(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err != nil && c.lost == nil:
		slog.Warn("lost sight of the API server; what was seen stays", "resource", c.what, "cause", diagnose(err), "error", err)
	case err == nil && c.lost != nil:
		slog.Info("the API server is in sight again", "resource", c.what)
	}
	c.lost = err
}

// ready is nil while the last list or watch came about.
func (c *contact) ready() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lost != nil {
		return fmt.Errorf("lost sight of %s: %s: %w", c.what, diagnose(c.lost), c.lost)
	}
	return nil
}
