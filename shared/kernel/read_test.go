// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// steady is a source in which nothing changes.
func steady() source {
	return source{
		links:    func() ([]Link, error) { return []Link{{Index: 2, Name: "ens3"}, {Index: 1, Name: "lo"}}, nil },
		addrs:    func() ([]Addr, error) { return []Addr{{LinkIndex: 2}, {LinkIndex: 1}}, nil },
		defaults: func(table uint32) ([]Route, error) { return []Route{{Table: table}}, nil },
	}
}

// failing makes the first n calls fail with err, after they gave half an answer.
func failing[T any](n *int, err error, all []T) ([]T, error) {
	if *n > 0 {
		*n--
		return all[:len(all)/2], err
	}
	return all, nil
}

func TestReadRetriesWhatPasses(t *testing.T) {
	tests := map[string]struct {
		fail  int
		err   error
		wantN int // failures left, of fail
		ok    bool
	}{
		"D4: an interrupted dump":          {fail: 3, err: netlink.ErrDumpInterrupted, ok: true},
		"D4: an older kernel library":      {fail: 3, err: unix.EINTR, ok: true},
		"D4: interrupted each time":        {fail: 1000, err: netlink.ErrDumpInterrupted, wantN: 1000 - readAttempts},
		"another error is not tried again": {fail: 5, err: unix.EPERM, wantN: 4},
		"nor is a deadline that passed":    {fail: 5, err: unix.EAGAIN, wantN: 4},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				from, n := steady(), test.fail
				addrs := from.addrs
				from.addrs = func() ([]Addr, error) {
					all, _ := addrs()
					return failing(&n, test.err, all)
				}
				s, err := read(t.Context(), from)
				if n != test.wantN {
					t.Errorf("%d failures left, want %d", n, test.wantN)
				}
				if !test.ok {
					if s != nil || !errors.Is(err, test.err) {
						t.Errorf("got %v, %v; want no snapshot and %v", s, err, test.err)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				if len(s.Addrs) != 2 || s.Addrs[0].LinkIndex != 1 || s.Links[0].Index != 1 {
					t.Errorf("not complete and sorted: %+v", s)
				}
			})
		})
	}
}

func TestReadAgainWhenLinksChanged(t *testing.T) {
	tests := map[string]func(*Link){
		"made again under its name":    func(l *Link) { l.Index = 17 },
		"renamed":                      func(l *Link) { l.Name = "ens4" },
		"moved to a VRF meanwhile":     func(l *Link) { l.MasterIndex = 9 },
		"its VRF got another table":    func(l *Link) { l.VRFTable = 12 },
		"went down, which is no cause": func(l *Link) { l.Up = false },
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				before, after := Link{Index: 2, Name: "ens3", Up: true}, Link{Index: 2, Name: "ens3", Up: true}
				change(&after)
				from, lists := steady(), 0
				from.links = func() ([]Link, error) {
					lists++
					if lists == 1 {
						return []Link{before}, nil
					}
					return []Link{after}, nil
				}
				s, err := read(t.Context(), from)
				if err != nil {
					t.Fatal(err)
				}
				if !s.Links[0].Equal(after) {
					t.Errorf("got %+v, want %+v", s.Links[0], after)
				}
				wantLists := 4
				if before.sameTopology(after) {
					wantLists = 2
				}
				if lists != wantLists {
					t.Errorf("links were listed %d times, want %d", lists, wantLists)
				}
			})
		})
	}
}

func TestReadEndsWithContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	from := steady()
	from.addrs = func() ([]Addr, error) { cancel(); return nil, netlink.ErrDumpInterrupted }
	if _, err := read(ctx, from); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
