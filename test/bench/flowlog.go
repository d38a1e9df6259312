// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"os"
	"strings"
	"time"

	"github.com/ovn-uplink/ovn-uplink/test/lab"
)

// flowLog has every change of a bridge's flows, whoever made it: an ovs-ofctl that monitors the bridge writes them to
// its log.
type flowLog struct{ *lab.Process }

// watchFlows starts to log.
func watchFlows(ctx context.Context, n *lab.Node, bridge string) (*flowLog, error) {
	p, err := n.Start(ctx, "flow-log", []string{"ovs-ofctl", "-O", "OpenFlow14", "monitor", bridge, "watch:!initial"}, nil)
	if err != nil {
		return nil, err
	}
	return &flowLog{p}, nil
}

// changes is how many there were so far.
func (f *flowLog) changes() (int, error) {
	if !f.Running() {
		return 0, errors.New("the monitor of the bridge's flows has ended: " + f.Log(500))
	}
	text, err := os.ReadFile(f.LogPath)
	if err != nil {
		return 0, err
	}
	return countChanges(string(text)), nil
}

// countChanges counts the lines that are about a flow.
func countChanges(log string) (n int) {
	for line := range strings.Lines(log) {
		if strings.HasPrefix(strings.TrimSpace(line), "event=") && !strings.Contains(line, "event=ABBREV") {
			n++
		}
	}
	return n
}

// settleFlows is how long after a change is made the monitor may take to tell.
const settleFlows = 500 * time.Millisecond
