// SPDX-License-Identifier: Apache-2.0

package vrf

import (
	"testing"
	"time"
)

// TestD16RepairsGrowRarer: repairs that are undone are repeated at once, then ever later, and are a fight by then.
func TestD16RepairsGrowRarer(t *testing.T) {
	var d drift
	now := time.Unix(1000, 0)
	for i, want := range []time.Duration{0, 0, 0, 1, 2, 4, 8, 16, 32, 60, 60} {
		d.repaired(now)
		if got := d.wait(now); got != want*time.Second {
			t.Errorf("repair %d: the next waits %s, want %ds", i+1, got, want)
		}
		if got, want := d.fighting(), i+1 >= 5; got != want {
			t.Errorf("repair %d: fighting %t, want %t", i+1, got, want)
		}
		now = now.Add(d.wait(now))
	}
	now = now.Add(calm / 2)
	if d.repaired(now); !d.fighting() {
		t.Error("half a minute was taken for peace")
	}
	now = now.Add(longestWait + 2*calm)
	if d.repaired(now); d.fighting() || d.wait(now) > 0 {
		t.Error("a repair after minutes of quiet counts as part of a fight")
	}
	if d.refused(now); d.wait(now) != firstWait || d.repairs != 1 {
		t.Errorf("after a refusal the next try waits %s, and %d repairs were counted", d.wait(now), d.repairs)
	}
}
