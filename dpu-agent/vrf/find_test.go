// SPDX-License-Identifier: Apache-2.0

package vrf

import (
	"runtime"
	"strings"
	"testing"

	"github.com/ovn-uplink/ovn-uplink/shared/kernel/kerneltest"
	"github.com/vishvananda/netns"
)

// TestFind: C2 and A19, an interface is found by whichever of its names, of any length.
func TestFind(t *testing.T) {
	ns := kerneltest.NewNamespace(t)
	long := "a-name-that-is-longer-than-one-of-a-link-" + strings.Repeat("x", 20)
	ns.IP("link add v0 type veth peer name v1", "link property add dev v0 altname short", "link property add dev v0 altname "+long)
	runtime.LockOSThread() // the thread ends with the test's goroutine
	if err := netns.Set(ns.Handle); err != nil {
		t.Fatal(err)
	}
	for iface, want := range map[string]string{"v0": "v0", "short": "v0", long: "v0", "v1": "v1", "none": "none", long + "y": long + "y"} {
		name, index, err := New(Config{Journal: t.TempDir()}).Find(iface)
		if exists := want == "v0" || want == "v1"; err != nil || name != want || (index != 0) != exists {
			t.Errorf("%s: %s %d, %v, want %s", iface, name, index, err, want)
		}
	}
}
