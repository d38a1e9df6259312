// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"slices"
	"sync"
	"time"

	"github.com/ovn-uplink/ovn-uplink/dpu-agent/bridge"
	"github.com/ovn-uplink/ovn-uplink/dpu-agent/ovn"
)

// calm is how often at most everything is looked at again because of events that may concern any Uplink. A node where
// pods come and go has many, and a pass over an Uplink with ten thousand services takes a while.
const calm = 100 * time.Millisecond

// nudge passes events on: the first at once, those that follow within the calm time as one.
type nudge struct {
	pass func()

	mu      sync.Mutex
	last    time.Time
	waiting bool
}

func (n *nudge) now() {
	n.mu.Lock()
	rest := calm - time.Since(n.last)
	if n.waiting || rest > 0 {
		if !n.waiting {
			n.waiting = true
			time.AfterFunc(rest, n.due)
		}
		n.mu.Unlock()
		return
	}
	n.last = time.Now()
	n.mu.Unlock()
	n.pass()
}

func (n *nudge) due() {
	n.mu.Lock()
	n.waiting, n.last = false, time.Now()
	n.mu.Unlock()
	n.pass()
}

// outlook remembers what of Open vSwitch matters to gateways, so that the coming and going of pods does not.
type outlook struct {
	ovs  *bridge.Monitor
	pass func()

	mu   sync.Mutex
	last []string
}

func (o *outlook) changed() {
	seen := []string{"unknown"}
	if view, known := o.ovs.Latest(); known {
		seen = matters(view)
	}
	o.mu.Lock()
	same := slices.Equal(seen, o.last)
	o.last = seen
	o.mu.Unlock()
	if !same {
		o.pass()
	}
}

// matters are the facts of a view that gateways depend on, as text.
func matters(view *bridge.View) []string {
	var facts []string
	for key, value := range view.ExternalIDs {
		facts = append(facts, "external_ids:"+key+"="+value)
	}
	integration := view.IntegrationBridge()
	for i := range view.Bridges {
		b := &view.Bridges[i]
		if b.Name != integration {
			facts = append(facts, b.Text())
			continue
		}
		facts = append(facts, "bridge "+b.Name)
		for key := range b.ExternalIDs {
			if ovn.IsOwnZone(key) {
				facts = append(facts, key)
			}
		}
		for j := range b.Ports {
			if p := &b.Ports[j]; len(p.Interfaces) == 1 && p.Interfaces[0].Options["peer"] != "" {
				facts = append(facts, "port "+p.Name)
			}
		}
	}
	slices.Sort(facts)
	return facts
}
