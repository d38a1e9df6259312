// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"sync"
	"time"
)

// maxSettle is how many times the settle time something may keep changing before what it says at that moment
// is believed all the same.
const maxSettle = 30

// Settle holds back what changes too fast: a wish is due when it has stayed the same for the settle time.
// A flap that is over sooner is never seen by anybody else.
type Settle[T any] struct {
	time  time.Duration
	equal func(a, b T) bool

	mu      sync.Mutex
	pending map[string]pending[T]
}

type pending[T any] struct {
	wish  T
	since time.Time // when the wish became what it is
	first time.Time // when the key began to differ from what is published
}

// NewSettle makes a Settle with the given settle time; zero lets everything through at once.
func NewSettle[T any](settle time.Duration, equal func(a, b T) bool) *Settle[T] {
	return &Settle[T]{time: settle, equal: equal, pending: map[string]pending[T]{}}
}

// Wait tells how long the wish for a key has still to stay as it is; zero or less means that it is due. What never
// rests is due in the end.
func (s *Settle[T]) Wait(key string, wish T, now time.Time) time.Duration {
	p := s.note(key, wish, now)
	return min(p.since.Add(s.time).Sub(now), p.first.Add(maxSettle*s.time).Sub(now))
}

// WaitRest is Wait for a wish that must rest, however long that takes: one that takes something away.
func (s *Settle[T]) WaitRest(key string, wish T, now time.Time) time.Duration {
	return s.note(key, wish, now).since.Add(s.time).Sub(now)
}

func (s *Settle[T]) note(key string, wish T, now time.Time) pending[T] {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, known := s.pending[key]
	if !known {
		p = pending[T]{wish: wish, since: now, first: now}
	} else if !s.equal(p.wish, wish) {
		p.wish, p.since = wish, now
	}
	s.pending[key] = p
	return p
}

// Done forgets a key: what is published is what is wished.
func (s *Settle[T]) Done(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.pending, key)
}
