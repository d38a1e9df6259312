// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"maps"
	"testing"
)

func TestApplyAndRemove(t *testing.T) {
	onEach(t, func(t *testing.T, n *northbound) {
		blue, green := layer3("blue-1"), layer2("green")
		n.cni(blue)
		n.cni(green)
		before, _ := n.rows()
		db := n.open(Ranges{})
		g := gateway("wire", blue, green)
		mustApply(t, db, g)
		idle(t, db, g)
		foreign, _ := n.rows()
		if !maps.Equal(before, foreign) {
			t.Errorf("rows of others changed:\n%s\nwant\n%s", sorted(foreign), sorted(before))
		}
		changed, err := db.Remove(t.Context(), "wire")
		if err != nil || !changed {
			t.Fatalf("Remove: changed %v, error %v", changed, err)
		}
		after, own := n.rows()
		if !maps.Equal(before, after) || len(own) > 0 {
			t.Errorf("after removal:\n%s\nwant\n%s", sorted(after)+sorted(own), sorted(before))
		}
	})
}
