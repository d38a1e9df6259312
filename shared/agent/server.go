// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// server answers /healthz, /readyz and /metrics.
type server struct{ http *http.Server }

func serve(address string, roles []Role) (*server, error) {
	if address == "" {
		return &server{}, nil
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", checks(roles, func(r Role) error { return r.Healthy(time.Now()) }))
	mux.HandleFunc("/readyz", checks(roles, Role.Ready))
	mux.Handle("/metrics", promhttp.Handler())
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, Usagef("--health-address: %w", err)
	}
	s := &server{&http.Server{Handler: mux, ReadTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second}}
	go func() {
		if err := s.http.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			slog.Error("health endpoint stopped", "error", err)
		}
	}()
	return s, nil
}

func (s *server) close() {
	if s.http == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = s.http.Shutdown(ctx)
}

// checks answers 200 when the check of every role is nil, else 503; one line a role says which and why.
func checks(roles []Role, check func(Role) error) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		status := http.StatusOK
		var body strings.Builder
		for _, role := range roles {
			if err := check(role); err != nil {
				status = http.StatusServiceUnavailable
				fmt.Fprintf(&body, "%s: %v\n", role.Name(), err)
			} else {
				fmt.Fprintf(&body, "%s: ok\n", role.Name())
			}
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body.String()))
	}
}
