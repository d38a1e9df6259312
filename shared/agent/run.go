// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"
	"log/slog"
	"os/signal"
	"runtime/debug"
	"slices"
	"sync"
	"syscall"
	"time"
)

// Role is one of the jobs that a process does. Roles know nothing of each other.
type Role interface {
	Name() string
	// Run does the job until the context ends. It returns early only when the job cannot be done at all.
	Run(ctx context.Context) error
	// Ready is nil once the role sees all it needs; else it says what it waits for.
	Ready() error
	// Healthy is nil while the role makes progress. It never judges the world outside: a process that waits
	// for an absent API server is healthy, and a restart would not help it.
	Healthy(now time.Time) error
}

// Run runs the roles until SIGTERM or SIGINT. Stopping is not cleaning: whatever the roles made stays.
func Run(ctx context.Context, o Options, roles ...Role) error {
	signals, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	ctx, fail := context.WithCancelCause(signals)
	defer fail(nil)

	server, err := serve(o.HealthAddress, roles)
	if err != nil {
		return err
	}
	defer server.close()

	slog.Info("starting", "component", o.Component, "version", Version, "commit", Commit, "node", o.NodeName)
	var running sync.WaitGroup
	for _, role := range roles {
		running.Go(func() {
			if err := role.Run(ctx); err != nil && ctx.Err() == nil {
				fail(fmt.Errorf("%s role: %w", role.Name(), err))
			}
		})
	}
	running.Go(func() { trim(ctx, roles) })
	<-ctx.Done()
	slog.Info("stopping; what is programmed stays as it is")
	running.Wait()
	if signals.Err() != nil {
		return nil
	}
	return context.Cause(ctx)
}

// trim gives memory back that only starting up took, once every role is ready.
func trim(ctx context.Context, roles []Role) {
	ready := func() bool {
		return !slices.ContainsFunc(roles, func(r Role) bool { return r.Ready() != nil })
	}
	for !ready() {
		select {
		case <-ctx.Done():
			return
		case <-time.After(10 * time.Second):
		}
	}
	select {
	case <-ctx.Done():
	case <-time.After(10 * time.Second):
		debug.FreeOSMemory()
	}
}
