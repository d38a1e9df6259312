// SPDX-License-Identifier: Apache-2.0

package openflow

import (
	"strings"
	"testing"

	"github.com/ovn-uplink/ovn-uplink/test/lab"
)

// TestZones: every bridge has a zone of its own, and has it again after a restart, without any file.
func TestZones(t *testing.T) {
	eachOVS(t, func(t *testing.T, build *lab.OVSBuild) {
		r := newRig(t, build)
		r.vsctl(t, "add-br", "br1", "--", "set", "bridge", "br1", "datapath_type=netdev")
		config := Config{RunDir: r.node.OVS.RunDir(), Program: r.ofctl, FirstZone: 700, LastZone: 701}
		zone := func(p *Programmer, bridge string, want uint16) uint16 {
			t.Helper()
			got, err := p.Zone(t.Context(), bridge)
			if do(t, err); got != want {
				t.Errorf("bridge %s has zone %d, want %d", bridge, got, want)
			}
			return got
		}
		p := New(config)
		b := dual(t)
		zone(p, "brn", 700)
		b.Zone = zone(p, "br0", 701)
		program(t, p, b)
		if _, err := p.Zone(t.Context(), "br1"); err == nil || !strings.Contains(err.Error(), "700 to 701 are in use") {
			t.Errorf("a third bridge: %v", err)
		}
		p = New(config)
		zone(p, "br1", 700) // no flow says that brn had it
		zone(p, "br0", 701)
		do(t, p.Remove(t.Context(), "br0"))
		zone(p, "brn", 701)
		if _, err := p.Zone(t.Context(), "nowhere"); err == nil {
			t.Error("a bridge that does not exist has a zone")
		}
	})
}
