// SPDX-License-Identifier: Apache-2.0

package locate

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
)

// hostNodeNameKey is the external_ids key by which OVN-Kubernetes names the host of a DPU.
const hostNodeNameKey = "host-k8s-nodename"

// Node is the name of the Node that is served: the one given, else the one that Open vSwitch has. The error says what
// is waited for.
func (o *Observer) Node() (string, error) {
	if o.system.HostNode != "" {
		return o.system.HostNode, nil
	}
	view, known := o.OVS.Latest()
	if !known {
		return "", fmt.Errorf("for Open vSwitch, to learn the host's node name: %w", o.OVS.Ready())
	}
	name := view.ExternalIDs[hostNodeNameKey]
	if name == "" {
		return "", fmt.Errorf("for the host's node name: set it with 'ovs-vsctl set Open_vSwitch . external_ids:%s=NODE', or give --host-node-name", hostNodeNameKey)
	}
	if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
		return "", fmt.Errorf("for a valid host node name: external_ids:%s is %q", hostNodeNameKey, name)
	}
	return name, nil
}

// WaitNode returns the name of the Node once it is known, and says what it waits for. An error is the context's.
func (o *Observer) WaitNode(ctx context.Context) (string, error) {
	var said string
	for {
		name, err := o.Node()
		if err == nil {
			return name, nil
		}
		if said != err.Error() {
			said = err.Error()
			slog.Warn("waiting", "cause", err)
		}
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// WatchNode returns an error when Open vSwitch names another host: everything has to be started anew then. It
// returns nil when the context ends.
func (o *Observer) WatchNode(ctx context.Context, node string) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Second):
		}
		if now, err := o.Node(); err == nil && now != node {
			return fmt.Errorf("the host of this DPU changed from %s to %s; starting anew", node, now)
		}
	}
}
