// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/sys/unix"
)

// Do calls f on a thread inside the node's network namespace, and returns its
// error. Sockets that f makes stay in that namespace for ever, also when they
// are used after Do has returned: a listener, a connection, a netlink handle.
// Goroutines that f starts are outside again. /sys is the caller's.
func (n *Node) Do(f func() error) error {
	done := make(chan error, 1)
	go func() {
		// Never unlocked: the thread ends with the goroutine instead of
		// going back to others while it is in the wrong namespace.
		runtime.LockOSThread()
		ns, err := os.Open(filepath.Join(netnsDir, n.NetNS))
		if err != nil {
			done <- fmt.Errorf("enter node %s: %w", n.Name, err)
			return
		}
		defer func() { _ = ns.Close() }()
		if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
			done <- fmt.Errorf("enter node %s: %w", n.Name, err)
			return
		}
		done <- f()
	}()
	return <-done
}
