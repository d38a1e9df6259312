// SPDX-License-Identifier: Apache-2.0

package packages

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// A base is a Debian file tree that scratch roots are laid over. It is made once and cached.
type base struct {
	arch    string
	include string
}

var (
	// amd64Base is a machine that boots, with what the packages work with.
	amd64Base = base{"amd64", "systemd,systemd-sysv,openvswitch-switch,containerd,openssl,iproute2,curl,debconf"}
	// arm64Base is as small as a system can be: everything in it runs by emulation.
	arm64Base = base{"arm64", "systemd,init-system-helpers"}
)

const (
	suite         = "bookworm"
	defaultMirror = "http://deb.debian.org/debian"
	// makeBase bounds the making of a base, which runs a thousand emulated programs for arm64.
	makeBase = 15 * time.Minute
)

// path returns the tree, made if it is not there yet.
func (b base) path(t *testing.T) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	must(t, err)
	cache = filepath.Join(cache, "ovn-uplink", "roots")
	must(t, os.MkdirAll(cache, 0o755))
	sum := sha256.Sum256([]byte(b.include))
	dir := filepath.Join(cache, fmt.Sprintf("%s-%s-%s", suite, b.arch, hex.EncodeToString(sum[:4])))

	// One process makes it, the others wait for that.
	lock, err := os.OpenFile(dir+".lock", os.O_CREATE|os.O_RDWR, 0o644)
	must(t, err)
	defer func() { _ = lock.Close() }()
	must(t, flock(lock))
	if _, err := os.Stat(dir); err == nil {
		return dir
	}
	t.Logf("making a Debian %s for %s, once; usually 1-2 minutes, 4 by emulation", suite, b.arch)
	partial := dir + ".partial"
	must(t, os.RemoveAll(partial))
	mirror := os.Getenv("DEBIAN_MIRROR")
	if mirror == "" {
		mirror = defaultMirror
	}
	ctx, cancel := context.WithTimeout(t.Context(), makeBase)
	defer cancel()
	cmd := exec.CommandContext(ctx, "debootstrap", "--arch="+b.arch, "--variant=minbase", "--include="+b.include, suite, partial, mirror)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("debootstrap %s: %v: %s", b.arch, err, tail(string(out)))
	}
	must(t, os.RemoveAll(filepath.Join(partial, "var/cache/apt/archives")))
	must(t, os.RemoveAll(filepath.Join(partial, "etc/apt/sources.list")))
	must(t, os.Rename(partial, dir))
	return dir
}

// flock waits for the lock; the kernel gives it back when the file is closed.
func flock(f *os.File) error {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

const binfmt = "/proc/sys/fs/binfmt_misc"

// emulation is what the tests that need it have in common: the first sets it up, the last takes it back.
var emulation struct {
	sync.Mutex
	users int
	undo  []func() error // in the order of doing
}

// emulate makes the kernel run arm64 programs by qemu for as long as the test runs, unless it does already.
func emulate(t *testing.T) {
	t.Helper()
	emulation.Lock()
	defer emulation.Unlock()
	emulation.users++
	t.Cleanup(func() {
		emulation.Lock()
		defer emulation.Unlock()
		if emulation.users--; emulation.users > 0 {
			return
		}
		for _, undo := range slices.Backward(emulation.undo) {
			if err := undo(); err != nil {
				t.Errorf("take the emulation of arm64 back: %v", err)
			}
		}
		emulation.undo = nil
	})
	if emulation.users > 1 {
		return
	}
	if _, err := os.Stat(filepath.Join(binfmt, "register")); err != nil {
		must(t, syscall.Mount("binfmt_misc", binfmt, "binfmt_misc", 0, ""))
		emulation.undo = append(emulation.undo, func() error { return syscall.Unmount(binfmt, 0) })
	}
	entries, err := filepath.Glob(filepath.Join(binfmt, "*aarch64*"))
	must(t, err)
	if len(entries) > 0 {
		return
	}
	const name = "ovn-uplink-aarch64"
	// ELF, 64 bits, little endian, executable, machine 183; F: the interpreter is opened now and works in every root.
	// See Documentation/admin-guide/binfmt-misc.rst.
	rule := ":" + name + `:M::\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00:` +
		`\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff:/usr/bin/qemu-aarch64-static:F`
	must(t, os.WriteFile(filepath.Join(binfmt, "register"), []byte(rule), 0o200))
	emulation.undo = append(emulation.undo, func() error { return os.WriteFile(filepath.Join(binfmt, name), []byte("-1"), 0o200) })
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// tail is the end of what a program printed.
func tail(out string) string {
	lines := strings.Split(strings.TrimSpace(out), "\n")
	return strings.Join(lines[max(0, len(lines)-15):], "\n")
}
