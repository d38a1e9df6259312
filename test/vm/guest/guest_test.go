// SPDX-License-Identifier: Apache-2.0

// Package guest holds the tests of the virtual machine that run inside it.
package guest

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/ovn-uplink/ovn-uplink/shared/kernel/kerneltest"
	"golang.org/x/sys/unix"
)

// TestMachineIsSafe: what the guest sees of the machine it can read and not write, but for one directory.
func TestMachineIsSafe(t *testing.T) {
	kerneltest.NeedGuest(t)
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"/usr", "/usr/bin", "/tests", here} {
		err := os.WriteFile(filepath.Join(dir, "written-by-guest"), nil, 0o644)
		if !errors.Is(err, unix.EROFS) {
			t.Errorf("write in %s: %v, want a read-only file system", dir, err)
		}
	}
	for _, dir := range []string{"/root", "/home", "/var/cache", "/etc/shadow", "/etc/ssl"} {
		if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s of the machine is in the guest: %v", dir, err)
		}
	}
	if err := os.WriteFile("/out/written-by-guest", nil, 0o644); err != nil {
		t.Error(err)
	}
}

// TestKernelHas: what the tests of other packages need.
func TestKernelHas(t *testing.T) {
	kerneltest.NeedGuest(t)
	for _, module := range []string{"vrf", "openvswitch", "netdevsim", "geneve", "igb"} {
		if _, err := os.Stat("/sys/module/" + module); err != nil {
			t.Errorf("module %s: %v", module, err)
		}
	}
}
