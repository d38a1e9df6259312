// SPDX-License-Identifier: Apache-2.0

package uplinkstate

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ConditionPatch is the body of a server-side apply of one condition to an object's status; the conditions of other
// writers stay.
type ConditionPatch struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        PatchMetadata   `json:"metadata"`
	Status          conditionStatus `json:"status"`
}

type conditionStatus struct {
	Conditions []metav1.Condition `json:"conditions"`
}

// ApplyCondition is the whole of what ManagerCluster wishes for the status of an object of another kind. It carries
// the UID of the object that it is meant for.
func ApplyCondition(apiVersion, kind string, object metav1.Object, condition string, wish Condition, published []metav1.Condition, now time.Time) ConditionPatch {
	return ConditionPatch{
		TypeMeta: metav1.TypeMeta{APIVersion: apiVersion, Kind: kind},
		Metadata: PatchMetadata{Name: object.GetName(), UID: object.GetUID()},
		Status:   conditionStatus{conditions(condition, wish, published, now)},
	}
}

// PublishedCondition reads a condition; ok is false where there is none.
func PublishedCondition(conditions []metav1.Condition, kind string) (c Condition, ok bool) {
	found := meta.FindStatusCondition(conditions, kind)
	if found == nil {
		return Condition{}, false
	}
	return conditionOf(found), true
}
