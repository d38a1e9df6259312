// SPDX-License-Identifier: Apache-2.0

package network

import (
	"slices"
	"strings"

	ovnk "github.com/ovn-uplink/ovn-uplink/shared/api/ovnk/v1"
	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
	"k8s.io/apimachinery/pkg/util/validation"
)

// UplinksAnnotation names a CUDN's Uplinks, separated by commas, where the installed CUDN CRD has no spec.uplinks.
const UplinksAnnotation = "uplink.k8s.ovn.org/uplinks"

// maxUplinks is how many Uplinks a CUDN may name for now.
const maxUplinks = 1

// Uplinks returns the names of the Uplinks that are a CUDN's way out, empty for the cluster's default gateway. A
// Problem says that they are not named in a way that can be followed.
func Uplinks(cudn *ovnk.ClusterUserDefinedNetwork) ([]string, *uplinkstate.Problem) {
	annotated := annotated(cudn)
	names := cudn.Spec.Uplinks
	switch {
	case len(names) == 0:
		names = annotated
	case len(annotated) > 0 && !slices.Equal(names, annotated):
		return nil, uplinkstate.Problemf(uplinkstate.ReasonUplinkReferenceConflict,
			"spec.uplinks names %s, but the annotation %s names %s; remove the annotation",
			strings.Join(names, ", "), UplinksAnnotation, strings.Join(annotated, ", "))
	}
	// The API server refuses the same in spec.uplinks; nobody does in an annotation.
	if len(names) > maxUplinks {
		return nil, uplinkstate.Problemf(uplinkstate.ReasonUplinkReferenceConflict,
			"%d Uplinks are named (%s), but a network can have one only; name one", len(names), strings.Join(names, ", "))
	}
	for _, name := range names {
		if len(validation.IsDNS1123Label(name)) > 0 {
			return nil, uplinkstate.Problemf(uplinkstate.ReasonUplinkReferenceConflict,
				"%q cannot be the name of an Uplink: lower case letters, digits and '-' only, at most 63 characters; correct the annotation %s", name, UplinksAnnotation)
		}
	}
	return names, nil
}

// NamedUplinks returns every Uplink that a CUDN names, in whichever place, sorted: those that must not go away.
func NamedUplinks(cudn *ovnk.ClusterUserDefinedNetwork) []string {
	names := slices.Concat(cudn.Spec.Uplinks, annotated(cudn))
	slices.Sort(names)
	return slices.Compact(names)
}

func annotated(cudn *ovnk.ClusterUserDefinedNetwork) []string {
	return strings.FieldsFunc(cudn.Annotations[UplinksAnnotation], func(r rune) bool { return r == ',' || r == ' ' })
}

// CanUseUplink tells whether a network is of a kind that an Uplink can serve: a primary Layer2 or Layer3 one.
func CanUseUplink(n ovnk.NetworkSpec) bool {
	switch n.Topology {
	case ovnk.Layer2:
		return n.Layer2 != nil && n.Layer2.Role == ovnk.RolePrimary
	case ovnk.Layer3:
		return n.Layer3 != nil && n.Layer3.Role == ovnk.RolePrimary
	case ovnk.Localnet:
	}
	return false
}
