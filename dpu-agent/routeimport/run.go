// SPDX-License-Identifier: Apache-2.0

package routeimport

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"
)

const (
	// Waits between a lost subscription and the next.
	minBackoff = 100 * time.Millisecond
	maxBackoff = 5 * time.Second
	// heartbeat is how often the loop turns when nothing happens.
	heartbeat = 10 * time.Second
)

// Run watches until ctx ends. Whatever goes wrong, an overflowed buffer as well as a read that fails, has one answer:
// subscribe again and read everything again. It returns nil; call it once.
func (i *Importer) Run(ctx context.Context) error {
	i.set(func() { i.readAt = time.Now() })
	wait := minBackoff
	for {
		i.set(func() { i.turned = time.Now() })
		started := time.Now()
		err := i.session(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if time.Since(started) > maxBackoff {
			wait = minBackoff
		}
		i.loseSight(ctx, err)
		i.config.Metrics.Resubscribed(err)
		if sleep(ctx, wait) != nil {
			return nil
		}
		wait = min(2*wait, maxBackoff)
	}
}

// session is the life of one subscription. It returns the error that ended it, never nil.
func (i *Importer) session(ctx context.Context) error {
	// Subscribe first, read second: a change in between is seen by both rather than by neither.
	events, err := i.subscribe(&i.journal)
	if err != nil {
		return err
	}
	defer events.Close()
	kernel, err := i.open()
	if err != nil {
		return err
	}
	defer kernel.close()
	// Whatever happened before nobody has told of.
	i.journal.note(event{everything: true}, time.Now())
	i.set(func() { i.schedule(time.Now(), func(*domain) bool { return true }) })
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	resync := time.NewTimer(jitter(i.config.Resync))
	defer resync.Stop()
	look := time.NewTimer(0)
	defer look.Stop()
	noted := time.Now()
	for {
		i.set(func() { i.turned = time.Now() })
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-events.Lost:
			return fmt.Errorf("receive netlink events: %w", err)
		case <-events.Events:
			noted = i.scheduleChanged(noted)
		case <-i.kick:
		case <-beat.C:
			continue
		case <-resync.C:
			resync.Reset(jitter(i.config.Resync))
			i.set(func() { i.schedule(time.Now(), func(*domain) bool { return true }) })
		case <-look.C:
			if err := i.refresh(ctx, kernel, events); err != nil {
				return err
			}
		}
		if next, ok := i.next(); ok {
			look.Reset(time.Until(next))
		} else {
			look.Stop()
		}
	}
}

// schedule has domains looked at, at a time or earlier. The caller holds mu.
func (i *Importer) schedule(at time.Time, which func(*domain) bool) {
	for _, d := range i.domains {
		if which(d) && (d.due.IsZero() || at.Before(d.due)) {
			d.due = at
		}
	}
}

// scheduleChanged has those domains looked at soon that events since a time may concern, and returns the time until
// which events are dealt with.
func (i *Importer) scheduleChanged(since time.Time) time.Time {
	now := time.Now()
	i.set(func() {
		i.schedule(now.Add(i.pause), func(d *domain) bool { return !i.journal.last(d.table).Before(since) })
	})
	return now
}

// next is when the first domain is due.
func (i *Importer) next() (next time.Time, ok bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, d := range i.domains {
		if !d.due.IsZero() && (!ok || d.due.Before(next)) {
			next, ok = d.due, true
		}
	}
	return next, ok
}

// loseSight notes that what is known may be old from now on. Further failures until the next good read are the same
// loss.
func (i *Importer) loseSight(ctx context.Context, cause error) {
	level := slog.LevelDebug
	i.set(func() {
		if i.lost == nil {
			level, i.lostAt = slog.LevelWarn, time.Now()
		}
		i.lost = cause
	})
	i.config.Logger.Log(ctx, level, "Lost sight of the kernel's routes, subscribing again", "error", cause)
}

// regainSight notes a good read.
func (i *Importer) regainSight() {
	var lost error
	i.set(func() { lost, i.lost, i.readAt = i.lost, nil, time.Now() })
	if lost != nil {
		i.config.Logger.Info("The kernel's routes are in sight again")
	}
}

func (i *Importer) set(change func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	change()
}

// jitter spreads a period by a tenth to either side, so that the agents of a cluster do not act in step.
func jitter(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.9 + 0.2*rand.Float64()))
}
