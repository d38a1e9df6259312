// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"context"
	"errors"
	"os"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// newSysfs makes a sysfs without interfaces.
func newSysfs(t *testing.T) *Sysfs {
	s := &Sysfs{Root: t.TempDir()}
	if err := os.MkdirAll(s.Path(netDevices), 0o700); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestReadAttr(t *testing.T) {
	s := newSysfs(t)
	for name, content := range map[string]string{"port": "p0\n", "spaces": "  \n", "empty": ""} {
		if err := os.WriteFile(s.Path(name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tests := map[string]struct {
		path []string
		want string
		err  error
	}{
		"A13: a newline at the end": {path: []string{"port"}, want: "p0"},
		"A13: empty":                {path: []string{"empty"}, err: ErrAbsent},
		"A13: only white space":     {path: []string{"spaces"}, err: ErrAbsent},
		"not there":                 {path: []string{"class", "net", "none", "phys_port_name"}, err: ErrAbsent},
		"below a file":              {path: []string{"port", "device"}, err: ErrAbsent},
		"a directory":               {path: []string{"."}, err: unix.EISDIR},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := s.ReadAttr(t.Context(), test.path...)
			if got != test.want || !errors.Is(err, test.err) {
				t.Errorf("got %q, %v; want %q, %v", got, err, test.want, test.err)
			}
		})
	}
}

func TestAccessErrors(t *testing.T) {
	s := newSysfs(t)
	for _, test := range []struct {
		err    error
		absent bool
	}{
		{unix.EOPNOTSUPP, true}, {unix.ENOENT, true}, {unix.ENODEV, true}, {unix.EINVAL, true},
		{unix.EBUSY, false}, {unix.EIO, false}, {unix.EACCES, false},
	} {
		_, err := Access(t.Context(), s, "phys_port_name", func() (string, error) {
			return "half", &os.PathError{Op: "read", Path: "phys_port_name", Err: test.err}
		})
		if errors.Is(err, ErrAbsent) != test.absent || err == nil {
			t.Errorf("%v became %v, absent should be %t", test.err, err, test.absent)
		}
	}
}

// TestNoSysfs: where no sysfs is mounted, or none any more, nothing is known to be absent.
func TestNoSysfs(t *testing.T) {
	s := newSysfs(t)
	if _, err := s.ReadAttr(t.Context(), netDevices, "p0", "phys_port_name"); !errors.Is(err, ErrAbsent) {
		t.Errorf("of a sysfs: %v", err)
	}
	if err := os.RemoveAll(s.Path("class")); err != nil {
		t.Fatal(err)
	}
	_, read := s.ReadAttr(t.Context(), netDevices, "p0", "phys_port_name")
	_, resolve := s.Resolve(t.Context(), netDevices, "p0", "device")
	_, list := s.List(t.Context(), netDevices)
	for _, err := range []error{read, resolve, list} {
		if err == nil || errors.Is(err, ErrAbsent) {
			t.Errorf("of an empty directory: %v", err)
		}
	}
}

// TestReadThatHangs is A17: a read that never returns. A FIFO that nobody writes to is one.
func TestReadThatHangs(t *testing.T) {
	s := newSysfs(t)
	s.Timeout = 10 * time.Millisecond
	fifo := s.Path("hangs")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.ReadAttr(ctx, "hangs"); err == nil || errors.Is(err, ErrAbsent) {
		t.Errorf("with a context that ended: %v", err)
	}
	time.Sleep(s.Timeout)
	for range maxAccesses {
		if _, err := s.ReadAttr(t.Context(), "hangs"); !errors.Is(err, ErrTimeout) {
			t.Fatalf("got %v", err)
		}
	}
	if n := hanging(s); n != 1 {
		t.Errorf("%d reads of one attribute hang, want one", n)
	}
	for i := range maxAccesses + 5 {
		// The same attribute by other names.
		if _, err := Access(t.Context(), s, strconv.Itoa(i), func() ([]byte, error) { return os.ReadFile(fifo) }); !errors.Is(err, ErrTimeout) {
			t.Fatalf("got %v", err)
		}
	}
	if n := hanging(s); n != maxAccesses {
		t.Errorf("%d reads hang, want at most %d", n, maxAccesses)
	}
	// A writer lets all of them go.
	w, err := os.OpenFile(fifo, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(5 * time.Second); hanging(s) > 0; {
		if time.Now().After(deadline) {
			t.Fatal("reads still hang though the file has a writer")
		}
		_, _ = w.WriteString("x")
		_ = w.Close()
		if w, err = os.OpenFile(fifo, os.O_RDWR, 0); err != nil {
			t.Fatal(err)
		}
	}
	_ = w.Close()
	if len(s.accesses) != 0 {
		t.Errorf("accesses that ended are still noted: %v", s.accesses)
	}
}

func hanging(s *Sysfs) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.total
}

func TestResolveAndList(t *testing.T) {
	s := &Sysfs{Root: t.TempDir()}
	if err := os.MkdirAll(s.Path("devices/pci0000:00/0000:03:00.0/net/p0"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(s.Path("class/net"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../../devices/pci0000:00/0000:03:00.0/net/p0", s.Path("class/net/p0")); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Resolve(t.Context(), "class/net", "p0"); err != nil || got != "devices/pci0000:00/0000:03:00.0/net/p0" {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := s.Resolve(t.Context(), "class/net", "p0", "device"); !errors.Is(err, ErrAbsent) {
		t.Errorf("got %v", err)
	}
	if got, err := s.List(t.Context(), "devices/pci0000:00/0000:03:00.0/net"); err != nil || len(got) != 1 || got[0] != "p0" {
		t.Errorf("got %q, %v", got, err)
	}
	if zero := (&Sysfs{}); !zero.IsReal() || zero.Path("class") != "/sys/class" || s.IsReal() {
		t.Error("the root is not /sys by default, or a copy passes for it")
	}
}
