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
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// defaultSysfs is where sysfs is mounted.
	defaultSysfs = "/sys"
	// netDevices is a directory that every sysfs has.
	netDevices = "class/net"
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
// nothing can interrupt, so each is done aside and given up after a while; what hangs is not begun again before it
// returned. The zero value reads /sys. Do not copy one after use.
type Sysfs struct {
	// Root is where sysfs is, or a copy of it for tests and simulated cards. Default "/sys".
	Root string
	// Timeout is for one access. Default 2 s.
	Timeout time.Duration

	mu sync.Mutex
	// accesses are under way, by what they access.
	accesses map[string]accesses
	// total is how many these are.
	total int
}

// accesses are a number of accesses under way, and when the first of them began.
type accesses struct {
	number int
	since  time.Time
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
// is left behind, hanging; while it does, or when too many do, further ones fail at once with ErrTimeout. Errors
// that mean "this device has none" become ErrAbsent, if there is a sysfs at all; what names the access, in errors
// and to tell it from others.
func Access[T any](ctx context.Context, s *Sysfs, what string, access func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	var none T
	if err := s.begin(what); err != nil {
		return none, fmt.Errorf("read %s: %w", what, err)
	}
	done := make(chan result, 1)
	go func() {
		defer s.end(what)
		value, err := access()
		if absent(err) {
			err = s.absence()
		}
		done <- result{value, err}
	}()
	timer := time.NewTimer(s.timeout())
	defer timer.Stop()
	select {
	case r := <-done:
		if r.err == nil {
			return r.value, nil
		}
		return none, fmt.Errorf("read %s: %w", what, r.err)
	case <-timer.C:
		return none, fmt.Errorf("read %s: %w", what, ErrTimeout)
	case <-ctx.Done():
		return none, fmt.Errorf("read %s: %w", what, ctx.Err())
	}
}

func (s *Sysfs) timeout() time.Duration {
	if s.Timeout > 0 {
		return s.Timeout
	}
	return sysfsTimeout
}

// begin notes an access, unless an earlier one of the same hangs, or too many others do.
func (s *Sysfs) begin(what string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	a, ok := s.accesses[what]
	switch {
	case !ok:
		a.since = now
	case now.Sub(a.since) >= s.timeout():
		return fmt.Errorf("an earlier read still hangs: %w", ErrTimeout)
	}
	if s.total >= maxAccesses {
		return fmt.Errorf("too many earlier reads hang: %w", ErrTimeout)
	}
	if s.accesses == nil {
		s.accesses = map[string]accesses{}
	}
	a.number++
	s.accesses[what] = a
	s.total++
	return nil
}

func (s *Sysfs) end(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.total--
	a := s.accesses[what]
	if a.number--; a.number == 0 {
		delete(s.accesses, what)
		return
	}
	s.accesses[what] = a
}

// Check says what is wrong with a root that an administrator gave; nil for one that is a sysfs.
func (s *Sysfs) Check() error {
	if err := s.absence(); !errors.Is(err, ErrAbsent) {
		return err
	}
	return nil
}

// absence is ErrAbsent, if what is not there is missing from a sysfs. Where none is mounted, nothing is known.
func (s *Sysfs) absence() error {
	if _, err := os.Stat(s.Path(netDevices)); err != nil {
		return fmt.Errorf("there is no sysfs at %s: %w", s.Path(), err)
	}
	return ErrAbsent
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
