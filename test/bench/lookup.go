// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ovn-uplink/ovn-uplink/dpu-agent/representor"
	"github.com/ovn-uplink/ovn-uplink/test/lab"
)

const (
	maxLookup = 10 * time.Microsecond
	// maxLookupGrowth is by how much a lookup among 128 times as many representors may take longer.
	maxLookupGrowth = 2.0
)

var cardSizes = []int{16, 256, 2048}

// speed is how fast an index of one size is, in time per operation.
type speed struct{ build, one, many, absent best }

// speeds has one for each of cardSizes.
type speeds []speed

// best is the shortest of several measurements: in the others somebody else was on the processor.
type best time.Duration

// lookup measures how long a representor takes to be found among many, and how often the card is asked.
func (b *bench) lookup(ctx context.Context) ([]row, error) {
	testing.Init()
	if err := flag.Set("test.benchtime", "20ms"); err != nil {
		return nil, err
	}
	s := make(speeds, len(cardSizes))
	var benchmarks []func()
	for i, size := range cardSizes {
		ports, links, err := cardPorts(size)
		if err != nil {
			return nil, err
		}
		in := representor.Input{Ports: ports, Links: links}
		index := representor.Build(in)
		one, many, none := queries(size, 1), queries(size, manyUplinks), []query{absent()}
		if err := checkAnswers(index, many); err != nil {
			return nil, fmt.Errorf("index of %d representors: %w", size, err)
		}
		benchmarks = append(benchmarks,
			func() { s[i].build.take(1, func() { representor.Build(in) }) },
			func() { s[i].one.take(1, func() { resolveAll(index, one) }) },
			func() { s[i].many.take(len(many), func() { resolveAll(index, many) }) },
			func() { s[i].absent.take(1, func() { resolveAll(index, none) }) })
	}
	// In turn, so that what else the machine does hits all sizes alike.
	rounds := full(b, 10, 3)
	b.say("%d rounds of %d benchmarks", rounds, len(benchmarks))
	for range rounds {
		for _, run := range benchmarks {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			run()
		}
	}
	rows := s.rows()
	reads, n, err := b.reads(ctx)
	if err != nil {
		return rows, err
	}
	return append(rows, row{
		Measure: "reads of all ports per change", How: fmt.Sprintf("%d changes of one of %d ports, %d lookups after each", n, cardSizes[1], manyUplinks),
		Figure: fmt.Sprintf("%.2f", float64(reads)/float64(n)), Target: "1", Verdict: judge(reads == n),
		Values: map[string]float64{"reads": float64(reads), "changes": float64(n)},
	}), nil
}

func (s speeds) rows() []row {
	sizes := series(cardSizes, func(n int) string { return fmt.Sprint(n) })
	line := func(measure, how string, of func(speed) best) row {
		r := row{Measure: measure, How: sizes + " representors" + how, Verdict: noTarget, Values: map[string]float64{}}
		r.Figure = series(s, func(at speed) string { return short(time.Duration(of(at))) })
		for i, at := range s {
			r.Values[fmt.Sprint(cardSizes[i])] = time.Duration(of(at)).Seconds()
		}
		return r
	}
	bounded := func(measure, how string, of func(speed) best) row {
		r := line(measure, how, of)
		slow := slices.ContainsFunc(s, func(at speed) bool { return time.Duration(of(at)) >= maxLookup })
		r.Target, r.Verdict = "< "+short(maxLookup), judge(!slow)
		return r
	}
	last := len(cardSizes) - 1
	growth := float64(s[last].many) / float64(s[0].many)
	return []row{
		line("representor index, build", "", func(at speed) best { return at.build }),
		bounded("representor lookup, 1 Uplink", "", func(at speed) best { return at.one }),
		bounded(fmt.Sprintf("representor lookup, %d Uplinks", manyUplinks), "; per lookup", func(at speed) best { return at.many }),
		bounded("representor lookup, function not there", "; message included", func(at speed) best { return at.absent }),
		{
			Measure: "representor lookup, growth", How: fmt.Sprintf("%d ÷ %d representors, %d Uplinks", cardSizes[last], cardSizes[0], manyUplinks),
			Figure: fmt.Sprintf("%.2fx", growth), Target: fmt.Sprintf("O(1): ≤ %.0fx", maxLookupGrowth),
			Verdict: judge(growth <= maxLookupGrowth), Values: map[string]float64{"growth": growth},
		},
	}
}

// take measures how long one of the operations takes of which f does several.
func (b *best) take(operations int, f func()) {
	r := testing.Benchmark(func(t *testing.B) {
		for t.Loop() {
			f()
		}
	})
	took := best(r.T / time.Duration(r.N*operations))
	if *b == 0 || took < *b {
		*b = took
	}
}

func resolveAll(x *representor.Index, all []query) {
	for _, q := range all {
		_, _ = x.Resolve(q.Query)
	}
}

// reads counts how often a Monitor reads all ports of the card for a number of changes.
func (b *bench) reads(ctx context.Context) (reads, changes int, err error) {
	changes = full(b, 20, 5)
	dir, err := os.MkdirTemp("", "ovn-uplink-bench-devlink")
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path := filepath.Join(dir, "devlink.json")
	size := cardSizes[1]
	if err := writeDevlink(path, card(size)); err != nil {
		return 0, 0, err
	}
	// Every read of the ports is followed by one of the interfaces, which can be counted.
	var count atomic.Int64
	m, err := representor.NewMonitor(representor.Config{DevlinkPorts: path, Sysfs: dir, Logger: slog.New(slog.DiscardHandler), Links: func() ([]representor.Link, error) {
		count.Add(1)
		return nil, nil
	}})
	if err != nil {
		return 0, 0, err
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = m.Run(ctx)
	}()
	defer func() { cancel(); <-done }()
	if err := lab.Eventually(ctx, 10*time.Second, func(context.Context) error { return m.Ready() }); err != nil {
		return 0, 0, err
	}
	b.say("%d changes of a card's ports", changes)
	before := count.Load()
	for i := range changes {
		ports := card(size)
		want := fmt.Sprintf("renamed%d", i)
		ports[vfHandle(0)] = lab.HostVFPort(want, 0, 0, vfMAC(0, 0))
		if err := writeDevlink(path, ports); err != nil {
			return 0, 0, err
		}
		m.Trigger()
		err := lab.Eventually(ctx, 10*time.Second, func(context.Context) error {
			x, err := m.Latest()
			if err != nil {
				return err
			}
			found, err := x.Resolve(vfQuery(0, 0).Query)
			if err == nil && found.Netdev != want {
				err = fmt.Errorf("found %s, not %s", found.Netdev, want)
			}
			return err
		})
		if err != nil {
			return 0, 0, err
		}
		x, _ := m.Latest()
		resolveAll(x, queries(size, manyUplinks))
	}
	// A read too many may still be on its way: the files are looked at every two seconds.
	if err := sleep(ctx, 3*time.Second); err != nil {
		return 0, 0, err
	}
	return int(count.Load() - before), changes, nil
}

func writeDevlink(path string, ports map[string]lab.DevlinkPort) error {
	text, err := json.Marshal(map[string]any{"port": ports})
	if err != nil {
		return err
	}
	// In one step, as a reader may come at any time.
	if err := os.WriteFile(path+".tmp", text, 0o644); err != nil {
		return fmt.Errorf("write devlink ports: %w", err)
	}
	return os.Rename(path+".tmp", path)
}
