// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ovn-uplink/ovn-uplink/test/lab"
)

// bootTime is for a guest's start and end on a busy machine.
const bootTime = time.Minute

// Run boots one guest, runs the suites in it one after the other and reports each of their tests as a subtest. A
// suite without a test, and one with a skipped test, fails.
func Run(t *testing.T, suites ...Suite) {
	t.Helper()
	lab.NeedRoot(t)
	image, err := prepare(t.Context(), t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	repository, err := findRepository()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	s := shares{tests: filepath.Join(dir, "tests"), out: filepath.Join(dir, "out"), repository: repository, memory: memory}
	if needLab(suites) {
		s.memory, s.cache = labMemory, lab.CacheDir()
	}
	for _, d := range []string{s.tests, s.out} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	begin := time.Now()
	if err := compile(t.Context(), repository, s.tests, suites, t.Logf); err != nil {
		t.Fatal(err)
	}
	limit := bootTime
	for _, suite := range suites {
		limit += suite.limit()
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	compiled := time.Now()
	code, console, err := boot(ctx, image, dir, s)
	t.Logf("built in %s, booted and ran in %s", compiled.Sub(begin).Round(time.Millisecond), time.Since(compiled).Round(time.Millisecond))
	t.Logf("on the console:\n%s", console)
	if err != nil {
		t.Error(err)
	} else if code != 0 {
		t.Errorf("the guest's program ended with %d", code)
	}
	for i, o := range outcomes(s.out, suites) {
		t.Run(suites[i].Package, func(t *testing.T) {
			all, err := parse(t.Context(), o.log)
			if err != nil {
				t.Fatalf("%v, of\n%s", err, o.log)
			}
			all.reportSuite(t, o.code)
		})
	}
}
