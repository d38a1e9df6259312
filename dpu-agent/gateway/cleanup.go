// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ovn-uplink/ovn-uplink/dpu-agent/locate"
	"github.com/ovn-uplink/ovn-uplink/dpu-agent/ovn"
	"github.com/ovn-uplink/ovn-uplink/shared/kube"
)

// attentive is how long a command waits for the databases.
const attentive = 10 * time.Second

// Cleanup removes what is programmed for an Uplink, or for all if none is named, and tells what that was as it goes. It
// needs no API server. An agent that runs meanwhile puts everything back.
func Cleanup(ctx context.Context, system locate.System, config Config, uplink string, tell func(format string, args ...any)) error {
	return once(ctx, system, config, func(r *Role) error {
		var errs []error
		if err := r.nb.Ready(); err != nil {
			r.withoutOVN = true
			errs = append(errs, fmt.Errorf("the northbound database of OVN at %s is not there, its rows stay: %w", config.Northbound, err))
		}
		uplinks := r.programmed(r.nb)
		if uplink != "" {
			uplinks = []string{uplink}
		}
		for _, u := range uplinks {
			removed, err := r.clean(ctx, u)
			switch {
			case err != nil:
				errs = append(errs, fmt.Errorf("clean up Uplink %s: %w", u, err))
			case removed:
				tell("Uplink %s: removed what was programmed for it", u)
			default:
				tell("Uplink %s: nothing of it is here", u)
			}
		}
		if uplink != "" {
			return errors.Join(errs...)
		}
		if len(uplinks) == 0 {
			tell("no Uplink has OVN rows or a bridge mapping on this node")
		}
		_, err := r.sweep(ctx)
		return errors.Join(append(errs, err)...)
	})
}

// clean takes an Uplink down and waits until nothing is left of it.
func (r *Role) clean(ctx context.Context, uplink string) (removed bool, err error) {
	removed = r.holdsAnything(uplink)
	for {
		rest, err := r.takeDown(ctx, uplink)
		if err != nil || rest == 0 {
			return removed, err
		}
		select {
		case <-ctx.Done():
			return removed, ctx.Err()
		case <-time.After(min(rest, 100*time.Millisecond)):
		}
	}
}

// once makes a role that sees Open vSwitch and, if it is there, OVN, but not the API server, for one command.
func once(ctx context.Context, system locate.System, config Config, then func(*Role) error) error {
	return locate.Once(ctx, system, func(observer *locate.Observer) error {
		node, err := observer.Node()
		if err != nil {
			return fmt.Errorf("no node name: %w", err)
		}
		nb, err := ovn.New(ovn.Config{Endpoint: config.Northbound, Node: node, Ranges: config.Ranges})
		if err != nil {
			return err
		}
		ctx, cancel := context.WithCancel(ctx)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_ = nb.Run(ctx)
		}()
		defer func() {
			cancel()
			<-ended
		}()
		look, stop := context.WithTimeout(ctx, attentive)
		defer stop()
		_ = kube.WaitReady(look, nb) // the command says itself what is not there
		r := newRole(observer, config)
		r.world = &world{node: node, nb: nb}
		return then(r)
	})
}
