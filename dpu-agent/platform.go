// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"runtime"
	"strings"

	"github.com/jaypipes/ghw"
	"github.com/jaypipes/ghw/pkg/product"
	"github.com/ovn-uplink/ovn-uplink/shared/agent"
)

// The values of --role.
const (
	roleAuto = "auto"
	// roleDPU resolves for another machine, the host that this card is in.
	roleDPU = "dpu"
	// roleAll does the host's part too: Open vSwitch runs where the workload does.
	roleAll = "all"
)

// chooseRole turns "auto" into what this machine is, and refuses what is no role.
func chooseRole(role string) (chosen, why string, err error) {
	switch role {
	case roleDPU, roleAll:
		return role, "given with --role", nil
	case roleAuto:
	default:
		return "", "", agent.Usagef("--role %q: must be auto, dpu or all", role)
	}
	info, err := product.New(ghw.WithDisableWarnings())
	if err != nil {
		return roleAll, fmt.Sprintf("the product of this machine could not be read: %v", err), nil
	}
	if isBlueField(runtime.GOARCH, info) {
		return roleDPU, "this machine is a " + info.Name, nil
	}
	return roleAll, "this machine is no BlueField card", nil
}

// isBlueField tells a card's Arm system from everything else: an x86 host with a BlueField in a slot has the
// name in none of these fields.
func isBlueField(arch string, info *product.Info) bool {
	if arch != "arm64" {
		return false
	}
	for _, field := range []string{info.Name, info.Family} {
		if strings.Contains(strings.ToLower(field), "bluefield") {
			return true
		}
	}
	return false
}
