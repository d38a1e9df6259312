// SPDX-License-Identifier: Apache-2.0

package openflow

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// Only OpenFlow 1.0 has a port setting for floods, OFPPC_NO_FLOOD.
const floodVersion = "-OOpenFlow10"

// floods tells whether a flood on the bridge reaches a port, and whether there is such a port.
func (o ofctl) floods(ctx context.Context, bridge string, port uint32) (floods, exists bool, err error) {
	here := false
	read := func(line string) error {
		line = strings.TrimSpace(line)
		if n, _, found := strings.Cut(line, "("); found && strings.Contains(line, "): addr:") {
			here = n == number(port)
			exists = exists || here
		}
		if config, found := strings.CutPrefix(line, "config:"); found && here {
			floods = !slices.Contains(strings.Fields(config), "NO_FLOOD")
		}
		return nil
	}
	err = o.run(ctx, nil, read, floodVersion, "--no-names", "dump-ports-desc", o.target(bridge))
	if err != nil {
		return false, false, fmt.Errorf("read the ports of bridge %s: %w", bridge, err)
	}
	return floods, exists, nil
}

// setFlood has floods reach a port or not.
func (o ofctl) setFlood(ctx context.Context, bridge string, port uint32, floods bool) error {
	setting := "no-flood"
	if floods {
		setting = "flood"
	}
	err := o.run(ctx, nil, nil, floodVersion, "--no-names", "mod-port", o.target(bridge), number(port), setting)
	if err != nil {
		return fmt.Errorf("set %s on port %d of bridge %s: %w", setting, port, bridge, err)
	}
	return nil
}

// quiet keeps floods from a port that they still reach. changed says whether that took anything.
func (o ofctl) quiet(ctx context.Context, bridge string, port uint32) (changed bool, err error) {
	floods, exists, err := o.floods(ctx, bridge, port)
	switch {
	case err != nil:
		return false, err
	case !exists:
		return false, fmt.Errorf("bridge %s has no port %d", bridge, port)
	case !floods:
		return false, nil
	}
	if err := o.setFlood(ctx, bridge, port, false); err != nil {
		return true, err
	}
	floods, _, err = o.floods(ctx, bridge, port)
	if err == nil && floods {
		err = fmt.Errorf("floods of bridge %s reach port %d although that was turned off", bridge, port)
	}
	return true, err
}
