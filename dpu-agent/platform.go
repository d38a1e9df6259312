// SPDX-License-Identifier: Apache-2.0

package main

import (
	"runtime"
	"strings"

	"github.com/jaypipes/ghw"
	"github.com/jaypipes/ghw/pkg/product"
	"github.com/jaypipes/ghw/pkg/util"
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
		info = &product.Info{}
	}
	return recognise(runtime.GOARCH, info)
}

// recognise tells what a machine is. On Arm it must be sure: a card that took itself for a regular node would
// publish its own interfaces as those of its host.
func recognise(arch string, info *product.Info) (role, why string, err error) {
	switch {
	case isBlueField(arch, info):
		return roleDPU, "this machine is a " + info.Name, nil
	case arch == "arm64" && (info.Name == "" || info.Name == util.UNKNOWN):
		return "", "", agent.Usagef("--role auto: this machine does not say what it is (no DMI product name); give --role dpu on a card, --role all on a regular node")
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
