// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

const (
	// readAttempts bounds the retries of a read that something got into.
	readAttempts = 10
	// readPause is the wait after the first failed attempt; it grows by as much with each.
	readPause = 10 * time.Millisecond
)

// errLinksChanged says that links came, went or moved to another master between the start and the end of a
// read, so that addresses and routes may belong to links of another time.
var errLinksChanged = errors.New("links changed while they were read")

// source is where a snapshot comes from: rtnetlink, or a test.
type source struct {
	links func() ([]Link, error)
	addrs func() ([]Addr, error)
	// defaults lists the default routes of one table, both families.
	defaults func(table uint32) ([]Route, error)
}

// Read takes one snapshot of a network namespace, nil for the calling thread's own. It is complete and of one
// piece, or there is an error: a dump that the kernel marks as interrupted, and a read during which links
// changed, are repeated up to ten times. Every request has a deadline.
func Read(ctx context.Context, ns *netns.NsHandle) (*Snapshot, error) {
	r, err := openRtnetlink(ns)
	if err != nil {
		return nil, err
	}
	defer r.close()
	return read(ctx, source{links: r.links, addrs: r.addrs, defaults: r.defaults})
}

func read(ctx context.Context, from source) (*Snapshot, error) {
	for attempt := 1; ; attempt++ {
		s, err := readOnce(ctx, from)
		if err == nil {
			return s, nil
		}
		if !passing(err) || attempt == readAttempts {
			return nil, fmt.Errorf("read links, addresses and default routes (attempt %d): %w", attempt, err)
		}
		if err := sleep(ctx, time.Duration(attempt)*readPause); err != nil {
			return nil, err
		}
	}
}

func readOnce(ctx context.Context, from source) (*Snapshot, error) {
	before, err := from.links()
	if err != nil {
		return nil, fmt.Errorf("list links: %w", err)
	}
	s := &Snapshot{}
	if s.Addrs, err = from.addrs(); err != nil {
		return nil, fmt.Errorf("list addresses: %w", err)
	}
	for _, table := range tables(before) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		routes, err := from.defaults(table)
		if err != nil {
			return nil, fmt.Errorf("list default routes of table %d: %w", table, err)
		}
		s.Routes = append(s.Routes, routes...)
	}
	if s.Links, err = from.links(); err != nil {
		return nil, fmt.Errorf("list links again: %w", err)
	}
	slices.SortFunc(before, compareLinks)
	slices.SortFunc(s.Links, compareLinks)
	slices.SortFunc(s.Addrs, compareAddrs)
	slices.SortFunc(s.Routes, compareRoutes)
	if !slices.EqualFunc(before, s.Links, Link.sameTopology) {
		return nil, errLinksChanged
	}
	return s, nil
}

// passing tells whether a read failed for a reason that the next one need not meet. ErrDumpInterrupted comes
// with what was read so far, which is half a table and never used.
func passing(err error) bool {
	return errors.Is(err, errLinksChanged) || errors.Is(err, netlink.ErrDumpInterrupted) || errors.Is(err, unix.EINTR)
}

// sleep waits, unless ctx ends first.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
