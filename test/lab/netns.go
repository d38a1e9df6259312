// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// netnsDir is where ip-netns(8) keeps named namespaces.
const netnsDir = "/run/netns"

// namespace is the record of one network namespace.
type namespace struct {
	// Name is the node's, or "api".
	Name string `json:"name"`
	// NetNS is the name that ip-netns(8) knows.
	NetNS string `json:"netns"`
	// Address is the namespace's own on the management network, empty
	// when it is not on it.
	Address string `json:"address,omitempty"`
	// Role is "api", "node", "external" or "pod".
	Role string `json:"role"`
	// Env is what commands there need to find the node's own Open vSwitch.
	Env []string `json:"env,omitempty"`
}

// addNamespace records a namespace, then makes it.
func (l *Lab) addNamespace(ctx context.Context, ns namespace) error {
	path := l.state.namespaceRecord(ns.Name)
	if _, err := os.Stat(path); err == nil {
		return fmt.Errorf("add namespace %s: %w", ns.Name, fs.ErrExist)
	}
	if err := writeJSON(path, ns); err != nil {
		return err
	}
	if _, err := ip(ctx, "", "netns", "add", ns.NetNS); err != nil {
		return fmt.Errorf("add namespace %s: %w", ns.Name, err)
	}
	_, err := ip(ctx, ns.NetNS, "link", "set", "lo", "up")
	return err
}

// listNamespaces returns what is recorded, sorted by name.
func (d layout) listNamespaces() ([]namespace, error) {
	files, err := filepath.Glob(filepath.Join(d.namespaces(), "*.json"))
	if err != nil {
		return nil, fmt.Errorf("list namespaces: %w", err)
	}
	all := make([]namespace, 0, len(files))
	for _, f := range files {
		var ns namespace
		if err := readJSON(f, &ns); err != nil {
			return nil, err
		}
		all = append(all, ns)
	}
	slices.SortFunc(all, func(a, b namespace) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// exists says whether the namespace is there now.
func (ns namespace) exists() bool {
	_, err := os.Stat(filepath.Join(netnsDir, ns.NetNS))
	return err == nil
}

// remove deletes the namespace. One that is not there is no error.
func (ns namespace) remove(ctx context.Context) error {
	if !ns.exists() {
		return nil
	}
	if _, err := ip(ctx, "", "netns", "del", ns.NetNS); err != nil && ns.exists() {
		return err
	}
	return nil
}

// ip runs ip(8), inside netns unless that is empty.
func ip(ctx context.Context, netns string, args ...string) (string, error) {
	argv := []string{"ip"}
	if netns != "" {
		argv = append(argv, "-n", netns)
	}
	return command{argv: append(argv, args...), env: baseEnv()}.run(ctx)
}

// ipAll runs several commands of ip(8) inside netns, in one process. It stops
// at the first that fails, which the error names.
func ipAll(ctx context.Context, netns string, lines ...string) error {
	c := command{
		argv:  []string{"ip", "-n", netns, "-batch", "-"},
		env:   baseEnv(),
		stdin: strings.Join(lines, "\n") + "\n",
	}
	if _, err := c.run(ctx); err != nil {
		return fmt.Errorf("in %s: %w; commands were:\n%s", netns, err, strings.Join(lines, "\n"))
	}
	return nil
}

// noOffload makes the interfaces of a namespace compute checksums before they
// send. A userspace switch on the other end forwards packets as they are, and
// a checksum left for hardware to fill in would never be right.
func noOffload(ctx context.Context, netns string, interfaces ...string) error {
	var errs []error
	for _, name := range interfaces {
		c := command{argv: []string{"ip", "netns", "exec", netns, "ethtool", "-K", name, "tx", "off"}, env: baseEnv()}
		if _, err := c.run(ctx); err != nil {
			errs = append(errs, fmt.Errorf("turn off transmit offload of %s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}
