// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

func TestParseStat(t *testing.T) {
	const rest = " S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20 21"
	tests := []struct {
		name, line string
		start      uint64
		state      byte
		wantErr    bool
	}{
		{name: "plain", line: "12 (sh)" + rest, start: 4711, state: 'S'},
		{name: "spaces and parentheses in the command", line: "12 (a b) (c) R)" + rest, start: 4711, state: 'S'},
		{name: "no command", line: "12 sh S 1", wantErr: true},
		{name: "short", line: "12 (sh) S 1 2", wantErr: true},
		{name: "start is no number", line: "12 (sh) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 x", wantErr: true},
		{name: "empty", wantErr: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			start, state, err := parseStat(tt.line)
			if (err != nil) != tt.wantErr || start != tt.start || state != tt.state {
				t.Errorf("got %d, %q, %v", start, state, err)
			}
		})
	}
}

// sleeper starts a process that is not the lab's and ends it with the test.
func sleeper(t *testing.T) identity {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sleep", "600")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Wait() }) // the context has ended by then
	id, err := identify(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// reused returns what a record would say if the process had been given the
// pid of one of the lab's that ended.
func reused(id identity) []identity {
	earlier, otherBoot := id, id
	earlier.Start--
	otherBoot.Boot = "another"
	return []identity{earlier, otherBoot}
}

func TestSignalSparesReusedPid(t *testing.T) {
	id := sleeper(t)
	for _, other := range reused(id) {
		if other.alive() {
			t.Errorf("%+v counts as alive", other)
		}
		if err := other.signal(syscall.SIGKILL); !errors.Is(err, os.ErrProcessDone) {
			t.Errorf("signal to %+v: %v, want %v", other, err, os.ErrProcessDone)
		}
	}
	if !id.alive() {
		t.Error("the process that has the pid now was ended")
	}
	if err := id.signal(syscall.SIGKILL); err != nil {
		t.Errorf("signal to the process itself: %v", err)
	}
	if err := allEnded(t.Context(), stopGrace, []identity{id}); err != nil {
		t.Error(err)
	}
}

func TestDownSparesReusedPid(t *testing.T) {
	id := sleeper(t)
	d := layout{filepath.Join(t.TempDir(), "lab")}
	if err := writeJSON(d.marker(), marker{}); err != nil {
		t.Fatal(err)
	}
	for i, other := range reused(id) {
		name := string(rune('a' + i))
		if err := writeJSON(filepath.Join(d.processes(), name+".json"), processRecord{Name: name, ID: other}); err != nil {
			t.Fatal(err)
		}
	}
	if err := Down(t.Context(), d.dir); err != nil {
		t.Fatal(err)
	}
	if !id.alive() {
		t.Error("Down ended a process that is not the lab's")
	}
	if _, err := os.Stat(d.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory is still there: %v", err)
	}
}
