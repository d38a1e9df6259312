// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// lock is an advisory lock on a file or directory. The kernel drops it when
// the process ends, however that happens.
type lock struct{ file *os.File }

// lockPath takes the lock on path, which must exist, waiting until ctx ends.
// busy, if not nil, is called once when somebody else holds it.
func lockPath(ctx context.Context, path string, busy func()) (*lock, error) {
	for {
		f, err := os.Open(path)
		if err != nil {
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil && sameFile(f, path) {
			return &lock{f}, nil
		}
		// Held by another, or removed and made anew while we opened it.
		_ = f.Close()
		if err != nil && !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		if busy != nil {
			busy()
			busy = nil
		}
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return nil, fmt.Errorf("lock %s, which another process holds: %w", path, err)
		}
	}
}

// lockDir makes the directory if needed and locks it.
func lockDir(ctx context.Context, dir string) (*lock, error) {
	for {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, fmt.Errorf("make lab directory: %w", err)
		}
		l, err := lockPath(ctx, dir, nil)
		if errors.Is(err, os.ErrNotExist) {
			continue // its last user removed it in between
		}
		return l, err
	}
}

func (l *lock) release() { _ = l.file.Close() }

func sameFile(f *os.File, path string) bool {
	a, err := f.Stat()
	if err != nil {
		return false
	}
	b, err := os.Stat(path)
	return err == nil && os.SameFile(a, b)
}

// pause waits for d or until ctx ends, whose error it then returns.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
