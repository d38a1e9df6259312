// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ovn-uplink/ovn-uplink/test/lab"
)

// asked is how often a test asks who has an address.
const asked = 5

// asks has the station ask for one of the Uplink's addresses, and checks that each request has one answer.
func (f *field) asks(p *post, family int, capture *lab.Capture) error {
	ctx, address := f.t.Context(), p.addresses[family]
	capture.Reset()
	for range asked {
		if _, err := f.station.IP(ctx, "neigh", "flush", "dev", lab.StationInterface); err != nil {
			return err
		}
		if _, err := f.station.Exec(ctx, "ping", "-c1", "-W3", address.String()); err != nil {
			return fmt.Errorf("the station and %s: %w", address, err)
		}
	}
	out := func(p lab.Packet) bool { return p.Outgoing }
	requests, answers := capture.Count(out, lab.Asking(address)), capture.Answered(address)
	total := 0
	for _, n := range answers {
		total += n
	}
	if len(answers) != 1 || total != requests || requests < asked {
		return fmt.Errorf("%d requests for %s have answers %v", requests, address, answers)
	}
	return nil
}

// patchAgain deletes the patch port between OVN and the bridge, and waits until ovn-controller has made another.
func (f *field) patchAgain(p *post) {
	f.t.Helper()
	find := func(ctx context.Context) (string, error) {
		out, err := p.ovs.OVS.Vsctl(ctx, "--bare", "--columns=name", "find", "Port", "external_ids:ovn-localnet-port!=\"\"")
		if err != nil {
			return "", err
		}
		for name := range strings.FieldsSeq(out) {
			bridge, err := p.ovs.OVS.Vsctl(ctx, "port-to-br", name)
			if err == nil && strings.TrimSpace(bridge) == p.bridge {
				return name, nil
			}
		}
		return "", errors.New("no patch port")
	}
	port := func(ctx context.Context, name string) string {
		out, _ := p.ovs.OVS.Vsctl(ctx, "--bare", "--columns=_uuid", "find", "Port", "name="+name) // empty without it
		return strings.TrimSpace(out)
	}
	name, err := find(f.t.Context())
	f.must(err)
	before := port(f.t.Context(), name)
	_, err = p.ovs.OVS.Vsctl(f.t.Context(), "del-port", p.bridge, name)
	f.must(err)
	f.must(lab.Eventually(f.t.Context(), 20*time.Second, func(ctx context.Context) error {
		name, err := find(ctx)
		if err == nil && port(ctx, name) == before {
			err = errors.New("the old patch port is still there")
		}
		return err
	}))
}
