// SPDX-License-Identifier: Apache-2.0

package events

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

func TestTransitionsAreSentAndRepeatsAreNot(t *testing.T) {
	got := make(chan event, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var e event
		if r.URL.Path != "/apis/events.k8s.io/v1/namespaces/default/events" || json.Unmarshal(body, &e) != nil {
			t.Errorf("%s %s: %s", r.Method, r.URL.Path, body)
		}
		got <- e
		w.WriteHeader(http.StatusCreated)
	}))
	defer server.Close()
	r, err := NewRecorder(&rest.Config{Host: server.URL}, "dpu-agent", "worker-a")
	if err != nil {
		t.Fatal(err)
	}
	go r.Run(t.Context())

	blue := Object{APIVersion: "k8s.ovn.org/v1alpha1", Kind: "UplinkState", Name: "blue.worker-a", UID: "1"}
	for _, reason := range []string{"Resolved", "Resolved", "BridgeNotFound", "Resolved"} {
		r.Record(blue, Normal, reason, "Resolve", "because")
	}
	for _, want := range []string{"Resolved", "BridgeNotFound", "Resolved"} {
		select {
		case e := <-got:
			if e.Reason != want || e.Regarding != blue || e.ReportingInstance != "dpu-agent-worker-a" || e.Note != "because" {
				t.Errorf("got %+v, want reason %s", e, want)
			}
		case <-time.After(5 * time.Second):
			t.Fatalf("no event %s", want)
		}
	}
	if len(got) != 0 {
		t.Errorf("one too many: %+v", <-got)
	}
}

// A storm of transitions does not become a storm of Events.
func TestEventsAreLimited(t *testing.T) {
	r, err := NewRecorder(&rest.Config{Host: "http://127.0.0.1:1"}, "dpu-agent", "worker-a")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 1000 {
		r.Record(Object{Name: "s"}, Normal, []string{"A", "B"}[i%2], "Resolve", "")
	}
	if len(r.queue) > 25 {
		t.Errorf("%d Events queued", len(r.queue))
	}
}
