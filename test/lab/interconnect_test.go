// SPDX-License-Identifier: Apache-2.0

package lab_test

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/ovn-uplink/ovn-uplink/test/lab"
)

func TestTwoZones(t *testing.T) {
	newer := &lab.OVSBuild{Path: "/tmp/newer-ovn/bin", Schema: "/tmp/newer-ovn/root/usr/share/openvswitch/vswitch.ovsschema", OVNSchemas: "/tmp/newer-ovn/root/usr/share/ovn"}
	for _, v := range []*lab.OVSBuild{nil, newer} {
		t.Run(fmt.Sprint(v != nil), func(t *testing.T) {
			l := lab.ForTest(t, lab.Options{NoAPIServer: true, OVS: v})
			ctx := t.Context()
			var zones [2]*lab.Zone
			for i := range zones {
				n, err := l.AddNode(ctx, fmt.Sprintf("worker-%d", i))
				if err != nil {
					t.Fatal(err)
				}
				if err := n.StartOVS(ctx); err != nil {
					t.Fatal(err)
				}
				begin := time.Now()
				if zones[i], err = n.StartOVN(ctx, lab.OVNSpec{}); err != nil {
					t.Fatal(err)
				}
				t.Logf("zone took %s", time.Since(begin))
			}
			begin := time.Now()
			if err := l.Interconnect(ctx, zones[:]...); err != nil {
				t.Fatal(err)
			}
			t.Logf("interconnect took %s", time.Since(begin))
			for _, topo := range []string{lab.Layer3, lab.Layer2} {
				if v == nil && topo == lab.Layer2 {
					continue
				}
				begin = time.Now()
				net, err := l.Network(ctx, lab.NetworkSpec{
					CUDN: "blue-" + topo[5:], Topology: topo,
					Subnets: []netip.Prefix{netip.MustParsePrefix("10.200.0.0/16"), netip.MustParsePrefix("fd10::/48")},
				}, zones[:]...)
				if err != nil {
					t.Fatal(err)
				}
				t.Logf("network took %s", time.Since(begin))
				begin = time.Now()
				var pods [2]*lab.Pod
				for i, name := range []string{"a", "b"} {
					if pods[i], err = net.Pod(ctx, zones[i], name); err != nil {
						t.Fatal(err)
					}
				}
				t.Logf("pods took %s", time.Since(begin))
				if err := net.Sync(ctx); err != nil {
					t.Fatal(err)
				}
				begin = time.Now()
				for _, to := range append(pods[1].Addresses, net.Gateways(zones[0])...) {
					ping(t, pods[0].Node, to, 5*time.Second)
				}
				t.Logf("pings took %s", time.Since(begin))
				if t.Failed() {
					for _, z := range zones {
						s, _ := z.Sbctl(ctx, "show")
						t.Log(s)
						s, _ = z.Node.OVS.Vsctl(ctx, "show")
						t.Log(s)
						s, _ = z.Node.OVS.Appctl(ctx, "ovs/route/show")
						t.Log(s)
						s, _ = z.Sbctl(ctx, "--columns=logical_port,chassis,type,options", "list", "port_binding")
						t.Log(s)
					}
				}
			}
		})
	}
}
