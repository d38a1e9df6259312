// SPDX-License-Identifier: Apache-2.0

package lab_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ovn-uplink/ovn-uplink/test/lab"
)

func TestRestartOVN(t *testing.T) {
	onVersions(t, func(t *testing.T, l *lab.Lab, _ lab.Version) {
		ctx := t.Context()
		zones := startZones(t, l, "worker-a", "worker-b")
		z := zones[0]
		n := addNetwork(t, l, lab.NetworkSpec{CUDN: "blue"}, zones...)
		a, b := addPod(t, n, z, "a"), addPod(t, n, zones[1], "b")
		ping(t, a.Node, b.Addresses[0], 5*time.Second)
		for _, step := range []struct {
			name string
			end  func(context.Context) error
			do   func(context.Context) error
		}{
			{"northbound database", z.NBProcess().Kill, z.StartNB},
			{"southbound database", z.StopSB, z.StartSB},
			{"ovn-northd", z.NorthdProcess().Kill, z.StartNorthd},
			{"ovn-controller killed", z.ControllerProcess().Kill, z.StartController},
			{"ovs-vswitchd", z.Node.OVS.VswitchdProcess().Kill, func(ctx context.Context) error {
				return errors.Join(z.Node.OVS.StartVswitchd(ctx), z.ConfigureTunnels(ctx))
			}},
		} {
			if err := errors.Join(step.end(ctx), step.do(ctx)); err != nil {
				t.Fatalf("%s: %v", step.name, err)
			}
			if err := z.Sync(ctx); err != nil {
				t.Errorf("%s: %v", step.name, err)
			}
			ping(t, a.Node, b.Addresses[0], 10*time.Second)
		}
		if err := errors.Join(z.StopController(ctx), z.StopNorthd(ctx), z.StopNB(ctx)); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(z.StartNB(ctx), z.StartNorthd(ctx), z.StartController(ctx)); err != nil {
			t.Fatal(err)
		}
		ping(t, a.Node, b.Addresses[0], 10*time.Second)
		addPod(t, n, z, "c")
	})
}

func TestChassisName(t *testing.T) {
	for name, spec := range map[string]lab.OVNSpec{
		"system-id":     {SystemID: "chassis-1"},
		"override file": {SystemID: "chassis-1", Override: "chassis-2"},
	} {
		t.Run(name, func(t *testing.T) {
			l := lab.ForTest(t, lab.Options{NoAPIServer: true})
			ctx := t.Context()
			p, err := l.Pair(ctx, "worker-b", lab.PairSpec{})
			if err != nil {
				t.Fatal(err)
			}
			z, err := p.Card.StartOVN(ctx, spec)
			if err != nil {
				t.Fatal(err)
			}
			want := spec.SystemID
			if spec.Override != "" {
				want = spec.Override
			}
			got, err := z.Sbctl(ctx, "--bare", "--columns=name", "list", "Chassis")
			if err != nil || strings.TrimSpace(got) != want || z.Chassis != want {
				t.Errorf("chassis is %q, %q for the lab, want %s; %v", got, z.Chassis, want, err)
			}
			if got, err := p.Card.Exec(ctx, "ovn-nbctl", "get", "NB_Global", ".", "name"); err != nil || strings.TrimSpace(got) != "worker-b" {
				t.Errorf("a command on the card finds zone %q, %v, want the host's", got, err)
			}
			shown := func(alive bool) {
				t.Helper()
				want := []lab.ZoneStatus{{Node: "worker-b-dpu", Northbound: z.NB(), Alive: alive}}
				if s, err := lab.ReadStatus(l.Dir()); err != nil || !slices.Equal(s.Zones, want) {
					t.Errorf("status shows %+v, %v, want %+v", s.Zones, err, want)
				}
			}
			shown(true)
			// Rows are named after the Node object, and a card has none.
			n := addNetwork(t, l, lab.NetworkSpec{CUDN: "blue"}, z)
			if got, err := z.Nbctl(ctx, "get", "Logical_Router_Port", "rtos-"+n.Prefix+"worker-b", "_uuid"); err != nil {
				t.Errorf("router port of the host's name: %q, %v", got, err)
			}
			if err := z.StopNorthd(ctx); err != nil {
				t.Fatal(err)
			}
			shown(false)
		})
	}
}
