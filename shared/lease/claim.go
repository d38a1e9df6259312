// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// sighting is a Lease and when, by this process's own clock, its record was first seen as it is. The times in
// the record are other machines' and are never compared with the own clock.
type sighting struct {
	lease Lease
	since time.Time
}

// see notes what was read at a time. Only a change of the record counts as a sign of life of its holder.
func (s sighting) see(l *Lease, now time.Time) sighting {
	if s.since.IsZero() || !sameRecord(s.lease.Spec, l.Spec) {
		return sighting{*l, now}
	}
	return sighting{*l, s.since}
}

// claim says what to write to hold the Lease, or that somebody else holds it. duration is how long others are to
// respect it, and how long a record that names none is respected.
func (s sighting) claim(identity string, duration time.Duration, now time.Time) (Spec, bool) {
	old := s.lease.Spec
	own := old.HolderIdentity == identity
	respected := duration
	if old.LeaseDurationSeconds > 0 {
		respected = time.Duration(old.LeaseDurationSeconds) * time.Second
	}
	if !own && old.HolderIdentity != "" && now.Before(s.since.Add(respected)) {
		return Spec{}, false
	}
	stamp := metav1.NewMicroTime(now)
	wish := Spec{
		HolderIdentity:       identity,
		LeaseDurationSeconds: int32(duration / time.Second),
		AcquireTime:          old.AcquireTime,
		RenewTime:            &stamp,
		LeaseTransitions:     old.LeaseTransitions,
	}
	if !own {
		wish.AcquireTime = &stamp
		if !s.since.IsZero() {
			wish.LeaseTransitions++
		}
	}
	return wish, true
}

// released is the record of a Lease that its holder gives up: anybody may take it at once.
func released(held Spec, now time.Time) Spec {
	stamp := metav1.NewMicroTime(now)
	return Spec{
		LeaseDurationSeconds: 1,
		AcquireTime:          held.AcquireTime,
		RenewTime:            &stamp,
		LeaseTransitions:     held.LeaseTransitions,
	}
}

func sameRecord(a, b Spec) bool {
	return a.HolderIdentity == b.HolderIdentity && a.LeaseDurationSeconds == b.LeaseDurationSeconds &&
		a.LeaseTransitions == b.LeaseTransitions && a.AcquireTime.Equal(b.AcquireTime) && a.RenewTime.Equal(b.RenewTime)
}
