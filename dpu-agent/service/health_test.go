// SPDX-License-Identifier: Apache-2.0

package service

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"runtime"
	"testing"

	"github.com/ovn-uplink/ovn-uplink/shared/api/core"
	"github.com/ovn-uplink/ovn-uplink/shared/api/discovery"
	"github.com/ovn-uplink/ovn-uplink/shared/kernel/kerneltest"
	"github.com/vishvananda/netns"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var loopback = Place{Address: netip.MustParseAddr("127.0.0.1")}

// freePort is one that nobody listens on.
func freePort(t *testing.T) uint16 {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).AddrPort().Port()
}

// answering is a Health that ends with the test.
func answering(t *testing.T) *Health {
	h := NewHealth()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); h.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	return h
}

func ask(port uint16) (status int, body, weight string, err error) {
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: questionTimeout}
	r, err := client.Get(fmt.Sprintf("http://127.0.0.1:%d/", port))
	if err != nil {
		return 0, "", "", err
	}
	defer func() { _ = r.Body.Close() }()
	text, err := io.ReadAll(r.Body)
	return r.StatusCode, string(text), r.Header.Get("X-Load-Balancing-Endpoint-Weight"), err
}

func TestHealth(t *testing.T) {
	h, port := answering(t), freePort(t)
	h.Set(map[Place][]HealthCheck{loopback: {{"ns/web", port, 2}}})
	status, body, weight, err := ask(port)
	var answer struct {
		Service        struct{ Namespace, Name string }
		LocalEndpoints int
	}
	if json.Unmarshal([]byte(body), &answer) != nil || answer.Service.Namespace != "ns" || answer.Service.Name != "web" || answer.LocalEndpoints != 2 {
		t.Errorf("body %q", body)
	}
	if err != nil || status != http.StatusOK || weight != "2" {
		t.Errorf("with endpoints: %d %s %v", status, weight, err)
	}
	h.Set(map[Place][]HealthCheck{loopback: {{"ns/web", port, 0}}})
	if status, _, _, err = ask(port); err != nil || status != http.StatusServiceUnavailable {
		t.Errorf("without endpoints: %d %v", status, err)
	}
	h.Set(nil)
	if _, _, _, err = ask(port); err == nil {
		t.Error("still answers")
	}
}

// Where somebody else answers it is left alone, and taken over when that one is gone.
func TestHealthBesideAnother(t *testing.T) {
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := other.Addr().(*net.TCPAddr).AddrPort().Port()
	h := answering(t)
	checks := []HealthCheck{{"ns/web", port, 1}}
	h.Set(map[Place][]HealthCheck{loopback: checks})
	if h.open[listenAt{loopback, port}] != nil || h.failed[listenAt{loopback, port}] == "" {
		t.Error("listens beside the other")
	}
	_ = other.Close()
	h.converge() // which Run does from time to time
	if status, _, _, err := ask(port); err != nil || status != http.StatusOK {
		t.Errorf("after the other is gone: %d %v", status, err)
	}
}

// A VRF is a device that sockets are bound to; here lo is in its place.
func TestHealthOfDevice(t *testing.T) {
	h, port := answering(t), freePort(t)
	lo, none := Place{loopback.Address, "lo"}, Place{loopback.Address, "no-such-vrf"}
	h.Set(map[Place][]HealthCheck{none: {{"ns/web", port, 1}}})
	if len(h.open) > 0 {
		t.Error("listens in a VRF that there is not")
	}
	h.Set(map[Place][]HealthCheck{lo: {{"ns/web", port, 1}}})
	if status, _, _, err := ask(port); err != nil || status != http.StatusOK {
		t.Errorf("%d %v", status, err)
	}
}

// TestHealthInVRF needs a kernel with VRF: the virtual machine's, where CI's own has none.
func TestHealthInVRF(t *testing.T) {
	node, outside := kerneltest.NewNamespace(t), kerneltest.NewNamespace(t)
	if err := node.TryIP("link add vrf-blue type vrf table 1007"); err != nil {
		t.Skipf("this kernel has no VRF, test/vm runs it on one that has: %v", err)
	}
	node.IP("link set vrf-blue up", "link add e0 type veth peer name e1", "link set e0 master vrf-blue", "link set e0 up",
		"addr add 192.0.2.5/24 dev e0", fmt.Sprintf("link set e1 netns /proc/%d/fd/%d", os.Getpid(), outside.Handle))
	outside.IP("link set e1 up", "addr add 192.0.2.9/24 dev e1")
	in := func(ns *kerneltest.Namespace, do func()) {
		done := make(chan error, 1)
		go func() {
			runtime.LockOSThread() // and never unlocked: the thread ends here
			err := netns.Set(ns.Handle)
			if err == nil {
				do()
			}
			done <- err
		}()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	h := answering(t)
	checks := []HealthCheck{{"ns/web", 31000, 1}}
	address := netip.MustParseAddr("192.0.2.5")
	in(node, func() { h.Set(map[Place][]HealthCheck{{Address: address}: checks}) })
	if len(h.open) > 0 {
		t.Error("an address in a VRF can be listened on without its device: then Place needs none")
	}
	in(node, func() { h.Set(map[Place][]HealthCheck{{address, "vrf-blue"}: checks}) })
	if len(h.open) != 1 {
		t.Fatalf("does not listen: %v", h.failed)
	}
	in(outside, func() {
		// By hand: the http package would dial on another thread.
		c, err := net.DialTimeout("tcp", "192.0.2.5:31000", questionTimeout)
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = c.Close() }()
		_, _ = fmt.Fprint(c, "GET / HTTP/1.0\r\n\r\n")
		answer, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Error(err)
			return
		}
		_ = answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			t.Errorf("status %d", answer.StatusCode)
		}
	})
}

// Connections beyond the bound are hung up on; it is free again when some end.
func TestHealthBound(t *testing.T) {
	h, port := answering(t), freePort(t)
	h.Set(map[Place][]HealthCheck{loopback: {{"ns/web", port, 1}}})
	var open []net.Conn
	for range maxConnections {
		c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, c)
	}
	within(t, "all are taken", func() bool { return len(h.slots) == maxConnections })
	if _, _, _, err := ask(port); err == nil {
		t.Error("answered beyond the bound")
	}
	for _, c := range open {
		_ = c.Close()
	}
	within(t, "all are free", func() bool { return len(h.slots) == 0 })
	if status, _, _, err := ask(port); err != nil || status != http.StatusOK {
		t.Errorf("afterwards: %d %v", status, err)
	}
}

// What is asked for on the health check node port of which service.
func TestHealthChecks(t *testing.T) {
	local := func(s *core.Service) {
		s.Spec.Type, s.Spec.ExternalTrafficPolicy, s.Spec.HealthCheckNodePort = core.ServiceLoadBalancer, core.TrafficLocal, 31000
	}
	for name, tc := range map[string]struct {
		service *core.Service
		slice   *discovery.EndpointSlice
		want    []HealthCheck
	}{
		"local": {nodePortService(local), mirroredSlice(), []HealthCheck{{"ns/web", 31000, 1}}},
		"terminating does not count": {nodePortService(local), mirroredSlice(func(e *discovery.EndpointSlice) {
			e.Endpoints[0].Conditions = discovery.EndpointConditions{Ready: new(false), Serving: new(true), Terminating: new(true)}
		}), []HealthCheck{{"ns/web", 31000, 0}}},
		"another network": {nodePortService(local), mirroredSlice(func(e *discovery.EndpointSlice) { e.Annotations[discovery.MirroredNetwork] = "x" }),
			[]HealthCheck{{"ns/web", 31000, 0}}},
		"several ports of a pod count once": {nodePortService(local), mirroredSlice(func(e *discovery.EndpointSlice) {
			e.Ports = append(e.Ports, discovery.EndpointPort{Name: new("more"), Port: new(int32(8081))})
		}), []HealthCheck{{"ns/web", 31000, 1}}},
		"policy Cluster": {nodePortService(local, func(s *core.Service) { s.Spec.ExternalTrafficPolicy = "Cluster" }), mirroredSlice(), nil},
		"NodePort":       {nodePortService(local, func(s *core.Service) { s.Spec.Type = core.ServiceNodePort }), mirroredSlice(), nil},
		"port -1":        {nodePortService(local, func(s *core.Service) { s.Spec.HealthCheckNodePort = -1 }), mirroredSlice(), nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := world{namespaces: []*metav1.PartialObjectMetadata{namespaceOf("ns", "blue")},
				services: []*core.Service{tc.service}, slices: []*discovery.EndpointSlice{tc.slice}}
			all, _ := w.index().Services(blue)
			if got := all[0].Checks(); fmt.Sprint(got) != fmt.Sprint(tc.want) {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}
