// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"time"

	"github.com/ovn-uplink/ovn-uplink/shared/api/v1alpha1"
	"github.com/ovn-uplink/ovn-uplink/shared/selection"
	"k8s.io/apimachinery/pkg/types"
)

// uplink is an Uplink with all that nodes say of it.
type uplink struct {
	name string
	// exists is false for one that only states or networks are of.
	exists     bool
	uid        types.UID
	generation int64
	// deleted is when its deletion was asked for; zero while it was not.
	deleted time.Time
	configs []v1alpha1.UplinkNodeConfig
	matcher *selection.Matcher
	// invalid says why there is no matcher.
	invalid error
	// selected has every node that a nodeConfig selects: the index by which a change of a Node's labels touches only
	// the Uplinks whose selection of the node it changes.
	selected map[string]selected
	states   map[string]*state // by node
}

// selected is the position of the nodeConfig that selects a node, or overlap.
type selected int16

const overlap selected = -1

func newUplink(name string) *uplink {
	return &uplink{name: name, selected: map[string]selected{}, states: map[string]*state{}}
}

func (u *uplink) terminating() bool { return !u.deleted.IsZero() }

// define takes over the spec; it returns whether anything changed that conditions depend on.
func (u *uplink) define(object *v1alpha1.Uplink, nodes map[string]map[string]string) bool {
	if object == nil {
		changed := u.exists
		*u = uplink{name: u.name, selected: map[string]selected{}, states: u.states}
		return changed
	}
	var deleted time.Time
	if object.DeletionTimestamp != nil {
		deleted = object.DeletionTimestamp.Time
	}
	if u.exists && u.uid == object.UID && u.generation == object.Generation && u.deleted.Equal(deleted) {
		return false
	}
	u.exists, u.uid, u.generation, u.deleted = true, object.UID, object.Generation, deleted
	u.configs = object.Spec.NodeConfigs
	u.matcher, u.invalid = selection.Compile(object)
	u.selected = make(map[string]selected, len(u.selected))
	for node, labels := range nodes {
		u.choose(node, labels)
	}
	return true
}

// choose updates the selection of one node and tells whether it changed.
func (u *uplink) choose(node string, labels map[string]string) bool {
	if u.matcher == nil {
		return false
	}
	before, was := u.selected[node]
	s := u.matcher.Select(labels)
	if !s.Selected() {
		delete(u.selected, node)
		return was
	}
	now := overlap
	if !s.Overlap() {
		now = selected(s.Matches[0])
	}
	u.selected[node] = now
	return !was || before != now
}

// unchoose drops a node that is gone and tells whether it was selected.
func (u *uplink) unchoose(node string) bool {
	_, was := u.selected[node]
	delete(u.selected, node)
	return was
}
