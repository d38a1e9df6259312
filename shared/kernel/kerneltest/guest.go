// SPDX-License-Identifier: Apache-2.0

package kerneltest

import (
	"os"
	"testing"
)

// GuestVariable is set in the environment of tests that test/vm runs in a virtual machine.
const GuestVariable = "OVN_UPLINK_GUEST"

// NeedGuest skips a test that changes the network of the whole machine, unless that is the tests' virtual machine.
func NeedGuest(t testing.TB) {
	t.Helper()
	if !InGuest() {
		t.Skip("changes the machine that it runs on, test/vm runs it in a virtual one")
	}
}

// InGuest tells whether this is the tests' virtual machine.
func InGuest() bool { return os.Getenv(GuestVariable) != "" }
