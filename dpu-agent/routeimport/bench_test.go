// SPDX-License-Identifier: Apache-2.0

package routeimport

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// BenchmarkImport is a change of one route among 10 000: one read of the table and what follows from it.
func BenchmarkImport(b *testing.B) {
	ns := newLink(b)
	ns.IPBatch(many(10_000, "route add %d.%d.%d.0/24 via 192.0.2.1 proto bgp metric 20")...)
	// What is not asked for costs nothing.
	ns.IPBatch(many(10_000, "route add %d.%d.%d.0/24 via 192.0.2.1 proto bgp table 77")...)
	kernel, err := openRtnetlink(&ns.Handle)
	if err != nil {
		b.Fatal(err)
	}
	defer kernel.close()
	found, ok, err := kernel.link("ext0")
	if err != nil || !ok {
		b.Fatalf("no link: %v", err)
	}
	var s state
	b.ReportAllocs()
	b.ResetTimer()
	begin := processTime(b)
	for range b.N {
		c, err := kernel.read(b.Context(), unix.RT_TABLE_MAIN)
		if err != nil {
			b.Fatal(err)
		}
		seen, _ := c.choose(&Domain{}, found.index)
		s = s.next(observation{seen: seen, settled: true}, time.Now(), defaultGrace)
		if n := len(s.flat()); n != 10_000 {
			b.Fatalf("%d routes", n)
		}
	}
	b.ReportMetric(float64((processTime(b)-begin).Microseconds())/1000/float64(b.N), "cpu-ms/op")
}

// processTime is the time that the process spent on the processor, in the kernel too.
func processTime(t testing.TB) time.Duration {
	t.Helper()
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
