// SPDX-License-Identifier: Apache-2.0

package representor

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"time"
)

// Run watches until the context ends.
func (m *Monitor) Run(ctx context.Context) error {
	var subscribing sync.WaitGroup
	defer subscribing.Wait()
	if m.kernel {
		subscribing.Go(func() { m.subscribe(ctx) })
	}
	files := time.NewTicker(m.poll)
	defer files.Stop()
	var retry time.Duration
	for ctx.Err() == nil {
		next := m.resync*3/4 + rand.N(m.resync/2+1)
		if m.refresh() != nil {
			retry = nextRetry(retry)
			next = retry
		} else {
			retry = 0
		}
		m.wait(ctx, files.C, time.After(next))
	}
	return nil
}

// wait returns when it is time to read again.
func (m *Monitor) wait(ctx context.Context, files, next <-chan time.Time) {
	for {
		m.alive()
		select {
		case <-ctx.Done():
			return
		case <-next:
			return
		case <-m.triggered:
			pause(ctx, batch)
			return
		case <-files:
			if m.pending == nil && m.source.outdated() {
				return
			}
		}
	}
}

// subscribe has all read again after every change of devlink ports, and after a time in which one may have been
// missed.
func (m *Monitor) subscribe(ctx context.Context) {
	var retry time.Duration
	for ctx.Err() == nil {
		ready := func() { retry = 0; m.Trigger() }
		if err := notifications(ctx, ready, m.Trigger); err != nil {
			m.log.Info("subscribing to devlink again", "reason", err)
		}
		retry = nextRetry(retry)
		pause(ctx, retry)
	}
}

// refresh reads all and shows it, if it differs. With an error, not all of it could be read.
func (m *Monitor) refresh() error {
	select {
	case <-m.triggered: // this read sees it
	default:
	}
	input, err := m.read()
	m.mu.Lock()
	same := sameError(err, m.lost) && (err != nil || reflect.DeepEqual(input, m.input))
	old := m.index
	switch {
	case err == nil && !same:
		m.index, m.lost, m.input = Build(input), nil, input
	case err != nil && !same:
		m.lost = err
		if m.index != nil {
			m.index = m.index.asStale(err)
		}
	}
	index := m.index
	m.mu.Unlock()
	if !same {
		m.tell(old, index, err)
		for _, f := range m.listeners {
			f()
		}
	}
	if err != nil {
		return err
	}
	return index.unreadable
}

// tell logs what changed for the administrator.
func (m *Monitor) tell(old, index *Index, err error) {
	if err != nil {
		m.log.Warn("the card's ports could not be read; what was known stays", "reason", err)
		return
	}
	var before []string
	if old != nil {
		before = old.warnings
	}
	for _, warning := range index.warnings {
		if !slices.Contains(before, warning) {
			m.log.Warn(warning)
		}
	}
	if old == nil || old.stale != nil || len(old.representors) != len(index.representors) {
		m.log.Info("the card's ports are known", "representors", len(index.representors))
	}
}

// read reads with a deadline. A read that missed it goes on, since nothing can end it; none is begun beside it.
func (m *Monitor) read() (Input, error) {
	if m.pending != nil {
		select {
		case <-m.pending:
			m.pending = nil
		default:
			return Input{}, m.errStuck()
		}
	}
	done := make(chan outcome, 1)
	go func() {
		input, err := m.source.read()
		done <- outcome{input, err}
	}()
	select {
	case o := <-done:
		return o.input, o.err
	case <-time.After(m.deadline):
		m.pending = done
		return Input{}, m.errStuck()
	}
}

func (m *Monitor) errStuck() error {
	return fmt.Errorf("reading them takes longer than %s: a driver may hang, look at the kernel's log", m.deadline)
}

func (m *Monitor) alive() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.beat = time.Now()
}

func sameError(a, b error) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return a.Error() == b.Error()
}

func nextRetry(last time.Duration) time.Duration { return min(max(2*last, minRetry), maxRetry) }

// pause waits, or until the context ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
