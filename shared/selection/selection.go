// SPDX-License-Identifier: Apache-2.0

// Package selection says which nodeConfig of an Uplink a node has: one, none, or more than one, which is an
// error that is reported and never a race that the first entry wins.
package selection

import (
	"fmt"

	"github.com/ovn-uplink/ovn-uplink/shared/api/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Selection is the answer for one node.
type Selection struct {
	// Config is the nodeConfig that selects the node when exactly one does.
	Config *v1alpha1.UplinkNodeConfig
	// Matches are the indexes of all nodeConfigs that select the node, ascending.
	Matches []int
}

// Selected tells whether any nodeConfig selects the node.
func (s Selection) Selected() bool { return len(s.Matches) > 0 }

// Overlap tells whether several nodeConfigs select the node, even where they say the same.
func (s Selection) Overlap() bool { return len(s.Matches) > 1 }

// InvalidSelectorError is a nodeSelector that no label set can be matched with.
type InvalidSelectorError struct {
	// Index is the position of the entry in spec.nodeConfigs.
	Index int
	Err   error
}

func (e *InvalidSelectorError) Error() string {
	return fmt.Sprintf("spec.nodeConfigs[%d].nodeSelector is invalid: %v", e.Index, e.Err)
}

func (e *InvalidSelectorError) Unwrap() error { return e.Err }

// Matcher is an Uplink's selectors, compiled, for many nodes.
type Matcher struct {
	configs   []v1alpha1.UplinkNodeConfig
	selectors []labels.Selector
}

// Compile checks all selectors of an Uplink; the error is an InvalidSelectorError for the first bad one.
func Compile(uplink *v1alpha1.Uplink) (*Matcher, error) {
	m := &Matcher{configs: uplink.Spec.NodeConfigs}
	for i := range m.configs {
		selector, err := metav1.LabelSelectorAsSelector(&m.configs[i].NodeSelector)
		if err != nil {
			return nil, &InvalidSelectorError{Index: i, Err: err}
		}
		m.selectors = append(m.selectors, selector)
	}
	return m, nil
}

// Select answers for one node by its labels.
func (m *Matcher) Select(nodeLabels map[string]string) Selection {
	var s Selection
	for i, selector := range m.selectors {
		if selector.Matches(labels.Set(nodeLabels)) {
			s.Matches = append(s.Matches, i)
		}
	}
	if len(s.Matches) == 1 {
		s.Config = &m.configs[s.Matches[0]]
	}
	return s
}
