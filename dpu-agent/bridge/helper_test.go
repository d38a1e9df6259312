// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// view makes a View of bridges, sorted as the database's would be, in which br-eth0 is the default gateway bridge.
func view(bridges ...Bridge) *View {
	v := &View{Chassis: "c1", ExternalIDs: map[string]string{"ovn-bridge-mappings": "physnet:br-eth0"}, Bridges: bridges}
	slices.SortFunc(v.Bridges, func(a, b Bridge) int { return cmp.Compare(a.Name, b.Name) })
	return v
}

// br makes a bridge with its own port, which is up, and others, numbered as they come.
func br(name string, ports ...Port) Bridge {
	own := Port{Name: name, Interfaces: []Interface{{Name: name, Type: "internal", OFPort: 65534, AdminState: "up", LinkState: "up"}}}
	for i := range ports {
		for j := range ports[i].Interfaces {
			if ports[i].Interfaces[j].OFPort == 0 {
				ports[i].Interfaces[j].OFPort = 10*(i+1) + j
			}
		}
	}
	b := Bridge{Name: name, Ports: append(ports, own)}
	slices.SortFunc(b.Ports, func(a, b Port) int { return cmp.Compare(a.Name, b.Name) })
	return b
}

// hinted sets bridge-uplink.
func hinted(b Bridge, port string) Bridge {
	b.ExternalIDs = map[string]string{"bridge-uplink": port}
	return b
}

// port makes a port with one interface of the same name.
func port(name, kind string) Port {
	return Port{Name: name, Interfaces: []Interface{{Name: name, Type: kind}}}
}

func bond(name string, members ...string) Port {
	p := Port{Name: name}
	for _, m := range members {
		p.Interfaces = append(p.Interfaces, Interface{Name: m})
	}
	return p
}

func patch(name, peer string) Port {
	p := port(name, "patch")
	p.Interfaces[0].Options = map[string]string{"peer": peer}
	return p
}

// dead makes a port whose device is gone, as the database shows it after a reboot.
func dead(name string) Port {
	p := port(name, "")
	p.Interfaces[0].OFPort, p.Interfaces[0].Error = -1, "could not open network device "+name+" (No such device)"
	return p
}

// card classifies by the names that the tests use, in place of devlink.
func card(name string) Class {
	switch {
	case strings.HasPrefix(name, "busy"):
		return Unclassified
	case strings.HasPrefix(name, "absent"):
		return Absent
	case strings.HasPrefix(name, "pf"):
		return HostFacing
	case strings.HasPrefix(name, "en3f0"):
		return LocalFunction
	case strings.HasPrefix(name, "p"):
		return Physical
	}
	return Plain
}

// problem checks that an error is a finding with a reason and that its message has all the given parts.
func problem(t *testing.T, err error, reason string, parts ...string) {
	t.Helper()
	var p *uplinkstate.Problem
	if !errors.As(err, &p) {
		t.Fatalf("error %v, want a problem %s", err, reason)
	}
	if p.Reason != reason {
		t.Errorf("reason %s, want %s (%s)", p.Reason, reason, p.Message)
	}
	for _, part := range parts {
		if !strings.Contains(p.Message, part) {
			t.Errorf("message lacks %q: %s", part, p.Message)
		}
	}
}
