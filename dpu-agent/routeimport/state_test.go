// SPDX-License-Identifier: Apache-2.0

package routeimport

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"
)

// began is when the tests of states begin; times in them are seconds from then.
var began = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func at(seconds int) time.Time { return began.Add(time.Duration(seconds) * time.Second) }

// entriesOf reads "a b c>2": the prefixes 10.a.0.0/16 and so on, with the next hop 192.0.2.1 unless said otherwise.
func entriesOf(text string) []entry {
	var all []entry
	for _, word := range strings.Fields(text) {
		name, router, _ := strings.Cut(word, ">")
		if router == "" {
			router = "1"
		}
		all = append(all, entry{
			prefix: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, name[0], 0, 0}), 16),
			hops:   []netip.Addr{netip.MustParseAddr("192.0.2." + router)},
		})
	}
	return all
}

// textOf is the opposite, with the second since when an entry is missed.
func textOf(s state) string {
	var words []string
	for _, e := range s.routes {
		word := string(e.prefix.Addr().AsSlice()[1:2])
		if router := strings.TrimPrefix(e.hops[0].String(), "192.0.2."); router != "1" {
			word += ">" + router
		}
		if !e.missed.IsZero() {
			word += fmt.Sprintf("!%d", int(e.missed.Sub(began).Seconds()))
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

// TestNext: G6, D4, C8. Each step is an observation at a second and what is believed after it; the grace is 10 s.
func TestNext(t *testing.T) {
	type step struct {
		second int
		seen   string
		// moving is set where the table is not settled.
		moving bool
		want   string
		// restarting is what the state says of itself.
		restarting bool
	}
	tests := map[string]struct {
		previous string
		steps    []step
	}{
		"the first read, nothing there": {steps: []step{{seen: "", want: ""}}},
		"the first read of a moving table": {steps: []step{{seen: "a", moving: true, want: "a"}, {second: 1,
			seen: "a b", moving: true, want: "a b"}}},
		"C8: a withdrawal, an addition and another next hop are followed at once": {steps: []step{
			{seen: "a b", want: "a b"}, {second: 1, seen: "b>2 c", want: "b>2 c"},
		}},
		"D4: nothing is taken back while the table moves": {steps: []step{
			{seen: "a b c", want: "a b c"},
			{second: 1, seen: "b>2 d", moving: true, want: "a!1 b>2 c!1 d"},
			{second: 2, seen: "a b>2 d", moving: true, want: "a b>2 c!1 d"},
			{second: 3, seen: "a b>2 d", want: "a b>2 d"},
		}},
		"D4: not for ever": {steps: []step{
			{seen: "a b", want: "a b"},
			{second: 1, seen: "a", moving: true, want: "a b!1"},
			{second: 10, seen: "a", moving: true, want: "a b!1"},
			{second: 11, seen: "a", moving: true, want: "a"},
		}},
		"emptied for good": {steps: []step{
			{seen: "a b", want: "a b"},
			{second: 1, seen: "", want: "a!1 b!1", restarting: true},
			{second: 10, seen: "", want: "a!1 b!1", restarting: true},
			{second: 11, seen: "", want: ""},
			{second: 12, seen: "", want: ""},
		}},
		"emptied and refilled": {steps: []step{
			{seen: "a b", want: "a b"},
			{second: 1, seen: "", want: "a!1 b!1", restarting: true},
			{second: 2, seen: "a b", want: "a b"},
			{second: 3, seen: "a", want: "a"},
		}},
		"refilled piece by piece": {steps: []step{
			{seen: "a b c", want: "a b c"},
			{second: 1, seen: "", want: "a!1 b!1 c!1", restarting: true},
			{second: 4, seen: "b>2", want: "a!1 b>2 c!1", restarting: true},
			{second: 5, seen: "b d", want: "a!1 b c!1 d", restarting: true},
			{second: 6, seen: "a b d", want: "a b c!1 d", restarting: true},
			{second: 11, seen: "a b d", want: "a b d"},
			{second: 12, seen: "a b", want: "a b"},
		}},
		"taken back one by one until nothing is left": {steps: []step{
			{seen: "a b c", want: "a b c"},
			{second: 1, seen: "a c", moving: true, want: "a b!1 c"},
			{second: 2, seen: "c", moving: true, want: "a!2 b!1 c"},
			{second: 3, seen: "", moving: true, want: "a!2 b!1 c!3", restarting: true},
			{second: 4, seen: "", want: "a!2 b!1 c!3", restarting: true},
			{second: 5, seen: "a b c", want: "a b c"},
		}},
		"emptied again before all was back: what was back has its own grace": {steps: []step{
			{seen: "a b", want: "a b"},
			{second: 1, seen: "", want: "a!1 b!1", restarting: true},
			{second: 8, seen: "a", want: "a b!1", restarting: true},
			{second: 9, seen: "", want: "a!9 b!1", restarting: true},
			{second: 11, seen: "", want: "a!9", restarting: true},
			{second: 18, seen: "", want: "a!9", restarting: true},
			{second: 19, seen: "", want: ""},
		}},
		"after a restart, all there": {previous: "a b", steps: []step{{seen: "a b", want: "a b"}, {second: 1,
			seen: "a", want: "a"}}},
		"after a restart, nothing there": {previous: "a b", steps: []step{
			{seen: "", want: "a!0 b!0", restarting: true}, {second: 9, seen: "c", want: "a!0 b!0 c",
				restarting: true}, {second: 10, seen: "c", want: "c"},
		}},
		"after a restart, half of it there": {previous: "a b", steps: []step{
			{seen: "b>2 c", want: "a!0 b>2 c", restarting: true}, {second: 3, seen: "a b>2 c", want: "a b>2 c"},
		}},
		"a clock that was set back": {steps: []step{
			{second: 100, seen: "a", want: "a"},
			{second: 101, seen: "", want: "a!101", restarting: true},
			{second: 50, seen: "", want: "a!101", restarting: true},
			{second: 111, seen: "", want: ""},
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var s state
			s.routes = entriesOf(test.previous)
			for _, step := range test.steps {
				before := textOf(s)
				n := s.next(observation{seen: entriesOf(step.seen), settled: !step.moving}, at(step.second), 10*time.Second)
				if textOf(s) != before {
					t.Errorf("second %d: the state before was changed to %q", step.second, textOf(s))
				}
				if got := textOf(n); got != step.want || n.emptied.IsZero() == step.restarting || !n.known {
					t.Fatalf("second %d: believed is %q, restarting %t, want %q, %t", step.second, got,
						!n.emptied.IsZero(), step.want, step.restarting)
				}
				s = n
			}
		})
	}
}

// TestNextAlways checks what holds for whatever happens.
func TestNextAlways(t *testing.T) {
	const grace = 10 * time.Second
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 1))
		var s state
		seenAt := map[netip.Prefix]time.Time{}
		now := began
		for range 200 {
			now = now.Add(time.Duration(1+random.IntN(3000)) * time.Millisecond)
			var o observation
			o.settled = random.IntN(3) > 0
			for c := byte('a'); c < 'g' && random.IntN(4) > 0; c++ {
				if random.IntN(3) > 0 {
					o.seen = append(o.seen, entriesOf(string(c))...)
				}
			}
			quiet := s.emptied.IsZero() && len(o.seen) > 0 && o.settled
			s = s.next(o, now, grace)
			for _, e := range o.seen {
				seenAt[e.prefix] = now
			}
			if !slices.IsSortedFunc(s.routes, func(a, b entry) int { return comparePrefixes(a.prefix, b.prefix) }) {
				t.Fatalf("seed %d: not sorted: %s", seed, textOf(s))
			}
			missing := 0
			for _, e := range s.routes {
				if e.missed.IsZero() != seenAt[e.prefix].Equal(now) {
					t.Fatalf("seed %d: %s is missed since %s, was seen at %s, it is %s", seed, e.prefix, e.missed,
						seenAt[e.prefix], now)
				}
				if !e.missed.IsZero() {
					missing++
					if now.Sub(e.missed) >= grace {
						t.Fatalf("seed %d: %s is believed for longer than the grace time", seed, e.prefix)
					}
				}
			}
			if len(s.routes)-missing != len(o.seen) {
				t.Fatalf("seed %d: %d of %d are believed that are seen", seed, len(s.routes)-missing, len(o.seen))
			}
			if quiet && missing > 0 {
				t.Fatalf("seed %d: %s, although the table is settled", seed, textOf(s))
			}
			if missing == 0 && !s.emptied.IsZero() {
				t.Fatalf("seed %d: restarting with nothing missing", seed)
			}
			first, last := s.over(grace)
			if (missing == 0) != first.IsZero() || last.Before(first) || missing > 0 && !first.After(now) {
				t.Fatalf("seed %d: over from %s to %s with %d missing at %s", seed, first, last, missing, now)
			}
		}
	}
}

func TestStateOf(t *testing.T) {
	route := func(p, hop string) Route { return Route{netip.MustParsePrefix(p), netip.MustParseAddr(hop)} }
	s := stateOf([]Route{
		route("2001:db8::/32", "fe80::1%7"), route("10.2.0.0/16", "192.0.2.2"), route("10.2.0.7/16", "192.0.2.1"),
		route("10.2.0.0/16", "192.0.2.2"), route("10.1.0.0/16", "192.0.2.9"),
	})
	want := []string{"10.1.0.0/16 192.0.2.9", "10.2.0.0/16 192.0.2.1", "10.2.0.0/16 192.0.2.2", "2001:db8::/32 fe80::1"}
	if got := texts(s.flat()); !slices.Equal(got, want) || s.known || len(s.routes) != 3 {
		t.Errorf("got %q in %d entries", got, len(s.routes))
	}
}
