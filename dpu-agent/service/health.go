// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// retryListen is how often a port that could not be listened on is tried again.
	retryListen = 10 * time.Second
	// maxListeners and maxConnections bound what services and those who ask can make of this process.
	maxListeners   = 2000
	maxConnections = 256
	// A question is one small packet, and so is the answer.
	questionTimeout = 5 * time.Second
	maxQuestion     = 4096
)

// Place is where health checks are answered: an address of an Uplink.
type Place struct {
	Address netip.Addr
	// Device is the VRF that the address is in, empty for none.
	Device string
}

// Health answers load balancers outside that ask on a service's health check node port whether this node has
// endpoints of it: 200 if so, else 503, in both cases with their number.
type Health struct {
	server  http.Server
	slots   chan struct{}
	serving sync.WaitGroup

	mu     sync.Mutex
	ended  bool
	wanted map[listenAt]HealthCheck
	open   map[listenAt]net.Listener
	failed map[listenAt]string // what was said of it
}

type listenAt struct {
	place Place
	port  uint16
}

// NewHealth makes a Health that answers nothing yet.
func NewHealth() *Health {
	h := &Health{
		slots:  make(chan struct{}, maxConnections),
		open:   map[listenAt]net.Listener{},
		failed: map[listenAt]string{},
	}
	h.server = http.Server{
		Handler: h,
		BaseContext: func(l net.Listener) context.Context {
			return context.WithValue(context.Background(), atKey{}, l.(*bounded).at)
		},
		ReadHeaderTimeout: questionTimeout,
		ReadTimeout:       questionTimeout,
		WriteTimeout:      questionTimeout,
		IdleTimeout:       questionTimeout,
		MaxHeaderBytes:    maxQuestion,
		ErrorLog:          slog.NewLogLogger(slog.Default().Handler(), slog.LevelDebug),
	}
	// Who asks comes back with a new connection.
	h.server.SetKeepAlivesEnabled(false)
	return h
}

// Set has exactly these checks answered at exactly these places. Where somebody else answers already, mostly the
// CNI, that is as good; what else goes wrong is logged once, and tried again from time to time.
func (h *Health) Set(checks map[Place][]HealthCheck) {
	wanted := map[listenAt]HealthCheck{}
	asked := 0
	for place, at := range checks {
		asked += len(at)
		for _, c := range at {
			if len(wanted) < maxListeners {
				wanted[listenAt{place, c.Port}] = c
			}
		}
	}
	if asked > maxListeners {
		slog.Warn("too many health check node ports", "ports", asked, "answered", maxListeners)
	}
	h.mu.Lock()
	if !h.ended {
		h.wanted = wanted
	}
	h.mu.Unlock()
	h.converge()
}

// Run tries again what failed, until the context ends; then it answers nothing any more.
func (h *Health) Run(ctx context.Context) {
	retry := time.NewTicker(retryListen)
	defer retry.Stop()
	for {
		select {
		case <-ctx.Done():
			h.end()
			return
		case <-retry.C:
			h.converge()
		}
	}
}

func (h *Health) end() {
	h.mu.Lock()
	h.ended = true
	h.wanted = nil
	h.mu.Unlock()
	h.converge()
	_ = h.server.Close() // no answer is worth waiting for
	h.serving.Wait()
}

// converge closes what is not wanted and opens what is.
func (h *Health) converge() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for at, l := range h.open {
		if _, wanted := h.wanted[at]; !wanted {
			_ = l.Close()
			delete(h.open, at)
		}
	}
	for at := range h.failed {
		if _, wanted := h.wanted[at]; !wanted {
			delete(h.failed, at)
		}
	}
	for at, check := range h.wanted {
		if h.open[at] != nil {
			continue
		}
		l, err := h.listen(at)
		if err != nil {
			h.note(at, check, err)
			continue
		}
		delete(h.failed, at)
		h.open[at] = l
		h.serving.Go(func() { h.serve(at, l) })
	}
}

// serve answers until the listener is closed, or fails.
func (h *Health) serve(at listenAt, l net.Listener) {
	_ = h.server.Serve(l)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.open[at] == l {
		delete(h.open, at)
	}
}

func (h *Health) note(at listenAt, check HealthCheck, err error) {
	text := err.Error()
	if h.failed[at] == text {
		return
	}
	h.failed[at] = text
	if errors.Is(err, syscall.EADDRINUSE) {
		slog.Info("somebody else answers a health check node port", "service", check.Service, "address", at.place.Address, "port", at.port)
		return
	}
	slog.Warn("cannot answer on a health check node port", "service", check.Service, "error", err)
}

// atKey is under what a request's context has the listenAt that it came in by.
type atKey struct{}

func (h *Health) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	at, _ := r.Context().Value(atKey{}).(listenAt)
	h.mu.Lock()
	check, wanted := h.wanted[at]
	h.mu.Unlock()
	if !wanted {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	namespace, name, _ := strings.Cut(check.Service, "/")
	body, err := json.Marshal(map[string]any{
		"service":        map[string]string{"namespace": namespace, "name": name},
		"localEndpoints": check.Endpoints,
	})
	if err != nil {
		slog.Error("encode a health check", "service", check.Service, "error", err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("X-Load-Balancing-Endpoint-Weight", strconv.Itoa(check.Endpoints))
	if check.Endpoints == 0 {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_, _ = w.Write(body)
}
