// SPDX-License-Identifier: Apache-2.0

// Package imports holds the import rule of the two binaries: the host agent knows nothing of Open vSwitch and
// OVN, shared code knows neither agent, and inside the dpu agent what observes or acts on one subsystem does
// not know the others.
package imports

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/ovn-uplink/ovn-uplink/"

// observers are the packages of dpu-agent that look after one subsystem each.
var observers = []string{"representor", "bridge", "ovn", "openflow", "service", "vrf", "routeimport"}

func TestImportRule(t *testing.T) {
	for pkg, deps := range packages(t) {
		for _, dep := range deps {
			if why := forbidden(pkg, dep); why != "" {
				t.Errorf("%s depends on %s: %s", pkg, dep, why)
			}
		}
	}
}

func TestRuleCatches(t *testing.T) {
	for _, bad := range [][2]string{
		{"host-agent", module + "dpu-agent/bridge"},
		{"host-agent/hostlink", "github.com/ovn-org/libovsdb/client"},
		{"host-agent", "k8s.io/client-go/kubernetes"},
		{"shared/kernel", module + "host-agent/hostlink"},
		{"dpu-agent/bridge", module + "dpu-agent/representor"},
		{"dpu-agent/bridge", module + "host-agent/hostlink"},
		{"dpu-agent", module + "host-agent/cluster"},
	} {
		if forbidden(bad[0], bad[1]) == "" {
			t.Errorf("the rule lets %s depend on %s", bad[0], bad[1])
		}
	}
}

// TestLibovsdbIsImportedInOnePlace keeps the OVSDB library replaceable by its successor.
func TestLibovsdbIsImportedInOnePlace(t *testing.T) {
	for _, line := range goList(t, "{{.ImportPath}} {{join .Imports \" \"}}") {
		fields := strings.Fields(line)
		pkg := strings.TrimPrefix(fields[0], module)
		for _, imported := range fields[1:] {
			if strings.Contains(imported, "/libovsdb/") && pkg != "dpu-agent/ovsdb" {
				t.Errorf("%s imports %s; only dpu-agent/ovsdb may", pkg, imported)
			}
		}
	}
}

func forbidden(pkg, dep string) string {
	own, isOwn := strings.CutPrefix(dep, module)
	top, rest, _ := strings.Cut(pkg, "/")
	switch top {
	case "shared":
		if isOwn && !strings.HasPrefix(own, "shared/") {
			return "shared code serves both agents and knows neither"
		}
	case "host-agent":
		if isOwn && strings.HasPrefix(own, "dpu-agent") {
			return "the agents meet only through UplinkState"
		}
		if strings.Contains(dep, "libovsdb") || strings.Contains(dep, "/ovn-kubernetes/") {
			return "the host agent knows nothing of Open vSwitch and OVN"
		}
		if dep == "k8s.io/client-go/kubernetes" || dep == "k8s.io/client-go/discovery" {
			return "it would link every API type into the light agent"
		}
	case "dpu-agent":
		if isOwn && strings.HasPrefix(own, "host-agent") && (rest != "" || own != "host-agent/hostlink") {
			return "only dpu-agent's main may import the host role, and nothing else of host-agent"
		}
		name, isDPU := strings.CutPrefix(own, "dpu-agent/")
		if isOwn && isDPU && name != rest && slices.Contains(observers, rest) && slices.Contains(observers, name) {
			return "packages that look after one subsystem do not know each other"
		}
	}
	return ""
}

// packages maps every package of the module, less its tests, to all that it depends on.
func packages(t *testing.T) map[string][]string {
	deps := map[string][]string{}
	for _, line := range goList(t, "{{.ImportPath}} {{join .Deps \" \"}}") {
		fields := strings.Fields(line)
		deps[strings.TrimPrefix(fields[0], module)] = fields[1:]
	}
	if len(deps) < 5 {
		t.Fatalf("go list found %d packages only", len(deps))
	}
	return deps
}

func goList(t *testing.T, format string) []string {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-f", format,
		module+"shared/...", module+"host-agent/...", module+"dpu-agent/...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}
