// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// maxNames is how many nodes a message names for each reason.
const maxNames = 3

// tally counts nodes by what is wrong with them. Its message is the same in whatever order they are added.
type tally struct {
	nodes   int
	failing int
	groups  map[string]*group
}

// group is the nodes of one reason.
type group struct {
	reason string
	count  int
	names  []string // the first maxNames in the order of names
}

// good counts a node with nothing wrong.
func (t *tally) good() { t.nodes++ }

// bad counts a node with something wrong.
func (t *tally) bad(node, reason string) {
	t.nodes++
	t.failing++
	if t.groups == nil {
		t.groups = map[string]*group{}
	}
	g := t.groups[reason]
	if g == nil {
		g = &group{reason: reason}
		t.groups[reason] = g
	}
	g.count++
	if i, _ := slices.BinarySearch(g.names, node); i < maxNames {
		g.names = slices.Insert(g.names, i, node)
		g.names = g.names[:min(len(g.names), maxNames)]
	}
}

// message is "2 of 120 selected nodes are not ready: HostInterfaceNotFound 1 (worker-a), BridgeNotFound 1 (worker-b)",
// the most frequent reason first.
func (t *tally) message(which string) string {
	var parts []string
	for _, g := range t.sorted() {
		names := strings.Join(g.names, ", ")
		if g.count > len(g.names) {
			names += ", …"
		}
		parts = append(parts, fmt.Sprintf("%s %d (%s)", g.reason, g.count, names))
	}
	return fmt.Sprintf("%d of %d %s nodes are not ready: %s", t.failing, t.nodes, which, strings.Join(parts, ", "))
}

func (t *tally) sorted() []*group {
	var groups []*group
	for _, g := range t.groups {
		groups = append(groups, g)
	}
	slices.SortFunc(groups, func(a, b *group) int {
		return cmp.Or(cmp.Compare(b.count, a.count), cmp.Compare(a.names[0], b.names[0]), cmp.Compare(a.reason, b.reason))
	})
	return groups
}
