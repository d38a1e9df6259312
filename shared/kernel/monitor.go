// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ovn-uplink/ovn-uplink/shared/kernel/rtevents"
	"github.com/vishvananda/netns"
)

const (
	defaultBatch  = 100 * time.Millisecond
	defaultResync = 5 * time.Minute
	// receiveBuffer holds the events of thousands of links; the kernel's own default, 208 KiB, overflows in
	// ordinary bursts.
	receiveBuffer = 8 << 20
	// stalled is how long the loop may stand still, which turns every heartbeat at least.
	stalled = time.Minute
)

// Options of a Monitor. The zero value is ready for use.
type Options struct {
	// Namespace is the network namespace to watch, nil for the process's own.
	Namespace *netns.NsHandle
	// Batch is how long events are gathered before they cause one read. Default 100 ms.
	Batch time.Duration
	// Resync is how often everything is read without any event, give or take a tenth. Default 5 min.
	Resync time.Duration
	// Logger is for lost subscriptions. Default slog.Default.
	Logger *slog.Logger
	// Metrics are told what happens; any may be nil.
	Metrics Metrics
}

// Metrics are called from the monitor's loop and must not block.
type Metrics struct {
	// Read is called after each read with what it took and its error.
	Read func(took time.Duration, err error)
	// Resubscribed is called when a subscription was lost or a read failed, with the cause.
	Resubscribed func(cause error)
}

// Monitor keeps the latest complete snapshot of a network namespace. It reads again what the kernel says has
// changed; events only say that, never what.
//
// The kernel says nothing when a link that is down gets an alternative name (netdev_state_change): that is seen
// when the link goes up, or with the next resync.
type Monitor struct {
	options  Options
	onChange []func()

	// subscribe and read are the kernel, or a test.
	subscribe func() (*rtevents.Subscription, error)
	read      func(context.Context) (*Snapshot, error)

	latest atomic.Pointer[Snapshot]

	mu sync.Mutex
	// turned and readAt are the times of the loop's last turn and last good read, with their monotonic clock
	// reading: the wall clock may be set at any time.
	turned, readAt time.Time
	// lost is why latest may be old, since lostAt; nil while there was no loss, or a good read after it.
	lost   error
	lostAt time.Time
}

// NewMonitor makes a monitor; Run starts it.
func NewMonitor(o Options) *Monitor {
	if o.Batch <= 0 {
		o.Batch = defaultBatch
	}
	if o.Resync <= 0 {
		o.Resync = defaultResync
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Metrics.Read == nil {
		o.Metrics.Read = func(time.Duration, error) {}
	}
	if o.Metrics.Resubscribed == nil {
		o.Metrics.Resubscribed = func(error) {}
	}
	return &Monitor{
		options:   o,
		subscribe: func() (*rtevents.Subscription, error) { return subscribe(o.Namespace, receiveBuffer) },
		read:      func(ctx context.Context) (*Snapshot, error) { return Read(ctx, o.Namespace) },
	}
}

// OnChange registers a function that is called after Latest changed, the first snapshot included, from the
// monitor's loop: it must not block. Register before Run.
func (m *Monitor) OnChange(f func()) { m.onChange = append(m.onChange, f) }

// Latest is the last complete snapshot; ok is false until there is one, which means unknown, not empty.
func (m *Monitor) Latest() (s *Snapshot, ok bool) {
	s = m.latest.Load()
	return s, s != nil
}

// Ready is nil while the latest snapshot is believed current. It is an error, with the cause, before the first
// read and from a lost subscription or failed read until the next good read.
func (m *Monitor) Ready() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.lost != nil {
		return fmt.Errorf("no sight of links, addresses and routes since %s: %w", m.lostAt.UTC().Format(time.RFC3339), m.lost)
	}
	if m.latest.Load() == nil {
		return errors.New("waiting for the first complete read of links, addresses and routes")
	}
	return nil
}

// Healthy is for a liveness probe: an error means that the loop stands still, or has read nothing for so long
// that it missed several resyncs.
func (m *Monitor) Healthy(now time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.turned.IsZero() {
		return errors.New("netlink monitor: not started")
	}
	if idle := now.Sub(m.turned); idle > stalled {
		return fmt.Errorf("netlink monitor: the loop has not turned for %s", idle.Round(time.Second))
	}
	if age := now.Sub(m.readAt); age > 3*m.options.Resync {
		return fmt.Errorf("netlink monitor: nothing was read for %s", age.Round(time.Second))
	}
	return nil
}
