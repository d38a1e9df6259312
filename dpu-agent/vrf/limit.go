// SPDX-License-Identifier: Apache-2.0

package vrf

import "time"

const (
	// calm is how long nothing must have been repaired for the next repair to count as the first.
	calm = time.Minute
	// free is how many repairs have no wait between them, fight after how many somebody else is at work.
	free, fight = 3, 5
	// firstWait doubles with each repair that is not free, up to longestWait.
	firstWait   = time.Second
	longestWait = time.Minute
)

// drift is what became of an interface that others change. Two managers that each put right what the other did must
// not do so as fast as they can.
type drift struct {
	repairs    int
	last, next time.Time
	// shown is what was last told of it.
	shown Drift
}

// wait is how long the next repair has to wait.
func (d *drift) wait(now time.Time) time.Duration { return max(0, d.next.Sub(now)) }

// refused lets the next try wait, but not longer and longer: what stands in the way may go.
func (d *drift) refused(now time.Time) { d.next = now.Add(firstWait) }

// repaired counts a repair.
func (d *drift) repaired(now time.Time) {
	if now.Sub(d.last) > calm+d.next.Sub(d.last) {
		d.repairs = 0
	}
	d.repairs++
	d.last, d.next = now, now
	if d.repairs > free {
		d.next = now.Add(min(longestWait, firstWait<<min(d.repairs-free-1, 10)))
	}
}

// fighting tells whether somebody else undoes the repairs.
func (d *drift) fighting() bool { return d.repairs >= fight }
