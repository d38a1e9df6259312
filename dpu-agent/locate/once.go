// SPDX-License-Identifier: Apache-2.0

package locate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ovn-uplink/ovn-uplink/shared/kube"
	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
)

// lookTimeout is how long Once waits until Open vSwitch and the card are seen.
const lookTimeout = 10 * time.Second

// Inspect follows the chain once, from a host's data to the wire. The error is about Open vSwitch or the card not
// being there; what is wrong with the chain is in the report.
func Inspect(ctx context.Context, system System, host uplinkstate.HostData) (Report, error) {
	var report Report
	err := Once(ctx, system, func(o *Observer) (err error) {
		_, report, err = o.Find(host)
		if errors.As(err, new(*uplinkstate.Problem)) || report.Unknown != "" {
			return nil
		}
		return err
	})
	return report, err
}

// HostNode is the name of the Node that the card serves, as Open vSwitch has it.
func HostNode(ctx context.Context, system System) (string, error) {
	var name string
	err := Once(ctx, system, func(o *Observer) (err error) {
		name, err = o.Node()
		return err
	})
	return name, err
}

// Once runs an Observer, and once it has seen everything the function.
func Once(ctx context.Context, system System, then func(*Observer) error) error {
	o, err := Open(system)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = o.Run(ctx)
	}()
	defer func() {
		cancel()
		<-ended
	}()
	look, stop := context.WithTimeout(ctx, lookTimeout)
	defer stop()
	if kube.WaitReady(look, o.OVS, o.card) != nil {
		return fmt.Errorf("not there within %s: %w", lookTimeout, errors.Join(o.OVS.Ready(), o.card.Ready()))
	}
	return then(o)
}
