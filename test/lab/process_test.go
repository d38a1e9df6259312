// SPDX-License-Identifier: Apache-2.0

package lab_test

import (
	"context"
	"errors"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ovn-uplink/ovn-uplink/test/lab"
)

func itoa(n int) string { return strconv.Itoa(n) }

func TestProcess(t *testing.T) {
	l := lab.ForTest(t, lab.Options{NoAPIServer: true})
	n, err := l.AddNode(t.Context(), "worker-a")
	if err != nil {
		t.Fatal(err)
	}
	start := func(t *testing.T, name, script string, env ...string) *lab.Process {
		t.Helper()
		p, err := n.Start(t.Context(), name, []string{"sh", "-c", script}, env)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	waitLog := func(t *testing.T, p *lab.Process, want string) {
		t.Helper()
		err := lab.Eventually(t.Context(), 5*time.Second, func(context.Context) error {
			if !strings.Contains(p.Log(1000), want) {
				return errors.New("not in the log: " + want)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Run("ends by itself", func(t *testing.T) {
		t.Setenv("KUBECONFIG", "/a/persons")
		p := start(t, "short", `echo "$OVS_RUNDIR $EXTRA [$KUBECONFIG]"; ip -o link; exit 3`, "EXTRA=more")
		err := p.Wait(t.Context())
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 3 {
			t.Errorf("ended with %v", err)
		}
		if got := p.Log(1000); !strings.HasPrefix(got, n.OVS.RunDir()+" more []\n") || !strings.Contains(got, lab.ManagementInterface) {
			t.Errorf("printed %s", got)
		}
		s, err := lab.ReadStatus(l.Dir())
		if err != nil || s.Healthy() == nil || !strings.Contains(s.Healthy().Error(), "worker-a.short") {
			t.Errorf("status after that: %v, %v", err, s.Healthy())
		}
		if err := p.Stop(t.Context()); err != nil {
			t.Errorf("stopping what has ended: %v", err)
		}
	})
	t.Run("stop", func(t *testing.T) {
		p := start(t, "polite", "trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.05; done")
		waitLog(t, p, "up")
		if _, err := n.Start(t.Context(), "polite", []string{"true"}, nil); err == nil {
			t.Error("two processes of one name")
		}
		if rss, err := p.RSS(); err != nil || rss < 100<<10 || rss > 100<<20 {
			t.Errorf("memory: %d, %v", rss, err)
		}
		if err := p.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		if p.Running() || !strings.HasSuffix(p.Log(1000), "bye\n") {
			t.Errorf("after the stop: running %t, log %q", p.Running(), p.Log(1000))
		}
		if _, err := p.RSS(); err == nil {
			t.Error("memory of an ended process")
		}
		again := start(t, "polite", "echo again")
		if err := again.Wait(t.Context()); err != nil || !strings.HasSuffix(again.Log(1000), "bye\nagain\n") {
			t.Errorf("second run: %v, log %q", err, again.Log(1000))
		}
	})
	t.Run("stop of a stubborn one", func(t *testing.T) {
		p := start(t, "stubborn", "trap '' TERM; echo up; while :; do sleep 0.05; done")
		waitLog(t, p, "up")
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if err := p.Stop(ctx); !errors.Is(err, lab.ErrKilled) || p.Running() {
			t.Errorf("got %v, want %v; running %t", err, lab.ErrKilled, p.Running())
		}
	})
	t.Run("unknown command", func(t *testing.T) {
		if _, err := n.Start(t.Context(), "none", []string{"no-such-command"}, nil); err == nil {
			t.Error("it was started")
		}
		if _, err := n.Exec(t.Context(), "sh", "-c", "echo out; echo err >&2; exit 1"); err == nil ||
			!strings.Contains(err.Error(), "out") || !strings.Contains(err.Error(), "err") {
			t.Errorf("error without the output: %v", err)
		}
	})
}
