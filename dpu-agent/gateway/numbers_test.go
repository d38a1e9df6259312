// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"testing"

	"github.com/ovn-uplink/ovn-uplink/shared/network"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestNumbers(t *testing.T) {
	const long = "a-name-longer-than-a-link"
	attachment := func(namespace, cudn, id string) *metav1.PartialObjectMetadata {
		o := &metav1.PartialObjectMetadata{}
		o.Namespace, o.Name = namespace, cudn
		o.Annotations = map[string]string{network.NameAnnotation: network.Name(cudn)}
		if id != "" {
			o.Annotations[network.IDAnnotation] = id
		}
		return o
	}
	changes := 0
	n := newNumbers(func() { changes++ })
	expect := func(what string, want, wantChanges int) {
		t.Helper()
		got := n.id(network.Name(long))
		if (got == nil) != (want == 0) || got != nil && *got != want || changes != wantChanges {
			t.Errorf("%s: id %v after %d changes, want %d after %d", what, got, changes, want, wantChanges)
		}
	}
	n.Replace(nil)
	expect("nothing", 0, 1)
	n.Put(attachment("one", long, ""))
	expect("the CNI is not done", 0, 1)
	n.Put(attachment("one", "short", "3"))
	n.Put(attachment("one", long, "nonsense"))
	expect("of no use", 0, 1)
	n.Put(attachment("one", long, "7"))
	expect("known", 7, 2)
	n.Put(attachment("one", long, "7"))
	n.Put(attachment("two", long, "7"))
	expect("again, and in a second namespace", 7, 3)
	n.Remove(attachment("one", long, "7"))
	expect("gone from the first", 7, 4)
	n.Replace([]*metav1.PartialObjectMetadata{attachment("three", long, "8")})
	expect("another network of that name", 8, 5)
	n.Remove(attachment("three", long, "8"))
	expect("gone", 0, 6)
}
