// SPDX-License-Identifier: Apache-2.0

package representor

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Without CAP_NET_ADMIN the buffer is as large as the system allows, not as small as it is by default.
func TestGrowBufferWithoutPrivilege(t *testing.T) {
	text, err := os.ReadFile("/proc/sys/net/core/rmem_max")
	if err != nil {
		t.Skip(err)
	}
	allowed, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	socket, err := nl.Subscribe(unix.NETLINK_GENERIC)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = socket.Close() }()
	grown := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends, with what it gave up
		if err := dropNetAdmin(); err != nil {
			grown <- err
			return
		}
		grown <- growBuffer(socket)
	}()
	if err := <-grown; err != nil {
		t.Fatal(err)
	}
	got, err := unix.GetsockoptInt(socket.GetFd(), unix.SOL_SOCKET, unix.SO_RCVBUF)
	if err != nil {
		t.Fatal(err)
	}
	// The kernel doubles what is asked for (socket(7)).
	if want := 2 * min(notifyBuffer, allowed); got != want {
		t.Errorf("the buffer has %d bytes, want %d", got, want)
	}
}

// dropNetAdmin takes CAP_NET_ADMIN from the calling thread.
func dropNetAdmin() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return err
	}
	data[0].Effective &^= 1 << unix.CAP_NET_ADMIN
	return unix.Capset(&header, &data[0])
}
