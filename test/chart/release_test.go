// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// listable are the resources of all groups that can be listed.
func listable(t *testing.T, lists []*metav1.APIResourceList) map[schema.GroupVersionResource]struct{} {
	t.Helper()
	able := discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "delete"}}, lists)
	resources, err := discovery.GroupVersionResources(able)
	if err != nil {
		t.Fatal(err)
	}
	return resources
}

var _ = slices.Sorted[string]
