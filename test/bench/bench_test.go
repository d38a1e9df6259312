// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ovn-uplink/ovn-uplink/dpu-agent/representor"
	"github.com/ovn-uplink/ovn-uplink/shared/api/v1alpha1"
	"k8s.io/apimachinery/pkg/watch"
)

func TestPercentile(t *testing.T) {
	var values []time.Duration
	for i := 50; i > 0; i-- {
		values = append(values, time.Duration(i))
	}
	for p, want := range map[float64]time.Duration{0: 1, 50: 25, 98: 49, 99: 50, 100: 50} {
		if got := percentile(values, p); got != want {
			t.Errorf("percentile %v is %d, want %d", p, got, want)
		}
	}
}

func TestShort(t *testing.T) {
	for d, want := range map[time.Duration]string{
		516 * time.Nanosecond: "516 ns", 1620 * time.Nanosecond: "1.62 µs", 5684 * time.Microsecond: "5.68 ms", 2514 * time.Millisecond: "2.51 s",
	} {
		if got := short(d); got != want {
			t.Errorf("%d is %q, want %q", d, got, want)
		}
	}
}

func TestTable(t *testing.T) {
	got := table([][]string{{"measure", "figure"}, {"a|b", "10 µs\nand more"}})
	want := "| measure | figure         |\n| ------- | -------------- |\n| a/b     | 10 µs and more |\n"
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestReportIsMetOnlyWhole(t *testing.T) {
	for v, want := range map[verdict]bool{met: true, noTarget: true, missed: false, notMeasured: false} {
		r := report{Rows: []row{{Verdict: met}, {Verdict: v}}}
		if got := r.met(); got != want {
			t.Errorf("met with %q: %t", v, got)
		}
	}
}

func TestPrint(t *testing.T) {
	r := newReport(true)
	r.Rows = append(r.Rows, failed("drift", errors.New("no <watch>")))
	for output, want := range map[string]string{"table": "FAILED", "json": `"figure": "no <watch>"`} {
		var text bytes.Buffer
		if err := r.print(&text, output); err != nil || !strings.Contains(text.String(), want) {
			t.Errorf("%s: error %v, no %s in\n%s", output, err, want, text.String())
		}
	}
}

func TestSumMetric(t *testing.T) {
	text := []byte(`# HELP passes Passes.
passes{loop="host",outcome="ok"} 3
passes{loop="host",outcome="error"} 1.5e+01
passes_seconds 7
alone 4
`)
	for metric, want := range map[string]float64{"passes": 18, "alone": 4} {
		if got, err := sumMetric(text, metric); err != nil || got != want {
			t.Errorf("%s: got %v, %v, want %v", metric, got, err, want)
		}
	}
	if _, err := sumMetric(text, "pass"); err == nil {
		t.Error("a metric that is not there is no error")
	}
}

func TestParseTraffic(t *testing.T) {
	got, err := parseTraffic([]byte(`[{"ifname":"mgmt0","stats64":{"rx":{"bytes":1234,"packets":5},"tx":{"bytes":9,"packets":9}}}]`))
	if err != nil || got != (traffic{1234, 5}) {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, err := parseTraffic([]byte("[]")); err == nil {
		t.Error("no interface is no error")
	}
}

// The judgement must be able to fail: an agent that hears of others, and one that hears of nothing.
func TestFanoutRows(t *testing.T) {
	quiet := heard{traffic: traffic{Bytes: 500, Packets: 5}}
	all := func(n int64) heard { return heard{traffic{500 + 1500*n, 5 + n}, n} }
	own := []heard{{events: 10}, {events: 10}, {events: 10}}
	windows := func(most heard) [][]heard {
		return [][]heard{{quiet, quiet, all(0)}, {quiet, quiet, all(10)}, {quiet, quiet, all(100)}, {most, quiet, all(1000)}}
	}
	for name, tt := range map[string]struct {
		most  heard
		own   []heard
		wants [2]verdict // bytes and events of the host-agent
	}{
		"constant":           {quiet, own, [2]verdict{met, met}},
		"less than at rest":  {heard{}, own, [2]verdict{met, met}},
		"everything arrives": {all(1000), own, [2]verdict{missed, missed}},
		"one event arrives":  {all(1), own, [2]verdict{met, missed}},
		"deaf":               {quiet, []heard{{}, {events: 1}, {}}, [2]verdict{met, missed}},
	} {
		rows := fanoutRows(windows(tt.most), tt.own)
		if got := [2]verdict{rows[0].Verdict, rows[1].Verdict}; got != tt.wants {
			t.Errorf("%s: %v, want %v: %+v", name, got, tt.wants, rows[:2])
		}
	}
}

func TestDriftRows(t *testing.T) {
	for name, tt := range map[string]struct {
		d     drifts
		wants [2]verdict
	}{
		"good":         {drifts{[]time.Duration{settle + 10*time.Millisecond, settle + 20*time.Millisecond}, []int{1, 1}}, [2]verdict{met, met}},
		"one is slow":  {drifts{[]time.Duration{settle, settle + maxDrift}, []int{1, 1}}, [2]verdict{missed, met}},
		"one is twice": {drifts{[]time.Duration{settle, settle}, []int{1, 2}}, [2]verdict{met, missed}},
	} {
		rows := tt.d.rows("x")
		if got := [2]verdict{rows[0].Verdict, rows[1].Verdict}; got != tt.wants {
			t.Errorf("%s: %v, want %v", name, got, tt.wants)
		}
	}
}

func TestMemories(t *testing.T) {
	b := &bench{}
	of := func(mib int64) memory {
		r := resident{mib * mebibyte, mebibyte}
		return memory{r, r, r}
	}
	for name, tt := range map[string]struct {
		few, many, crowded memory
		missed             []int
	}{
		"good":               {of(10), of(11), of(12), nil},
		"too big":            {of(10), of(21), of(21), []int{1, 2}},
		"grows by the crowd": {of(10), of(10), of(12), []int{3}},
	} {
		var got []int
		for i, r := range b.memories(tt.few, tt.many, tt.crowded) {
			if r.Verdict == missed {
				got = append(got, i)
			}
		}
		if !slices.Equal(got, tt.missed) {
			t.Errorf("%s: missed are %v, want %v", name, got, tt.missed)
		}
	}
}

func TestQuickDoesNotJudgeMemory(t *testing.T) {
	r := resident{30 * mebibyte, mebibyte}
	rows := (&bench{quick: true}).memories(memory{r, r, r}, memory{r, r, r}, memory{r, r, r})
	for _, r := range rows[:3] {
		if r.Verdict != noTarget {
			t.Errorf("%s is %s", r.Measure, r.Verdict)
		}
	}
}

func TestParseResident(t *testing.T) {
	got, err := parseResident("Name:\tx\nVmRSS:\t   18000 kB\nRssAnon:\t    6000 kB\nRssFile:\t   12000 kB\n")
	if want := (resident{18000 << 10, 6000 << 10}); err != nil || got != want {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, err := parseResident("Name:\tzombie\n"); err == nil {
		t.Error("a process without memory is no error")
	}
}

func TestLookupRows(t *testing.T) {
	flat := speed{best(time.Millisecond), 100, 100, 100}
	for name, tt := range map[string]struct {
		last   speed
		missed []int
	}{
		"flat":  {flat, nil},
		"slow":  {speed{1, best(maxLookup), 100, 100}, []int{1}},
		"grows": {speed{1, 100, 201, 100}, []int{4}},
	} {
		var got []int
		for i, r := range (speeds{flat, flat, tt.last}).rows() {
			if r.Verdict == missed {
				got = append(got, i)
			}
		}
		if !slices.Equal(got, tt.missed) {
			t.Errorf("%s: missed are %v, want %v", name, got, tt.missed)
		}
	}
}

func TestCardAnswers(t *testing.T) {
	for _, size := range cardSizes {
		ports, links, err := cardPorts(size)
		if err != nil {
			t.Fatal(err)
		}
		x := representor.Build(representor.Input{Ports: ports, Links: links})
		if got := len(x.Representors()); got != size {
			t.Errorf("%d representors, want %d", got, size)
		}
		all := queries(size, manyUplinks)
		if err := checkAnswers(x, all); err != nil {
			t.Errorf("%d representors: %v", size, err)
		}
		slices.SortFunc(all, func(a, b query) int { return strings.Compare(a.want, b.want) })
		different := len(slices.CompactFunc(all, func(a, b query) bool { return a.want == b.want }))
		if want := min(size-2, manyUplinks); different != want {
			t.Errorf("%d representors: %d different queries, want %d", size, different, want)
		}
	}
}

func TestParallel(t *testing.T) {
	var calls atomic.Int64
	each := func(context.Context, int) error { calls.Add(1); return nil }
	if err := parallel(t.Context(), 100, each); err != nil || calls.Load() != 100 {
		t.Errorf("%d calls, error %v", calls.Load(), err)
	}
	broken := errors.New("broken")
	err := parallel(t.Context(), 100, func(_ context.Context, i int) error {
		if i == 3 {
			return broken
		}
		return nil
	})
	if !errors.Is(err, broken) {
		t.Errorf("error %v, want %v", err, broken)
	}
}

func TestJournal(t *testing.T) {
	fake := watch.NewFake()
	j := &journal{events: fake, done: make(chan struct{}), news: make(chan struct{}, 1)}
	go j.run()
	go func() {
		fake.Modify(&v1alpha1.UplinkState{})
		fake.Modify(&v1alpha1.UplinkState{Status: v1alpha1.UplinkStateStatus{IPAddresses: []string{"192.0.2.1/24"}}})
	}()
	has := func(s *v1alpha1.UplinkState) bool { return len(s.Status.IPAddresses) == 1 }
	if _, err := j.await(t.Context(), 0, has); err != nil || j.count() != 2 {
		t.Errorf("error %v, %d writes", err, j.count())
	}
	if err := j.quiet(t.Context(), time.Millisecond); err != nil {
		t.Error(err)
	}
	j.close()
	if _, err := j.await(t.Context(), 2, has); err == nil {
		t.Error("the end of the watch is no error")
	}
}
