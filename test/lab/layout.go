// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// ErrNotALab is returned when a directory that is to be cleaned holds
// something, but no lab.
var ErrNotALab = errors.New("directory is not empty and holds no lab")

// layout names everything below a lab's state directory.
type layout struct{ dir string }

func (d layout) marker() string     { return filepath.Join(d.dir, "lab.json") }
func (d layout) processes() string  { return filepath.Join(d.dir, "rec", "proc") }
func (d layout) namespaces() string { return filepath.Join(d.dir, "rec", "ns") }
func (d layout) namespaceRecord(name string) string {
	return filepath.Join(d.namespaces(), name+".json")
}
func (d layout) logs() string              { return filepath.Join(d.dir, "log") }
func (d layout) log(process string) string { return filepath.Join(d.logs(), process+".log") }
func (d layout) api() string               { return filepath.Join(d.dir, "api") }
func (d layout) apiFile(name string) string {
	return filepath.Join(d.api(), name)
}
func (d layout) kubeconfig() string      { return filepath.Join(d.dir, "kubeconfig") }
func (d layout) node(name string) string { return filepath.Join(d.dir, "n", name) }
func (d layout) userConfig(user string) string {
	file := strings.NewReplacer("/", "_", ":", "_").Replace(user)
	return filepath.Join(d.dir, "users", file+".kubeconfig")
}

// prefix is what the names of the lab's namespaces start with: two labs on
// one machine must not share any.
func (d layout) prefix() string {
	sum := sha256.Sum256([]byte(d.dir))
	return "ou" + hex.EncodeToString(sum[:3])
}

// marker says that a directory is a lab's and who made it.
type marker struct {
	Prefix string `json:"prefix"`
	// Port is the forwarder's on 127.0.0.1.
	Port int `json:"port,omitempty"`
	// Owner is the process that called New.
	Owner identity `json:"owner"`
	// Ephemeral labs die with their owner: whoever comes next may remove
	// one whose owner is gone.
	Ephemeral bool `json:"ephemeral,omitempty"`
}

// readMarker returns fs.ErrNotExist when there is no lab in the directory.
func (d layout) readMarker() (marker, error) {
	var m marker
	return m, readJSON(d.marker(), &m)
}

// BaseDir is where labs live that nobody gave a directory. What is recorded in a lab is believed by root when it
// ends one, so it is no directory that others may write to.
func BaseDir() string { return "/var/lib/ovn-uplink-lab" }

// DefaultDir is where a lab lives when Options.Dir is empty.
func DefaultDir() string { return filepath.Join(BaseDir(), "lab") }

// absDir resolves dir, or the default directory when it is empty.
func absDir(dir string) (layout, error) {
	if dir == "" {
		dir = DefaultDir()
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return layout{}, fmt.Errorf("resolve lab directory %s: %w", dir, err)
	}
	return layout{abs}, nil
}

// writeJSON replaces path in one step, so that a reader sees the old content
// or the new, also when the writer is killed.
func writeJSON(path string, v any) error {
	raw, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("encode %s: %w", path, err)
	}
	return writeFile(path, append(raw, '\n'), 0o644)
}

func writeFile(path string, content []byte, mode fs.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	tmp := path + ".tmp"
	if err := os.WriteFile(tmp, content, mode); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := os.Rename(tmp, path); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

func readJSON(path string, v any) error {
	raw, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	if err := json.Unmarshal(raw, v); err != nil {
		return fmt.Errorf("decode %s: %w", path, err)
	}
	return nil
}
