// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// defaultSysfs is where sysfs is mounted.
	defaultSysfs = "/sys"
	// sysfsTimeout is how long one access may take.
	sysfsTimeout = 2 * time.Second
	// maxAccesses is how many accesses may be under way. So many at once are not work but reads that hang.
	maxAccesses = 64
)

// ErrAbsent says that a device has no such attribute: it does not exist, the driver does not support it in
// this mode, or it is empty. Any other error of a read means that the answer is unknown.
var ErrAbsent = errors.New("no such attribute")

// ErrTimeout says that the driver behind an attribute did not answer in time.
var ErrTimeout = errors.New("no answer from the driver in time")

// Sysfs reads device attributes below a root. A driver in a bad state can make a read hang for ever, which
// nothing can interrupt, so each is done aside and given up after a while. The zero value reads /sys. Do not
// copy one after use.
type Sysfs struct {
	// Root is where sysfs is, or a copy of it for tests and simulated cards. Default "/sys".
	Root string
	// Timeout is for one access. Default 2 s.
	Timeout time.Duration

	accesses atomic.Int32
}

// IsReal tells whether the root is the machine's own sysfs.
func (s *Sysfs) IsReal() bool { return s.Root == "" || filepath.Clean(s.Root) == defaultSysfs }

// Path joins path elements below the root.
func (s *Sysfs) Path(elements ...string) string {
	root := s.Root
	if root == "" {
		root = defaultSysfs
	}
	return filepath.Join(append([]string{root}, elements...)...)
}

// ReadAttr reads an attribute, without the white space around it. The error is ErrAbsent where the device has
// none or an empty one.
func (s *Sysfs) ReadAttr(ctx context.Context, elements ...string) (string, error) {
	path := s.Path(elements...)
	return Access(ctx, s, path, func() (string, error) {
		data, err := os.ReadFile(path)
		if err != nil {
			return "", err
		}
		value := strings.TrimSpace(string(data))
		if value == "" {
			return "", ErrAbsent
		}
		return value, nil
	})
}

// Resolve follows a path through all its symbolic links and returns it relative to the root, such as
// "devices/pci0000:00/0000:03:00.0".
func (s *Sysfs) Resolve(ctx context.Context, elements ...string) (string, error) {
	path := s.Path(elements...)
	return Access(ctx, s, path, func() (string, error) {
		root, err := filepath.EvalSymlinks(s.Path())
		if err != nil {
			return "", err
		}
		resolved, err := filepath.EvalSymlinks(path)
		if err != nil {
			return "", err
		}
		return filepath.Rel(root, resolved)
	})
}

// List lists the names in a directory, sorted.
func (s *Sysfs) List(ctx context.Context, elements ...string) ([]string, error) {
	path := s.Path(elements...)
	return Access(ctx, s, path, func() ([]string, error) {
		entries, err := os.ReadDir(path)
		names := make([]string, 0, len(entries))
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names, err
	})
}

// Access runs one access to s and returns what it returns, or ErrTimeout, or the error of ctx. One that hangs
// is left behind, hanging; when too many do, further ones fail at once with ErrTimeout. Errors that mean "this
// device has none" become ErrAbsent; what names the access in errors.
func Access[T any](ctx context.Context, s *Sysfs, what string, access func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	var none T
	if s.accesses.Add(1) > maxAccesses {
		s.accesses.Add(-1)
		return none, fmt.Errorf("read %s: too many earlier reads hang: %w", what, ErrTimeout)
	}
	done := make(chan result, 1)
	go func() {
		defer s.accesses.Add(-1)
		value, err := access()
		done <- result{value, err}
	}()
	timeout := s.Timeout
	if timeout <= 0 {
		timeout = sysfsTimeout
	}
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case r := <-done:
		if r.err == nil {
			return r.value, nil
		}
		if absent(r.err) {
			r.err = ErrAbsent
		}
		return none, fmt.Errorf("read %s: %w", what, r.err)
	case <-timer.C:
		return none, fmt.Errorf("read %s: %w", what, ErrTimeout)
	case <-ctx.Done():
		return none, fmt.Errorf("read %s: %w", what, ctx.Err())
	}
}

// absent tells whether a read failed because there is nothing to read. Drivers without switchdev answer
// EOPNOTSUPP, those of ports that are being removed ENODEV, those of links that are down EINVAL.
func absent(err error) bool {
	for _, e := range []error{fs.ErrNotExist, unix.EOPNOTSUPP, unix.ENODEV, unix.EINVAL, unix.ENOTDIR} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
