// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"
	"time"

	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
)

// A new verdict is written at once; one of which only the message is new waits its turn.
func TestPace(t *testing.T) {
	start := time.Unix(1000, 0)
	p := newPace(time.Second)
	p.wrote("blue", start)
	published := uplinkstate.Condition{Reason: "MissingUplinkState", Message: "9 of 10", Generation: 1}
	later := start.Add(300 * time.Millisecond)
	for name, tc := range map[string]struct {
		change func(*uplinkstate.Condition)
		want   time.Duration
	}{
		"message":    {func(c *uplinkstate.Condition) { c.Message = "8 of 10" }, 700 * time.Millisecond},
		"reason":     {func(c *uplinkstate.Condition) { c.Reason = "UplinkStateNotResolved" }, 0},
		"status":     {func(c *uplinkstate.Condition) { c.Status = true }, 0},
		"generation": {func(c *uplinkstate.Condition) { c.Generation = 2 }, 0},
	} {
		wish := published
		tc.change(&wish)
		if got := p.wait("blue", published, wish, later); got != tc.want {
			t.Errorf("%s waits %s, want %s", name, got, tc.want)
		}
	}
	changed := published
	changed.Message = "8 of 10"
	if p.wait("green", published, changed, later) > 0 || p.wait("blue", published, changed, start.Add(time.Second)) > 0 {
		t.Error("waits although nothing was written lately")
	}
}
