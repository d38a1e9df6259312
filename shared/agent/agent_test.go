// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

type fakeRole struct {
	name           string
	ready, healthy error
	run            func(context.Context) error
}

func (f fakeRole) Name() string                { return f.name }
func (f fakeRole) Run(c context.Context) error { return f.run(c) }
func (f fakeRole) Ready() error                { return f.ready }
func (f fakeRole) Healthy(time.Time) error     { return f.healthy }

func TestChecksNameTheRoleAndTheCause(t *testing.T) {
	roles := []Role{fakeRole{name: "host"}, fakeRole{name: "resolve", ready: errors.New("waiting for Open vSwitch")}}
	answer := httptest.NewRecorder()
	checks(roles, Role.Ready)(answer, nil)
	if answer.Code != http.StatusServiceUnavailable || !strings.Contains(answer.Body.String(), "host: ok\nresolve: waiting for Open vSwitch\n") {
		t.Errorf("%d %q", answer.Code, answer.Body)
	}
	answer = httptest.NewRecorder()
	checks(roles, func(r Role) error { return r.Healthy(time.Now()) })(answer, nil)
	if answer.Code != http.StatusOK {
		t.Errorf("%d %q: a role that waits is healthy", answer.Code, answer.Body)
	}
}

func TestRunEndsWithTheRoleThatCannot(t *testing.T) {
	broken := errors.New("cannot be done")
	other := make(chan struct{})
	err := Run(t.Context(), Options{},
		fakeRole{name: "a", run: func(context.Context) error { return broken }},
		fakeRole{name: "b", run: func(ctx context.Context) error { <-ctx.Done(); close(other); return nil }})
	if !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	select {
	case <-other:
	default:
		t.Error("Run returned before the other role had ended")
	}
}

func TestRunEndsOrderly(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	err := Run(ctx, Options{}, fakeRole{name: "a", run: func(ctx context.Context) error { cancel(); <-ctx.Done(); return ctx.Err() }})
	if err != nil {
		t.Errorf("got %v", err)
	}
}

func TestHealthAddressInUse(t *testing.T) {
	first, err := serve("127.0.0.1:0", nil)
	if err != nil {
		t.Fatal(err)
	}
	first.close()
	if _, err := serve("203.0.113.1:80", nil); !errors.As(err, new(*UsageError)) {
		t.Errorf("an address that is not this machine's: %v", err)
	}
}

// Names come from the other side of the split and from OVSDB; they cannot move the cursor, nor break the table.
func TestTablePrintsTextOnly(t *testing.T) {
	var b bytes.Buffer
	table := NewTable(&b)
	table.Line("port", "%s\t%v (%d)", "evil\x1b[2J\nname", errors.New("a\tb"), 7)
	table.Flush()
	if got := b.String(); got != "port  evil[2J name  a b (7)\n" {
		t.Errorf("%q", got)
	}
}

func TestPrint(t *testing.T) {
	var b bytes.Buffer
	text := func(w io.Writer) { _, _ = io.WriteString(w, "as text") }
	if err := Print(&b, "text", 1, text); err != nil || b.String() != "as text" {
		t.Errorf("%q %v", b.String(), err)
	}
	b.Reset()
	if err := Print(&b, "json", map[string]string{"a": "<b>"}, text); err != nil || b.String() != "{\n  \"a\": \"<b>\"\n}\n" {
		t.Errorf("%q %v", b.String(), err)
	}
	if err := Print(&b, "yaml", 1, text); !errors.As(err, new(*UsageError)) {
		t.Errorf("got %v", err)
	}
}
