// SPDX-License-Identifier: Apache-2.0

package lab

import "strings"

// ZoneStatus is the OVN of one node.
type ZoneStatus struct {
	Node string `json:"node"`
	// Northbound is the endpoint of the northbound database.
	Northbound string `json:"northbound"`
	// Alive says that all of its processes are.
	Alive bool `json:"alive"`
}

// zoneProcesses are those of a zone, the northbound database first.
var zoneProcesses = []string{"ovnnb_db", "ovnsb_db", "ovn-northd", "ovn-controller"}

// zones finds the zones among processes that are sorted by name.
func zones(state layout, processes []ProcessStatus) []ZoneStatus {
	alive := map[string]bool{}
	for _, p := range processes {
		alive[p.Name] = p.Alive
	}
	var found []ZoneStatus
	for _, p := range processes {
		node, isZone := strings.CutSuffix(p.Name, "."+zoneProcesses[0])
		if !isZone {
			continue
		}
		o := &OVS{node: &Node{Name: node, lab: &Lab{state: state}}}
		z := Zone{Node: &Node{Name: node, OVS: o}}
		status := ZoneStatus{Node: node, Northbound: z.NB(), Alive: true}
		for _, name := range zoneProcesses {
			status.Alive = status.Alive && alive[node+"."+name]
		}
		found = append(found, status)
	}
	return found
}
