// SPDX-License-Identifier: Apache-2.0

package uplinkstate

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/ovn-uplink/ovn-uplink/shared/api/v1alpha1"
)

// foreignPrefix begins the field managers of OVN-Kubernetes' own implementation of this API:
// ovnkube-node-uplink-controller, its -dpu and -dpu-host forms, and the gateway controllers beside it.
const foreignPrefix = "ovnkube-node-uplink-"

// ForeignManager returns the field manager of another implementation that has written a state, or nothing.
func ForeignManager(state *v1alpha1.UplinkState) string {
	for _, entry := range state.ManagedFields {
		if strings.HasPrefix(entry.Manager, foreignPrefix) {
			return entry.Manager
		}
	}
	return ""
}

// Intruders remembers which states another implementation writes. Two implementations would undo each other's work
// for ever, so that a role does not start while there are any. It has to see states with their managed fields.
type Intruders struct {
	mu     sync.Mutex
	states map[string]string // name of the state to manager
}

// See looks at a state that is new or changed.
func (i *Intruders) See(state *v1alpha1.UplinkState) {
	manager := ForeignManager(state)
	i.mu.Lock()
	defer i.mu.Unlock()
	if manager == "" {
		delete(i.states, state.Name)
		return
	}
	if len(i.states) == 0 {
		slog.Error("another implementation of this API writes UplinkStates; waiting for it to go",
			"state", state.Name, "manager", manager, "remedy", "disable one of the two (OVN-Kubernetes: --enable-uplink=false) and delete its UplinkStates")
	}
	if i.states == nil {
		i.states = map[string]string{}
	}
	i.states[state.Name] = manager
}

// Forget drops a state that is gone.
func (i *Intruders) Forget(name string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.states, name)
}

// Ready is nil while no state is another implementation's.
func (i *Intruders) Ready() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.states) == 0 {
		return nil
	}
	first := slices.Min(slices.Collect(maps.Keys(i.states)))
	return fmt.Errorf("another implementation of this API writes UplinkStates (%s: field manager %s, %d in all): "+
		"disable one of the two (OVN-Kubernetes: --enable-uplink=false) and delete its UplinkStates", first, i.states[first], len(i.states))
}
