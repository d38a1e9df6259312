// SPDX-License-Identifier: Apache-2.0

// Package events writes Kubernetes Events about transitions. Client-go's recorder does it too, with the whole
// core API linked in; an Event of ours is one small JSON object, sent once and never counted up.
package events

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
)

// The types of Events that Kubernetes knows.
const (
	Normal  = "Normal"
	Warning = "Warning"
)

const (
	// namespace is where Events about cluster-scoped objects go.
	namespace = "default"
	// repeatAfter is how long the last reason of an object is not repeated.
	repeatAfter = time.Minute
	timeout     = 10 * time.Second
	// maxRemembered bounds the memory of what was said; a repeated Event is the worst that forgetting does.
	maxRemembered = 4096
)

// Object is what an Event is about.
type Object struct {
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"`
	Name       string    `json:"name"`
	UID        types.UID `json:"uid,omitempty"`
}

// Recorder sends Events in the background; one that cannot be sent is dropped.
type Recorder struct {
	client    rest.Interface
	component string
	instance  string
	limiter   flowcontrol.RateLimiter
	queue     chan event

	mu   sync.Mutex
	last map[string]said // by object
}

// said is the last Event about an object.
type said struct {
	reason string
	at     time.Time
}

type event struct {
	metav1.TypeMeta     `json:",inline"`
	Metadata            metadata         `json:"metadata"`
	EventTime           metav1.MicroTime `json:"eventTime"`
	ReportingController string           `json:"reportingController"`
	ReportingInstance   string           `json:"reportingInstance"`
	Action              string           `json:"action"`
	Reason              string           `json:"reason"`
	Regarding           Object           `json:"regarding"`
	Note                string           `json:"note"`
	Type                string           `json:"type"`
}

type metadata struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
}

// NewRecorder makes a recorder for a component on a node.
func NewRecorder(config *rest.Config, component, node string) (*Recorder, error) {
	config = rest.CopyConfig(config)
	config.GroupVersion = &schema.GroupVersion{Group: "events.k8s.io", Version: "v1"}
	config.APIPath = "/apis"
	config.NegotiatedSerializer = serializer.NewCodecFactory(runtime.NewScheme()).WithoutConversion()
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("make a client for events: %w", err)
	}
	return &Recorder{
		client:    client,
		component: component,
		instance:  component + "-" + node,
		limiter:   flowcontrol.NewTokenBucketRateLimiter(1, 20),
		queue:     make(chan event, 64),
		last:      map[string]said{},
	}, nil
}

// Run sends until the context ends.
func (r *Recorder) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case e := <-r.queue:
			r.send(ctx, e)
		}
	}
}

// Record queues an Event about an object. action is what the component did or tried; reason and note are
// those of the condition.
func (r *Recorder) Record(about Object, kind, reason, action, note string) {
	now := time.Now()
	if !r.allow(about, reason, now) {
		return
	}
	e := event{
		TypeMeta:            metav1.TypeMeta{APIVersion: "events.k8s.io/v1", Kind: "Event"},
		Metadata:            metadata{Name: eventName(about.Name, now), Namespace: namespace},
		EventTime:           metav1.NewMicroTime(now),
		ReportingController: r.component,
		ReportingInstance:   r.instance,
		Action:              action,
		Reason:              reason,
		Regarding:           about,
		Note:                uplinkstate.Message(note), // "Maximal length of the note is 1kB"
		Type:                kind,
	}
	select {
	case r.queue <- e:
	default: // the API server has been away for long; Events are not worth waiting for
	}
}

// eventName is the object's name and the time, cut so that it is a name of Kubernetes (253 characters).
func eventName(object string, now time.Time) string {
	suffix := fmt.Sprintf(".%x", now.UnixNano())
	return strings.TrimRight(object[:min(len(object), 253-len(suffix))], "-.") + suffix
}

func (r *Recorder) allow(about Object, reason string, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := about.Kind + "/" + about.Name + "/" + string(about.UID)
	last := r.last[key]
	if last.reason == reason && now.Sub(last.at) < repeatAfter || !r.limiter.TryAccept() {
		return false
	}
	if len(r.last) > maxRemembered {
		clear(r.last)
	}
	r.last[key] = said{reason, now}
	return true
}

func (r *Recorder) send(ctx context.Context, e event) {
	body, err := json.Marshal(e)
	if err != nil {
		slog.Debug("event not encoded", "error", err)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if err := r.client.Post().Namespace(namespace).Resource("events").Body(body).
		SetHeader("Content-Type", "application/json").Do(ctx).Error(); err != nil {
		slog.Debug("event not sent", "reason", e.Reason, "about", e.Regarding.Name, "error", err)
	}
}
