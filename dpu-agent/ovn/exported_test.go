// SPDX-License-Identifier: Apache-2.0

package ovn

import "testing"

func TestIsLocalnetPort(t *testing.T) {
	for name, want := range map[string]bool{
		LocalnetPort("tenant-blue", "worker-a"): true,
		LocalnetPort("tenant-blue", "worker-b"): false,
		LocalnetPort("", "worker-a"):            false,
		"br-ex_worker-a":                        false,
		"uplink_worker-a":                       false,
		"":                                      false,
	} {
		if got := IsLocalnetPort(name, "worker-a"); got != want {
			t.Errorf("%q: %t, want %t", name, got, want)
		}
	}
}
