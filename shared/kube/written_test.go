// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"errors"
	"testing"
	"time"

	"github.com/ovn-uplink/ovn-uplink/shared/api/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
)

func state(version string) *v1alpha1.UplinkState {
	return &v1alpha1.UplinkState{ObjectMeta: metav1.ObjectMeta{Name: "s", ResourceVersion: version}}
}

// Between a write and the watch that brings it, the writer sees its own write, or it would write again.
func TestOwnWritesAreSeenAtOnce(t *testing.T) {
	i := informer(&cache.ListWatch{}, &v1alpha1.UplinkState{}, nil, "uplinkstates")
	expect := func(want string) {
		t.Helper()
		got, ok := i.Get("s")
		if !ok && want != "" || ok && got.ResourceVersion != want {
			t.Errorf("got %v %v, want version %q", got, ok, want)
		}
	}
	put := func(version string) {
		if err := i.shared.GetStore().Add(state(version)); err != nil {
			t.Fatal(err)
		}
	}
	expect("")
	i.Wrote(state("9"))
	expect("9")
	put("8")
	expect("9")
	put("10") // 10 is later than 9, though not as text
	expect("10")
}

func TestDeletionGoesBeforeAnOlderWrite(t *testing.T) {
	var w written[*v1alpha1.UplinkState]
	w.put(state("9"))
	w.forget("s", "8") // the deletion of a predecessor
	if _, ok := w.get("s"); !ok {
		t.Error("an older deletion dropped a newer write")
	}
	w.forget("s", "10")
	if _, ok := w.get("s"); ok {
		t.Error("a write outlived the deletion that came after it")
	}
}

func TestOwnWritesExpire(t *testing.T) {
	w := written[*v1alpha1.UplinkState]{objects: map[string]ownWrite[*v1alpha1.UplinkState]{
		"s": {state("9"), time.Now().Add(-2 * CatchUp)},
	}}
	if _, ok := w.get("s"); ok {
		t.Error("a write is preferred to the watch for ever")
	}
}

func TestDiagnose(t *testing.T) {
	uplinks := schema.GroupResource{Group: "k8s.ovn.org", Resource: "uplinks"}
	for want, err := range map[string]error{
		"the CRD is not installed":                   apierrors.NewNotFound(uplinks, ""),
		"the credentials are not allowed to list it": apierrors.NewForbidden(uplinks, "", nil),
		"the API server answers with an error":       apierrors.NewInternalError(errors.New("etcd")),
		"the API server cannot be reached":           errors.New("connection refused"),
	} {
		if got := diagnose(err); got != want {
			t.Errorf("%v is diagnosed as %q, want %q", err, got, want)
		}
	}
}

// A deletion that the watch brings before the answer to a write has come is not undone by that answer: the object would
// be taken for there until CatchUp is over.
func TestAnswerAfterTheDeletion(t *testing.T) {
	at := func(version string) *v1alpha1.UplinkState {
		s := &v1alpha1.UplinkState{}
		s.Name, s.ResourceVersion = "s", version
		return s
	}
	var w written[*v1alpha1.UplinkState]
	w.forget("s", "10")
	w.put(at("9"))
	if got, ok := w.get("s"); ok {
		t.Errorf("version %s is there after its deletion", got.ResourceVersion)
	}
	w.put(at("11"))
	if _, ok := w.get("s"); !ok {
		t.Error("a successor that was written is not there")
	}
	w.gone["s"] = deletion{"20", time.Now().Add(-2 * CatchUp)}
	w.put(at("12"))
	if got, _ := w.get("s"); got == nil || got.ResourceVersion != "12" {
		t.Error("a deletion is remembered for longer than it can matter")
	}
	w.forget("other", "30")
	if _, known := w.gone["s"]; known {
		t.Error("old deletions are kept")
	}
}
