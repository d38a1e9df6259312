// SPDX-License-Identifier: Apache-2.0

package ovsdb

import (
	"math/rand/v2"
	"time"
)

const (
	minBackoff = 100 * time.Millisecond
	maxBackoff = 5 * time.Second
)

// backoff is the wait before the next try; the zero value begins with minBackoff.
type backoff time.Duration

// next doubles the wait up to maxBackoff. Up to a quarter is taken off at random, so that the agents of many nodes
// do not come back to one server all at once.
func (b *backoff) next() time.Duration {
	*b = min(max(*b*2, backoff(minBackoff)), backoff(maxBackoff))
	return time.Duration(*b) - rand.N(time.Duration(*b)/4)
}
