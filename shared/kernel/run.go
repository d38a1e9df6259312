// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"
)

const (
	// Waits between a lost subscription and the next. The shortest keeps drift visible within a second, the
	// longest bounds what a machine pays whose buffer overflows all the time.
	minBackoff = 100 * time.Millisecond
	maxBackoff = 5 * time.Second
	// heartbeat is how often the loop turns when nothing happens.
	heartbeat = 10 * time.Second
)

// Run watches until ctx ends. Whatever goes wrong, an overflowed buffer as well as a read that fails, has one
// answer: subscribe to everything again and read everything again. It returns nil; call it once.
func (m *Monitor) Run(ctx context.Context) error {
	// What is measured from here is how long there has been no good read.
	m.set(func() { m.readAt = time.Now() })
	wait := minBackoff
	for {
		m.turn()
		started := time.Now()
		err := m.session(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if time.Since(started) > maxBackoff {
			wait = minBackoff
		}
		m.loseSight(ctx, err)
		m.options.Metrics.Resubscribed(err)
		if sleep(ctx, wait) != nil {
			return nil
		}
		wait = min(2*wait, maxBackoff)
	}
}

// session is the life of one subscription. It returns the error that ended it, never nil.
func (m *Monitor) session(ctx context.Context) error {
	// Subscribe first, read second: a change in between is seen by both rather than by neither.
	events, err := m.subscribe()
	if err != nil {
		return err
	}
	defer events.Close()
	if err := m.refresh(ctx); err != nil {
		return err
	}
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	resync := time.NewTimer(jitter(m.options.Resync))
	defer resync.Stop()
	var batch <-chan time.Time
	for {
		m.turn()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-events.Lost:
			return fmt.Errorf("receive netlink events: %w", err)
		case <-events.Events:
			if batch == nil {
				batch = time.After(m.options.Batch)
			}
			continue
		case <-beat.C:
			continue
		case <-batch:
			batch = nil
		case <-resync.C:
		}
		if err := m.refresh(ctx); err != nil {
			return err
		}
		resync.Reset(jitter(m.options.Resync))
	}
}

// refresh reads once and tells of a change.
func (m *Monitor) refresh(ctx context.Context) error {
	started := time.Now()
	s, err := m.read(ctx)
	m.options.Metrics.Read(time.Since(started), err)
	if err != nil {
		return err
	}
	old := m.latest.Load()
	same := old != nil && old.Equal(s)
	if !same {
		m.latest.Store(s)
	}
	m.regainSight()
	if same {
		return nil
	}
	for _, f := range m.onChange {
		f()
	}
	return nil
}

// loseSight notes that the latest snapshot may be old from now on. Further failures until the next good read are
// the same loss.
func (m *Monitor) loseSight(ctx context.Context, cause error) {
	level := slog.LevelDebug
	m.set(func() {
		if m.lost == nil {
			level, m.lostAt = slog.LevelWarn, time.Now()
		}
		m.lost = cause
	})
	m.options.Logger.Log(ctx, level, "Lost sight of the kernel's links, addresses and routes, subscribing again", "error", cause)
}

// regainSight notes a good read.
func (m *Monitor) regainSight() {
	var lost error
	m.set(func() { lost, m.lost, m.readAt = m.lost, nil, time.Now() })
	if lost != nil {
		m.options.Logger.Info("The kernel's links, addresses and routes are in sight again")
	}
}

func (m *Monitor) turn() { m.set(func() { m.turned = time.Now() }) }

func (m *Monitor) set(change func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change()
}

// jitter spreads a period by a tenth to either side, so that the agents of a cluster do not act in step.
func jitter(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.9 + 0.2*rand.Float64()))
}
