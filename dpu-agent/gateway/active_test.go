// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"testing"
	"time"

	ovnk "github.com/ovn-uplink/ovn-uplink/shared/api/ovnk/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func cudn(name string, change func(*ovnk.ClusterUserDefinedNetwork)) *ovnk.ClusterUserDefinedNetwork {
	c := &ovnk.ClusterUserDefinedNetwork{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: ovnk.ClusterUserDefinedNetworkSpec{
			Uplinks: []string{"tenant-blue"},
			Network: ovnk.NetworkSpec{Topology: ovnk.Layer3, Layer3: &ovnk.Layer3Config{
				Role: ovnk.RolePrimary, Subnets: []ovnk.Layer3Subnet{{CIDR: "10.200.0.0/16"}},
			}},
		},
	}
	if change != nil {
		change(c)
	}
	return c
}

func TestTenants(t *testing.T) {
	for name, tc := range map[string]struct {
		change  func(*ovnk.ClusterUserDefinedNetwork)
		there   bool
		invalid string
	}{
		"a primary Layer3 network": {nil, true, ""},
		"a primary Layer2 network": {func(c *ovnk.ClusterUserDefinedNetwork) {
			c.Spec.Network = ovnk.NetworkSpec{Topology: ovnk.Layer2, Layer2: &ovnk.Layer2Config{Role: ovnk.RolePrimary, Subnets: []string{"10.201.0.0/16"}}}
		}, true, ""},
		"another Uplink":      {func(c *ovnk.ClusterUserDefinedNetwork) { c.Spec.Uplinks = []string{"tenant-red"} }, false, ""},
		"no Uplink":           {func(c *ovnk.ClusterUserDefinedNetwork) { c.Spec.Uplinks = nil }, false, ""},
		"a secondary network": {func(c *ovnk.ClusterUserDefinedNetwork) { c.Spec.Network.Layer3.Role = "Secondary" }, false, ""},
		"EVPN":                {func(c *ovnk.ClusterUserDefinedNetwork) { c.Spec.Network.Transport = ovnk.TransportEVPN }, false, ""},
		"a subnet that is none": {func(c *ovnk.ClusterUserDefinedNetwork) { c.Spec.Network.Layer3.Subnets[0].CIDR = "10.200.0.0" },
			true, `subnet "10.200.0.0" of the network is not valid`},
		"no subnets": {func(c *ovnk.ClusterUserDefinedNetwork) { c.Spec.Network.Layer3.Subnets = nil },
			true, "the network has no subnets; a gateway needs to know the pods' addresses"},
	} {
		t.Run(name, func(t *testing.T) {
			got := tenants("tenant-blue", []*ovnk.ClusterUserDefinedNetwork{cudn("blue", tc.change)})
			if (len(got) == 1) != tc.there {
				t.Fatalf("got %+v", got)
			}
			if tc.there && got[0].invalid != tc.invalid {
				t.Errorf("invalid %q, want %q", got[0].invalid, tc.invalid)
			}
		})
	}
}

func TestActivity(t *testing.T) {
	start := time.Now()
	type step struct {
		after             time.Duration
		occupied, covered bool
		want              bool
		again             time.Duration
	}
	for name, tc := range map[string]struct {
		dynamic bool
		steps   []step
	}{
		"without Dynamic UDN on every node": {false, []step{{0, false, false, true, 0}}},
		"no pod, never had one":             {true, []step{{0, false, false, false, 0}}},
		"a pod":                             {true, []step{{0, true, false, true, 0}}},
		"the last pod goes":                 {true, []step{{0, true, true, true, 0}, {time.Second, false, true, true, time.Minute}, {31 * time.Second, false, true, true, 30 * time.Second}, {61 * time.Second, false, true, false, 0}}},
		"a pod comes back within the grace": {true, []step{{0, false, true, true, time.Minute}, {50 * time.Second, true, true, true, 0}, {70 * time.Second, false, true, true, time.Minute}}},
		"an agent that was just started":    {true, []step{{0, false, true, true, time.Minute}}},
	} {
		t.Run(name, func(t *testing.T) {
			a := activity{dynamic: tc.dynamic, grace: time.Minute, left: map[string]time.Time{}}
			for i, s := range tc.steps {
				got, again := a.active("blue", s.occupied, s.covered, start.Add(s.after))
				if got != s.want || again != s.again {
					t.Errorf("step %d: %v, again in %s, want %v, %s", i, got, again, s.want, s.again)
				}
			}
		})
	}
}
