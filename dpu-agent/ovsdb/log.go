// SPDX-License-Identifier: Apache-2.0

package ovsdb

import (
	"context"
	"log/slog"
	"strings"

	"github.com/go-logr/logr"
)

// maxVerbosity leaves out libovsdb's level 5, which prints every row that it touches.
const maxVerbosity = 4

// sink passes what libovsdb logs on at Debug, whatever level it has there: what matters of it is logged by
// Client, once.
type sink struct {
	log *slog.Logger
	// broken is told of an update that could not be applied.
	broken func(error)
}

// brokenMessage begins what libovsdb logs when it could not apply an update (cache.TableCache.Update and Update2).
// For updates of a monitor_cond_since it says so nowhere else, and goes on with a copy that is wrong from then on.
const brokenMessage = "during libovsdb cache populate"

func (s sink) Init(logr.RuntimeInfo) {}

func (s sink) Enabled(level int) bool {
	return level <= maxVerbosity && s.log.Enabled(context.Background(), slog.LevelDebug)
}

func (s sink) Info(_ int, message string, pairs ...any) { s.log.Debug("libovsdb: "+message, pairs...) }

func (s sink) Error(err error, message string, pairs ...any) {
	if strings.HasPrefix(message, brokenMessage) {
		s.broken(err)
	}
	s.log.Debug("libovsdb: "+message, append(pairs, "error", err)...)
}

func (s sink) WithValues(pairs ...any) logr.LogSink { return sink{s.log.With(pairs...), s.broken} }

func (s sink) WithName(string) logr.LogSink { return s }
