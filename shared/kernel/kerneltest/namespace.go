// SPDX-License-Identifier: Apache-2.0

// Package kerneltest gives tests network namespaces of their own. It needs root and ip(8).
package kerneltest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netns"
)

// commandTimeout is for one command of ip(8).
const commandTimeout = 10 * time.Second

// Namespace is a network namespace without a name. It ends, with all that is in it, when the test does.
type Namespace struct {
	Handle netns.NsHandle
	t      testing.TB
}

// NewNamespace makes a namespace whose loopback is up. It skips the test where that is not permitted.
func NewNamespace(t testing.TB) *Namespace {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to make a network namespace")
	}
	n := &Namespace{t: t}
	err := onOwnThread(func() (err error) {
		n.Handle, err = netns.New()
		return err
	})
	if err != nil {
		t.Fatalf("make a network namespace: %v", err)
	}
	t.Cleanup(func() { _ = n.Handle.Close() })
	n.IP("link set lo up")
	return n
}

// IP runs commands of ip(8) in the namespace, each without the leading "ip", and fails the test if one fails.
func (n *Namespace) IP(commands ...string) {
	n.t.Helper()
	for _, c := range commands {
		if err := n.TryIP(c); err != nil {
			n.t.Fatal(err)
		}
	}
}

// TryIP runs one command of ip(8), for what a kernel may not know.
func (n *Namespace) TryIP(command string) error { return n.run(nil, strings.Fields(command)...) }

// IPBatch runs commands of ip(8) in one process, as fast as the kernel takes them.
func (n *Namespace) IPBatch(commands ...string) {
	n.t.Helper()
	if err := n.run(commands, "-batch", "-"); err != nil {
		n.t.Fatal(err)
	}
}

func (n *Namespace) run(stdin []string, args ...string) error {
	return onOwnThread(func() error {
		if err := netns.Set(n.Handle); err != nil {
			return fmt.Errorf("enter the namespace: %w", err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), commandTimeout)
		defer cancel()
		cmd := exec.CommandContext(ctx, "ip", args...)
		cmd.Stdin = strings.NewReader(strings.Join(stdin, "\n"))
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, out)
		}
		return nil
	})
}

// onOwnThread runs f on a thread that ends after it, so that the namespace it may be left in goes with it.
func onOwnThread(f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		done <- f()
	}()
	return <-done
}
