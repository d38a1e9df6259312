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

func TestDownDirectories(t *testing.T) {
	tests := []struct {
		name    string
		prepare func(t *testing.T, dir string)
		want    error
		stays   bool
	}{
		{name: "absent", prepare: func(*testing.T, string) {}},
		{name: "empty", prepare: func(t *testing.T, dir string) { mustMkdir(t, dir) }},
		{name: "a lab whose making was cut off", prepare: func(t *testing.T, dir string) {
			if err := writeJSON(layout{dir}.marker(), marker{}); err != nil {
				t.Fatal(err)
			}
		}},
		{name: "somebody's files", want: ErrNotALab, stays: true, prepare: func(t *testing.T, dir string) {
			mustMkdir(t, filepath.Join(dir, "precious"))
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "lab")
			tt.prepare(t, dir)
			if err := Down(t.Context(), dir); !errors.Is(err, tt.want) {
				t.Errorf("Down: %v, want %v", err, tt.want)
			}
			if _, err := os.Stat(dir); (err == nil) != tt.stays {
				t.Errorf("directory afterwards: %v, want it to stay: %t", err, tt.stays)
			}
		})
	}
}

func mustMkdir(t *testing.T, dir string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
}

func TestPrefixDiffers(t *testing.T) {
	a, b := layout{"/tmp/a"}.prefix(), layout{"/tmp/b"}.prefix()
	if a == b {
		t.Errorf("two directories share the namespace prefix %s", a)
	}
	if got := (layout{"/tmp/a"}).prefix(); got != a {
		t.Errorf("prefix changed from %s to %s", a, got)
	}
}

func TestLockWaits(t *testing.T) {
	dir := t.TempDir()
	first, err := lockDir(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	busy := 0
	if _, err := lockPath(short, dir, func() { busy++ }); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("second lock: %v, want it to wait", err)
	}
	if busy != 1 {
		t.Errorf("told %d times that it is busy, want once", busy)
	}
	first.release()
	second, err := lockDir(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	second.release()
}

// A directory that its last user removes while somebody waits for its lock is
// made again.
func TestLockOfRemovedDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "lab")
	first, err := lockDir(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan error, 1)
	go func() {
		second, err := lockDir(t.Context(), dir)
		if err == nil {
			second.release()
		}
		got <- err
	}()
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	first.release()
	if err := <-got; err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); err != nil {
		t.Error(err)
	}
}

func TestEventually(t *testing.T) {
	errTwice := errors.New("called twice or less")
	calls := 0
	err := Eventually(t.Context(), time.Minute, func(context.Context) error {
		if calls++; calls <= 2 {
			return errTwice
		}
		return nil
	})
	if err != nil || calls != 3 {
		t.Errorf("got %v after %d calls", err, calls)
	}
	err = Eventually(t.Context(), time.Millisecond, func(context.Context) error { return errTwice })
	if !errors.Is(err, errTwice) {
		t.Errorf("got %v, want the last error", err)
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	err = Eventually(canceled, time.Minute, func(context.Context) error { return errTwice })
	if !errors.Is(err, errTwice) || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the last error and the cancellation", err)
	}
}
