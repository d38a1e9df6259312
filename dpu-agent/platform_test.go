// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"testing"

	"github.com/jaypipes/ghw/pkg/product"
	"github.com/jaypipes/ghw/pkg/util"
	"github.com/ovn-uplink/ovn-uplink/shared/agent"
)

func TestRecognise(t *testing.T) {
	for name, tc := range map[string]struct {
		arch, product, family string
		role                  string // empty: refused
	}{
		"BlueField-3":              {"arm64", "BlueField-3 DPU", "BlueField", roleDPU},
		"BlueField by its family":  {"arm64", "P4-something", "BlueField", roleDPU},
		"another Arm server":       {"arm64", "Altra Max", "", roleAll},
		"Arm that says nothing":    {"arm64", "", "", ""},
		"Arm with unknown product": {"arm64", util.UNKNOWN, util.UNKNOWN, ""},
		"x86 server":               {"amd64", "PowerEdge R750", "PowerEdge", roleAll},
		"x86 that says nothing":    {"amd64", "", "", roleAll},
		"x86 named like a card":    {"amd64", "Chassis for BlueField", "", roleAll},
	} {
		t.Run(name, func(t *testing.T) {
			role, _, err := recognise(tc.arch, &product.Info{Name: tc.product, Family: tc.family})
			if role != tc.role || (err != nil) != (tc.role == "") {
				t.Errorf("got %q, %v", role, err)
			}
			if err != nil && !errors.As(err, new(*agent.UsageError)) {
				t.Errorf("%v is no mistake of the caller", err)
			}
		})
	}
}

func TestChooseRole(t *testing.T) {
	for _, role := range []string{roleDPU, roleAll} {
		if got, _, err := chooseRole(role); got != role || err != nil {
			t.Errorf("%s: got %q, %v", role, got, err)
		}
	}
	if _, _, err := chooseRole("card"); !errors.As(err, new(*agent.UsageError)) {
		t.Errorf("got %v", err)
	}
}
