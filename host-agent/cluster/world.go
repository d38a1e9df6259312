// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"iter"
	"maps"
	"slices"
	"sync"

	ovnk "github.com/ovn-uplink/ovn-uplink/shared/api/ovnk/v1"
	"github.com/ovn-uplink/ovn-uplink/shared/api/v1alpha1"
	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
	"k8s.io/apimachinery/pkg/labels"
)

// world is all that the role knows of the cluster, indexed so that a change touches only what depends on it. It
// follows the watches in every replica, leading or not, so that a new leader knows everything at once.
type world struct {
	sharedGateway bool
	changed       listeners

	mu       sync.Mutex
	live     bool                         // every list is complete: what is new from now on is new in the cluster
	nodes    map[string]map[string]string // name to labels
	uplinks  map[string]*uplink           // that exist, or that something is of
	networks map[string]*network
	users    map[string]map[string]bool // uplink to the networks that name it
	// strangers are UplinkStates whose name does not follow from their identity.
	strangers map[string]stateIdentity
	activity  *activity // nil without Dynamic UDN: every node is active
	texts     texts
}

type stateIdentity struct{ uplink, node string }

// listeners are told, with the world locked, what to look at again; they must not block.
type listeners struct {
	uplink, network, node func(name string)
}

func newWorld(sharedGateway, dynamic bool, changed listeners) *world {
	w := &world{
		sharedGateway: sharedGateway,
		changed:       changed,
		nodes:         map[string]map[string]string{},
		uplinks:       map[string]*uplink{},
		networks:      map[string]*network{},
		users:         map[string]map[string]bool{},
		strangers:     map[string]stateIdentity{},
		texts:         texts{},
	}
	if dynamic {
		w.activity = newActivity()
	}
	return w
}

// setUplink takes over an Uplink, nil when it is gone.
func (w *world) setUplink(name string, object *v1alpha1.Uplink) {
	w.mu.Lock()
	defer w.mu.Unlock()
	u := w.uplink(name)
	if u.define(object, w.nodes) {
		w.usersChanged(name)
	}
	w.changed.uplink(name) // also where only its status or finalizers changed
	w.tidy(u)
}

// setNetwork takes over a CUDN, nil when it is gone.
func (w *world) setNetwork(name string, object *ovnk.ClusterUserDefinedNetwork) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.networks[name]
	if before != nil {
		for _, uplink := range before.named {
			delete(w.users[uplink], name)
			if len(w.users[uplink]) == 0 {
				delete(w.users, uplink)
			}
			w.changed.uplink(uplink)
		}
	}
	delete(w.networks, name)
	w.changed.network(name)
	if object == nil {
		return
	}
	n := newNetwork(object)
	w.networks[name] = n
	for _, uplink := range n.named {
		if w.users[uplink] == nil {
			w.users[uplink] = map[string]bool{}
		}
		w.users[uplink][name] = true
		n.late[uplink] = w.late(before, n, uplink)
		w.changed.uplink(uplink)
	}
}

// late tells whether a network begins to name an Uplink that is terminating already. Times of the API server have
// seconds only; within the same one it is what was seen first that counts.
func (w *world) late(before, now *network, name string) bool {
	u := w.uplinks[name]
	switch {
	case u == nil || !u.terminating():
		return false
	case before == nil:
		return w.live && !now.created.Before(u.deleted)
	case slices.Contains(before.named, name):
		return before.late[name]
	}
	return true
}

// uplink finds or makes the entry of an Uplink.
func (w *world) uplink(name string) *uplink {
	u := w.uplinks[name]
	if u == nil {
		u = newUplink(w.texts.of(name))
		w.uplinks[u.name] = u
	}
	return u
}

// tidy forgets the entry of an Uplink of which nothing is left.
func (w *world) tidy(u *uplink) {
	if !u.exists && len(u.states) == 0 {
		delete(w.uplinks, u.name)
	}
}

// usersChanged has every network that names an Uplink looked at again.
func (w *world) usersChanged(name string) {
	for user := range w.users[name] {
		w.changed.network(user)
	}
}

// networksChanged has every network that names any Uplink looked at again.
func (w *world) networksChanged() {
	for _, n := range w.networks {
		if len(n.named) > 0 {
			w.changed.network(n.name)
		}
	}
}

// activityChanged has the networks of a namespace looked at again.
func (w *world) activityChanged(namespace string) {
	set := labels.Set(w.activity.namespaces[namespace])
	for _, n := range w.networks {
		if len(n.named) > 0 && n.namespaces != nil && n.namespaces.Matches(set) {
			w.changed.network(n.name)
		}
	}
}

// occupied tells whether an UplinkState of that name has another identity.
func (w *world) occupied(name string) bool {
	_, ok := w.strangers[name]
	return ok
}

// active are the nodes that a network is active on.
func (w *world) active(n *network) iter.Seq[string] {
	if w.activity == nil {
		return maps.Keys(w.nodes)
	}
	return func(yield func(string) bool) {
		for node := range w.activity.nodes(n.namespaces) {
			if _, exists := w.nodes[node]; exists && !yield(node) {
				return
			}
		}
	}
}

// uplinkReady is what an Uplink's Ready should be.
func (w *world) uplinkReady(name string) (c uplinkstate.Condition, exists bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	u := w.uplinks[name]
	if u == nil || !u.exists {
		return c, false
	}
	return u.ready(w.holders(u), w.occupied), true
}

// networkReady is what a CUDN's UplinksReady should be.
func (w *world) networkReady(name string) (c uplinkstate.Condition, exists bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := w.networks[name]
	if n == nil {
		return c, false
	}
	return n.ready(surroundings{
		sharedGateway: w.sharedGateway,
		uplink:        func(name string) *uplink { return w.uplinks[name] },
		active:        w.active(n),
		occupied:      w.occupied,
	}), true
}

// goLive is called once every list is complete.
func (w *world) goLive() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.live = true
}

func (w *world) knowsNetwork(name string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.networks[name] != nil
}

// uplinkNames are all Uplinks that there is something to do about, also those that only states are of.
func (w *world) uplinkNames() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Keys(w.uplinks))
}

func (w *world) networkNames() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Keys(w.networks))
}

// holders are the networks that keep an Uplink from going, sorted.
func (w *world) holders(u *uplink) []string {
	var names []string
	for user := range w.users[u.name] {
		if w.networks[user].holds(u) {
			names = append(names, user)
		}
	}
	slices.Sort(names)
	return names
}
