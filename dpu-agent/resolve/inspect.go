// SPDX-License-Identifier: Apache-2.0

package resolve

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ovn-uplink/ovn-uplink/shared/kube"
	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
)

// lookTimeout is how long Inspect waits for Open vSwitch and the card.
const lookTimeout = 10 * time.Second

// Inspect follows the chain once, from a host's data to the wire, with the code that the role decides with. The
// error is about Open vSwitch or the card not being there; what is wrong with the chain is in the report.
func Inspect(ctx context.Context, system System, regular bool, host uplinkstate.HostData) (Report, error) {
	var report Report
	err := once(ctx, system, func(e *eyes) error {
		seen, err := e.look()
		if err != nil {
			return err
		}
		locate := onCard
		if regular {
			locate = onNode
		}
		_, report, err = find(seen, locate, host)
		if errors.As(err, new(*uplinkstate.Problem)) || report.Unknown != "" {
			return nil
		}
		return err
	})
	return report, err
}

// HostNode is the name that Open vSwitch has of the Node that the card serves.
func HostNode(ctx context.Context, system System) (string, error) {
	var name string
	err := once(ctx, system, func(e *eyes) (err error) {
		r := &Role{eyes: e}
		name, err = r.node()
		return err
	})
	return name, err
}

// once runs the monitors until they have seen everything, and then the function.
func once(ctx context.Context, system System, then func(*eyes) error) error {
	e, err := open(system)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		e.run(ctx)
	}()
	defer func() {
		cancel()
		<-ended
	}()
	if kube.WaitReady(ctx, e.ovs, e.card) != nil {
		return fmt.Errorf("not there within %s: %w", lookTimeout, errors.Join(e.ovs.Ready(), e.card.Ready()))
	}
	return then(e)
}
