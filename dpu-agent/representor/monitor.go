// SPDX-License-Identifier: Apache-2.0

package representor

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/ovn-uplink/ovn-uplink/shared/kernel"
)

const (
	// batch is how long changes are collected before all is read: one change of a card makes many events.
	batch = 100 * time.Millisecond
	// poll is how often the files are looked at.
	poll = 2 * time.Second
	// resync is the default of Config.Resync.
	resync = 5 * time.Minute
	// readTimeout bounds a read. A driver in trouble can hold one in the kernel, where nothing can end it.
	readTimeout = 10 * time.Second
	// minRetry and maxRetry bound the wait after a failed read or subscription.
	minRetry = 100 * time.Millisecond
	maxRetry = 5 * time.Second
	// stuckAfter is how long the monitor may go without a sign of life: it wakes up for every poll.
	stuckAfter = 2 * (readTimeout + poll)
)

// Monitor keeps an Index of the ports of the cards.
type Monitor struct {
	log       *slog.Logger
	kernel    bool // devlink ports come from the kernel
	triggered chan struct{}
	listeners []func()
	resync    time.Duration
	// poll and deadline are poll and readTimeout, unless a test is in a hurry.
	poll, deadline time.Duration

	// Used by Run only.
	source  *source
	pending chan outcome // a read that missed its deadline
	input   Input        // what index was built from

	mu    sync.Mutex
	index *Index // the last that could be built
	lost  error  // why index may be old
	beat  time.Time
}

type outcome struct {
	input Input
	err   error
}

// NewMonitor makes a Monitor. An error is a mistake in one of the files that the Config names.
func NewMonitor(c Config) (*Monitor, error) {
	c = c.withDefaults()
	if c.Map != "" {
		if _, err := loadMap(c.Map); err != nil {
			return nil, err
		}
	}
	s := &source{cfg: c, sysfs: &kernel.Sysfs{Root: c.Sysfs}}
	if c.DevlinkPorts != "" {
		if _, err := s.ports(); err != nil {
			return nil, err
		}
	}
	return &Monitor{
		log: c.Logger, kernel: c.DevlinkPorts == "", triggered: make(chan struct{}, 1), source: s,
		resync: c.Resync, poll: poll, deadline: readTimeout, lost: errors.New("they were not read yet"),
	}, nil
}

// OnChange adds a function to be called, from Run, after the index changed, became known or unknown. It must not
// block, and is to be added before Run.
func (m *Monitor) OnChange(f func()) { m.listeners = append(m.listeners, f) }

// Trigger has all read again soon. It is for changes that the monitor has no events for: those of network
// interfaces. It does not block.
func (m *Monitor) Trigger() {
	select {
	case m.triggered <- struct{}{}:
	default:
	}
}

// Latest gives the last index, nil before the first. With an error it may be old: it still answers what it knows,
// and says ErrUnknown or Unclassified to what it does not.
func (m *Monitor) Latest() (*Index, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.lost != nil {
		return m.index, fmt.Errorf("%w: %w", ErrUnknown, m.lost)
	}
	return m.index, nil
}

// Ready is nil while the index is current, else it says why not.
func (m *Monitor) Ready() error {
	_, err := m.Latest()
	return err
}

// Healthy is nil while Run makes progress, whatever the kernel does.
func (m *Monitor) Healthy(now time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if idle := now.Sub(m.beat); !m.beat.IsZero() && idle > stuckAfter {
		return fmt.Errorf("watching the card's ports has been stuck for %s", idle.Round(time.Second))
	}
	return nil
}
