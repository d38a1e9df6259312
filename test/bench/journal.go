// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	uplinkclient "github.com/ovn-uplink/ovn-uplink/shared/api/client"
	"github.com/ovn-uplink/ovn-uplink/shared/api/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// write is a version of an UplinkState and when the watch brought it.
type write struct {
	at    time.Time
	state *v1alpha1.UplinkState
}

// journal has every write to any UplinkState, from a watch: the API server turns every write that changes
// something into one event.
type journal struct {
	events watch.Interface
	done   chan struct{}
	// news has a token when something came since it was last taken.
	news chan struct{}

	mu     sync.Mutex
	writes []write
	ended  bool
}

// watch begins a journal; close ends it.
func (c *cluster) watch(ctx context.Context) (*journal, error) {
	// Not the cluster's client: its timeout would end the watch.
	client, err := uplinkclient.NewForConfig(c.RESTConfig())
	if err != nil {
		return nil, err
	}
	states := client.K8sV1alpha1().UplinkStates()
	list, err := states.List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list UplinkStates: %w", err)
	}
	events, err := states.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		return nil, fmt.Errorf("watch UplinkStates: %w", err)
	}
	j := &journal{events: events, done: make(chan struct{}), news: make(chan struct{}, 1)}
	go j.run()
	return j, nil
}

func (j *journal) run() {
	defer close(j.done)
	for e := range j.events.ResultChan() {
		at := time.Now()
		state, ok := e.Object.(*v1alpha1.UplinkState)
		if !ok || e.Type == watch.Bookmark {
			continue
		}
		j.mu.Lock()
		j.writes = append(j.writes, write{at, state})
		j.mu.Unlock()
		j.tell()
	}
	j.mu.Lock()
	j.ended = true
	j.mu.Unlock()
	j.tell()
}

func (j *journal) tell() {
	select {
	case j.news <- struct{}{}:
	default:
	}
}

func (j *journal) close() {
	j.events.Stop()
	<-j.done
}

// count is how many writes there were.
func (j *journal) count() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.writes)
}

// all are the writes so far.
func (j *journal) all() []write {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.writes)
}

// await returns when a write came, other than the first n, that fits.
func (j *journal) await(ctx context.Context, n int, fits func(*v1alpha1.UplinkState) bool) (time.Time, error) {
	for {
		j.mu.Lock()
		i := slices.IndexFunc(j.writes[n:], func(w write) bool { return fits(w.state) })
		var at time.Time
		if i >= 0 {
			at = j.writes[n+i].at
		}
		ended := j.ended
		j.mu.Unlock()
		if i >= 0 {
			return at, nil
		}
		if ended {
			return at, errors.New("the watch of UplinkStates ended")
		}
		select {
		case <-ctx.Done():
			return at, context.Cause(ctx)
		case <-j.news:
		}
	}
}

// quiet returns when nothing was written for d.
func (j *journal) quiet(ctx context.Context, d time.Duration) error {
	for {
		n := j.count()
		if err := sleep(ctx, d); err != nil {
			return err
		}
		if j.count() == n {
			return nil
		}
	}
}
