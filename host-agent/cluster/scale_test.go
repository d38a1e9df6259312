// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/ovn-uplink/ovn-uplink/shared/api/v1alpha1"
	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
	"k8s.io/apimachinery/pkg/types"
)

// crowd is a world of Uplinks that all select all nodes of their share, each with a network that every node covers.
// share 1 is every node for every Uplink; share 10 a tenth of the nodes.
func crowd(uplinks, nodeCount, share int) *watched {
	w := newWatched(false)
	for n := range nodeCount {
		w.node(nodeName(n), fmt.Sprintf("share=%d", n%share), "kubernetes.io/hostname="+nodeName(n))
	}
	sink := states{w.world, &uplinkstate.Intruders{}}
	for u := range uplinks {
		uplink, network := fmt.Sprintf("tenant-%d", u), fmt.Sprintf("network-%d", u)
		selector := []string{fmt.Sprintf("share=%d", u%share)}
		if share == 1 {
			selector = nil
		}
		w.setUplink(uplink, uplinkObject(uplink, 1, config("e0", selector...)))
		w.setNetwork(network, networkObject(network, uplink))
		for n := range nodeCount {
			if n%share == u%share {
				sink.Put(decoded(stateObject(uplink, nodeName(n), covers(network, v1alpha1.NetworkReady, ""))))
			}
		}
	}
	w.looked()
	return w
}

// decoded is an object as it comes from the API server: no text of it is shared with another one.
func decoded(s *v1alpha1.UplinkState) *v1alpha1.UplinkState {
	for i := range s.Status.Conditions {
		s.Status.Conditions[i].Reason = string([]byte(s.Status.Conditions[i].Reason))
	}
	s.OwnerReferences[0].UID = types.UID([]byte(s.OwnerReferences[0].UID))
	return s
}

func nodeName(n int) string { return fmt.Sprintf("worker-%04d.example.com", n) }

// 100 Uplinks on 5 000 nodes, each on every node: half a million UplinkStates, in memory that grows with what they
// say and not with what they are.
func TestScale(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped: -short; half a million UplinkStates")
	}
	const maxHeap = 250 << 20
	before := heap()
	w := crowd(100, 5000, 1)
	used := heap() - before
	begin := time.Now()
	c, exists := w.uplinkReady("tenant-7")
	uplinkPass := time.Since(begin)
	expect(t, c, exists, "True Ready: every selected node has resolved the Uplink")
	begin = time.Now()
	c, exists = w.networkReady("network-7")
	networkPass := time.Since(begin)
	expect(t, c, exists, "True UplinksReady: every active node's gateway covers the network")
	t.Logf("500 000 states: %.0f MiB; a pass over an Uplink with 5 000 nodes %s, over its network %s",
		float64(used)/(1<<20), uplinkPass.Round(time.Microsecond), networkPass.Round(time.Microsecond))
	if used > maxHeap {
		t.Errorf("heap of %d bytes, more than %d", used, maxHeap)
	}
	runtime.KeepAlive(w)
}

// What an event costs does not grow with the nodes that it is not about.
func TestWorkPerEvent(t *testing.T) {
	small, large := crowd(100, 200, 100), crowd(100, 5000, 100)
	for _, event := range []struct {
		what string
		do   func(w *watched, i int)
		want string
	}{
		{"label that selects nothing", func(w *watched, i int) { w.node(nodeName(7), "share=7", fmt.Sprintf("heartbeat=%d", i)) }, ""},
		{"state of one node", func(w *watched, i int) {
			w.state(stateObject("tenant-7", nodeName(7), dpu([]string{"", "BridgeNotFound"}[i%2], 1)))
		}, "network network-7, uplink tenant-7"},
	} {
		fast, slow := cost(small, event.do), cost(large, event.do)
		t.Logf("%s: %s with 200 nodes, %s with 5 000", event.what, fast, slow)
		if got := large.looked(); got != event.want {
			t.Errorf("%s: looked at %q, want %q", event.what, got, event.want)
		}
		// Ten times as much would be growth with the number of nodes, which differs by 25; noise is less.
		if slow > 10*fast {
			t.Errorf("%s costs %s with 200 nodes and %s with 5 000", event.what, fast, slow)
		}
	}
}

// cost is the median time of an event.
func cost(w *watched, do func(w *watched, i int)) time.Duration {
	const rounds = 201
	var took [rounds]time.Duration
	for i := range rounds {
		begin := time.Now()
		do(w, i)
		took[i] = time.Since(begin)
	}
	slices.Sort(took[:])
	return took[rounds/2]
}

func BenchmarkNodeEvent(b *testing.B) {
	for _, n := range []int{50, 500, 5000} {
		w := crowd(100, n, 10)
		b.Run(fmt.Sprintf("nodes=%d", n), func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				w.node(nodeName(7), fmt.Sprintf("share=%d", 7+i%2))
			}
		})
	}
}

func BenchmarkUplinkPass(b *testing.B) {
	for _, n := range []int{50, 500, 5000} {
		w := crowd(10, n, 1)
		b.Run(fmt.Sprintf("selected=%d", n), func(b *testing.B) {
			for b.Loop() {
				w.uplinkReady("tenant-7")
			}
		})
	}
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
