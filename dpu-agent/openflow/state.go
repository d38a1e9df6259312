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
	// programmed is set by the first call of Program; Programmer.mu is for it.
	programmed bool

	mu    sync.Mutex // for what follows, which changes only with the turn, but for sure
	frame Bridge
	items []Service
	want  flowSet // what was sent last, or is being sent; nil before
	sure  bool    // want is what is there, as far as is known
	// expected are flows that were sent and that the monitor has yet to tell of.
	expected map[place]bool
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

// expect is called before flows are sent, and with none when a monitor begins, which does not tell of earlier ones.
func (s *state) expect(flows []Flow) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(flows) == 0 || s.expected == nil {
		s.expected = map[place]bool{}
	}
	for _, f := range flows {
		s.expected[f.place()] = true
	}
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
		// A line has no priority: the same flow at another one shows by being told of once too often.
		e.flow.Priority = want.Priority
		due := s.expected[e.flow.place()]
		delete(s.expected, e.flow.place())
		return e.flow == want && due
	case portChanged:
		return e.port != s.frame.Patch
	default:
		return false
	}
}
