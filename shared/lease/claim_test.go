// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Whether a Lease may be taken follows from how long its record has not changed by the own clock, and from nothing
// that another machine's clock says.
func TestClaim(t *testing.T) {
	const own, duration = "me", 15 * time.Second
	start := time.Unix(1_000_000, 0)
	stamp := func(d time.Duration) *metav1.MicroTime {
		m := metav1.NewMicroTime(start.Add(d))
		return &m
	}
	for name, tc := range map[string]struct {
		spec        Spec
		unchanged   time.Duration
		want        bool
		transitions int32
	}{
		"held and alive":                      {Spec{HolderIdentity: "other", LeaseDurationSeconds: 15, RenewTime: stamp(0)}, 14 * time.Second, false, 0},
		"held and silent":                     {Spec{HolderIdentity: "other", LeaseDurationSeconds: 15, RenewTime: stamp(0)}, 15 * time.Second, true, 1},
		"holder's clock is a year behind":     {Spec{HolderIdentity: "other", LeaseDurationSeconds: 15, RenewTime: stamp(-365 * 24 * time.Hour)}, time.Second, false, 0},
		"holder's clock is a year ahead":      {Spec{HolderIdentity: "other", LeaseDurationSeconds: 15, RenewTime: stamp(365 * 24 * time.Hour)}, 16 * time.Second, true, 1},
		"holder asked for a minute":           {Spec{HolderIdentity: "other", LeaseDurationSeconds: 60}, 59 * time.Second, false, 0},
		"holder asked for nothing: own term":  {Spec{HolderIdentity: "other"}, 14 * time.Second, false, 0},
		"given back":                          {Spec{LeaseDurationSeconds: 1, LeaseTransitions: 7}, 0, true, 8},
		"own, renewed":                        {Spec{HolderIdentity: own, LeaseDurationSeconds: 15, LeaseTransitions: 3}, 0, true, 3},
		"own, run out, nobody else came":      {Spec{HolderIdentity: own, LeaseDurationSeconds: 15, LeaseTransitions: 3}, time.Hour, true, 3},
		"an earlier life of the same machine": {Spec{HolderIdentity: "me_before", LeaseDurationSeconds: 15}, 0, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			seen := sighting{}.see(&Lease{Spec: tc.spec}, start)
			now := start.Add(tc.unchanged)
			got, ok := seen.see(&Lease{Spec: tc.spec}, now).claim(own, duration, now)
			if ok != tc.want {
				t.Fatalf("claimed: %t, want %t", ok, tc.want)
			}
			if ok && (got.HolderIdentity != own || got.LeaseDurationSeconds != 15 || got.LeaseTransitions != tc.transitions || !got.RenewTime.Time.Equal(now)) {
				t.Errorf("writes %+v", got)
			}
			if ok && (tc.spec.HolderIdentity == own) == got.AcquireTime.Equal(ptr(metav1.NewMicroTime(now))) {
				t.Errorf("acquire time %v of %+v", got.AcquireTime, tc.spec)
			}
		})
	}
}

// Every change of the record is a sign of life; a change of anything else of the object is not.
func TestSignsOfLife(t *testing.T) {
	start := time.Unix(1_000_000, 0)
	first := metav1.NewMicroTime(start)
	second := metav1.NewMicroTime(start.Add(time.Microsecond))
	s := sighting{}.see(&Lease{Spec: Spec{HolderIdentity: "other", RenewTime: &first}}, start)
	labelled := &Lease{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "2", Labels: map[string]string{"a": "b"}}, Spec: Spec{HolderIdentity: "other", RenewTime: ptr(first)}}
	if s = s.see(labelled, start.Add(time.Second)); !s.since.Equal(start) || s.lease.ResourceVersion != "2" {
		t.Errorf("a label counts as renewal: %+v", s)
	}
	if s = s.see(&Lease{Spec: Spec{HolderIdentity: "other", RenewTime: &second}}, start.Add(2*time.Second)); !s.since.Equal(start.Add(2 * time.Second)) {
		t.Errorf("a renewal does not count: %+v", s)
	}
}

func ptr[T any](v T) *T { return &v }
