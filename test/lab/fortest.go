// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// testDeadline bounds making and ending a lab in a test, without a build of
// kube-apiserver, for which there is the test's own timeout.
const testDeadline = 2 * time.Minute

// testLogBytes is how much of each process's log a failed test shows.
const testLogBytes = 4000

// ForTest makes a lab for one test and ends it when the test does. If the test
// failed, the end of every process's log is in the test's output. Without
// root, and with -short, the test is skipped; whatever is missing otherwise
// fails it.
//
// With an empty opts.Dir the lab gets a directory of its own below the
// temporary directory, so that tests of several packages may run at once, and
// labs whose test process was killed before it could clean up are removed.
func ForTest(t testing.TB, opts Options) *Lab {
	t.Helper()
	NeedRoot(t)
	if opts.Dir == "" {
		dir, err := ephemeralDir(t.Context())
		if err != nil {
			t.Fatalf("make a directory for the lab: %v", err)
		}
		opts.Dir, opts.ephemeral = dir, true
	}
	if opts.Log == nil {
		opts.Log = t.Logf
	}
	// Not part of the deadline: a build takes its time, once.
	if !opts.NoAPIServer {
		if _, err := APIServerBinary(t.Context(), opts.Log); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), testDeadline)
	defer cancel()
	l, err := New(ctx, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			l.dumpLogs(t)
		}
		// The test's own context has ended by now.
		ctx, cancel := context.WithTimeout(context.Background(), testDeadline)
		defer cancel()
		if err := l.Close(ctx); err != nil {
			t.Errorf("end the lab: %v", err)
		}
	})
	return l
}

// NeedRoot skips a test that uses real components when it runs with -short or
// without root. ForTest calls it.
func NeedRoot(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("skipped: -short; the test runs real components")
	}
	if os.Geteuid() != 0 {
		t.Skip("skipped: not root; the lab needs network namespaces")
	}
}

func (l *Lab) dumpLogs(t testing.TB) {
	logs, err := filepath.Glob(filepath.Join(l.state.logs(), "*.log"))
	if err != nil {
		t.Logf("no logs: %v", err)
	}
	for _, path := range logs {
		t.Logf("end of %s:\n%s", filepath.Base(path), logTail(path, testLogBytes))
	}
}

// ephemeralDir removes labs whose owner is gone and makes a directory for a
// new one.
func ephemeralDir(ctx context.Context) (string, error) {
	base := filepath.Join(BaseDir(), "test")
	if err := os.MkdirAll(base, 0o700); err != nil {
		return "", err
	}
	dirs, err := filepath.Glob(filepath.Join(base, "*"))
	if err != nil {
		return "", err
	}
	var errs []error
	for _, dir := range dirs {
		m, err := layout{dir}.readMarker()
		if err != nil || !m.Ephemeral || m.Owner.alive() {
			continue // being made, or in use
		}
		errs = append(errs, Down(ctx, dir))
	}
	dir, err := os.MkdirTemp(base, "")
	return dir, errors.Join(append(errs, err)...)
}
