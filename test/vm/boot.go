// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// memory of the guest in MiB, and of one with a lab. Its file systems in memory take of it too.
const memory, labMemory = 1024, 4096

// shares are the directories of the machine that the guest sees.
type shares struct {
	// tests holds the program "run"; repository is at the same path in the guest. Both are read-only there.
	tests, repository string
	// cache is the labs' cache, read-only too, empty for a guest without a lab.
	cache string
	// out is the one that the guest may write to.
	out string
	// memory is the guest's, in MiB.
	memory int
}

// boot runs a guest until its program "run" has ended, and returns the program's exit code and what was on the
// console. It ends the guest when ctx ends.
func boot(ctx context.Context, i image, dir string, s shares) (code int, console string, err error) {
	first, err := initramfs(ctx, i, dir, s.repository)
	if err != nil {
		return 0, "", err
	}
	const qemu = "qemu-system-x86_64"
	args := []string{
		"-n", "10", qemu, "-M", "q35", "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2", "-m", strconv.Itoa(s.memory),
		"-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-serial", "stdio",
		"-device", "isa-debug-exit,iobase=0xf4,iosize=0x04", "-kernel", i.kernel(), "-initrd", first,
		"-append", "console=ttyS0 quiet panic=-1 nokaslr mitigations=off random.trust_cpu=on",
	}
	share := func(tag, path, options string) {
		args = append(args, "-fsdev", "local,security_model=none,multidevs=remap,id="+tag+",path="+path+options,
			"-device", "virtio-9p-pci,fsdev="+tag+",mount_tag="+tag)
	}
	for tag, path := range map[string]string{"usr": "/usr", "tests": s.tests, "repository": s.repository} {
		share(tag, path, ",readonly=on")
	}
	share("out", s.out, "")
	if s.cache != "" {
		share("cache", s.cache, ",readonly=on")
	}

	cmd := exec.CommandContext(ctx, "nice", args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	// Tests that are killed leave no guest behind.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.WaitDelay = 5 * time.Second
	err = cmd.Run()
	console = tail(strings.ReplaceAll(out.String(), "\r", ""), 8000)
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return 0, console, fmt.Errorf("the guest did not end in time: %w", ctx.Err())
	case errors.As(err, &exit) && exit.ExitCode()%2 == 1 && strings.Contains(console, "guest: exit code"):
		return exit.ExitCode() / 2, console, nil
	case err != nil:
		return 0, console, fmt.Errorf("run %s: %w", qemu, err)
	}
	return 0, console, errors.New("the guest ended without an exit code")
}

// tail returns at most the last n bytes of s, from the start of a line.
func tail(s string, n int) string {
	if len(s) <= n {
		return s
	}
	_, s, _ = strings.Cut(s[len(s)-n:], "\n")
	return s
}

// findRepository is the directory with go.mod at or above the current one.
func findRepository() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; dir != "/"; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
	}
	return "", errors.New("find the repository: no go.mod in the current directory or above")
}
