// SPDX-License-Identifier: Apache-2.0

package lab

import "testing"

// Version is an OVN, with its Open vSwitch, that tests run on.
type Version struct {
	// Name is "installed" or "newer".
	Name string
	// Build is for Options.OVS, nil for the installed one.
	Build *OVSBuild
	// TransitRouters says whether Layer2 networks may have several zones.
	TransitRouters bool
}

// OVNVersions returns the versions that everything about OVN is tested on: the
// distribution's and a newer one, which is fetched if needed. The test fails
// without it; it is skipped as by NeedRoot.
func OVNVersions(t testing.TB) []Version {
	t.Helper()
	NeedRoot(t)
	newer, err := NewerOVN(t.Context(), t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	return []Version{
		{Name: "installed"},
		{Name: "newer", Build: newer, TransitRouters: true},
	}
}
