// SPDX-License-Identifier: Apache-2.0

package openflow

import (
	"context"
	"sync"
)

// state is what is known about one bridge.
type state struct {
	name string
	turn chan struct{} // holds one token while nobody programs or checks the bridge
	stop func()        // ends its watcher

	mu    sync.Mutex // for what follows, which changes only with the turn, but for sure
	frame Bridge
	items []Service
	want  flowSet // what was sent last, or is being sent; nil before
	sure  bool    // want is what is there, as far as is known
	// expected are how many lines of the monitor are still to come about flows that were sent; nil without a monitor.
	// It prints no priorities, so that another flow's line may look like that of one that is wanted.
	expected map[place]int
	// unlike is a difference between want and what is there that stayed although it was sent. It is not sent again.
	unlike *plan
}

func newState(name string) *state {
	s := &state{name: name, turn: make(chan struct{}, 1), stop: func() {}}
	s.turn <- struct{}{}
	return s
}

func (s *state) lock(ctx context.Context) error {
	select {
	case <-s.turn:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *state) unlock() { s.turn <- struct{}{} }

// set is called before anything is sent, so that a monitor's line about it is recognised.
func (s *state) set(frame Bridge, items []Service, want flowSet) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.frame, s.items, s.want = frame, items, want
}

// doubt has the bridge read before it is programmed again.
func (s *state) doubt() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sure = false
}

func (s *state) sureNow() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sure
}

func (s *state) believe(unlike *plan) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sure, s.unlike = unlike == nil, unlike
}

// monitored begins, or ends, to expect lines of a monitor about what is sent.
func (s *state) monitored(yes bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expected = nil
	if yes {
		s.expected = map[place]int{}
	}
}

// sends is called before flows are sent.
func (s *state) sends(flows []Flow) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.expected == nil {
		return
	}
	for i := range flows {
		s.expected[flows[i].place()]++
	}
}

// fits tells whether a monitor's line is no more than what was sent, or is nothing to this package.
func (s *state) fits(e event) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.want == nil {
		return true
	}
	want, found := s.want[e.flow.place()]
	switch e.kind {
	case flowDeleted:
		return !found || !owned(e.flow.Cookie)
	case flowAdded, flowModified:
		if !found {
			return !owned(e.flow.Cookie)
		}
		e.flow.Priority = want.Priority
		return s.awaited(e.flow.place()) && e.flow == want
	case portChanged:
		return e.port != s.frame.Patch
	default:
		return false
	}
}

// awaited tells whether a line about a flow was expected, and takes it for that. s.mu is held.
func (s *state) awaited(at place) bool {
	switch s.expected[at] {
	case 0:
		return false
	case 1:
		delete(s.expected, at)
	default:
		s.expected[at]--
	}
	return true
}
