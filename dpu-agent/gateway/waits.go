// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"maps"
	"slices"
	"time"
)

// waits remembers since when something has been waited for.
type waits map[string]time.Time

// rest is how much of the limit is left for what is waited for, from the first time that is asked on; zero once it is
// over.
func (w waits) rest(what string, limit time.Duration, now time.Time) time.Duration {
	since, known := w[what]
	if !known {
		since = now
		w[what] = now
	}
	return max(0, limit-now.Sub(since))
}

// end forgets: what was waited for is there.
func (w waits) end(what string) { delete(w, what) }

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
