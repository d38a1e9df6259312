// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"log/slog"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	// probeInterval is how often an API server or CRD that is not there yet is looked for. An informer alone
	// would back off to half a minute.
	probeInterval = time.Second
	// probeReminder is how often the wait is logged again while its cause stays the same.
	probeReminder = 30 * time.Second
)

// waitFor returns when the probe succeeds or the context ends, and says what it waits for.
func waitFor(ctx context.Context, what string, probe func(context.Context) error) error {
	var last string
	var logged time.Time
	ticker := time.NewTicker(probeInterval)
	defer ticker.Stop()
	for {
		err := probe(ctx)
		if err == nil {
			if last != "" {
				slog.Info("API is available", "resource", what)
			}
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		cause := diagnose(err)
		if cause != last || time.Since(logged) > probeReminder {
			slog.Warn("waiting for the API server", "resource", what, "cause", cause, "error", err)
			last, logged = cause, time.Now()
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

func diagnose(err error) string {
	switch {
	case apierrors.IsNotFound(err):
		return "the CRD is not installed"
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		return "the credentials are not allowed to list it"
	case apierrors.ReasonForError(err) != "":
		return "the API server answers with an error"
	default:
		return "the API server cannot be reached"
	}
}

// Source is something that a role has to see whole before it may conclude anything.
type Source interface{ Ready() error }

// WaitReady returns when all sources are ready or the context ends.
func WaitReady(ctx context.Context, sources ...Source) error {
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		if AllReady(sources...) == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

// AllReady is the error of the first source that is not ready.
func AllReady(sources ...Source) error {
	for _, source := range sources {
		if err := source.Ready(); err != nil {
			return err
		}
	}
	return nil
}
