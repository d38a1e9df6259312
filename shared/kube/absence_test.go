// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A kind that need not be there counts as absent as long as the API server says so, and no longer; an API server that
// says nothing says nothing about the kind.
func TestAbsence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		missing := apierrors.NewNotFound(schema.GroupResource{Resource: "things"}, "")
		unreachable := errors.New("connection refused")
		answers := make(chan error)
		a := &absence{}
		probe := a.unless("things", func(ctx context.Context) error {
			select {
			case err := <-answers:
				return err
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		var got error
		done := make(chan bool)
		go func() {
			for range 2 {
				got = probe(t.Context())
				done <- true
			}
		}()
		if a.is() {
			t.Error("absent before anything was asked")
		}
		answers <- unreachable
		<-done
		if !errors.Is(got, unreachable) || a.is() {
			t.Errorf("%v, absent %v, from an API server that does not answer", got, a.is())
		}
		answers <- missing
		synctest.Wait()
		if !a.is() {
			t.Error("not absent though the API server says so")
		}
		answers <- missing
		answers <- nil
		<-done
		if got != nil || a.is() {
			t.Errorf("%v, absent %v, though it is there", got, a.is())
		}
	})
	var none *absence
	if none.is() {
		t.Error("a kind that must be there is absent")
	}
}
