// SPDX-License-Identifier: Apache-2.0

package lab_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/ovn-uplink/ovn-uplink/test/lab"
)

func TestLayer3OneZone(t *testing.T) {
	l := lab.ForTest(t, lab.Options{NoAPIServer: true})
	ctx := t.Context()
	n, err := l.AddNode(ctx, "worker-a")
	if err != nil {
		t.Fatal(err)
	}
	if err := n.StartOVS(ctx); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	z, err := n.StartOVN(ctx, lab.OVNSpec{})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("zone took %s", time.Since(begin))
	begin = time.Now()
	net, err := l.Network(ctx, lab.NetworkSpec{
		CUDN:    "blue-1",
		Subnets: []netip.Prefix{netip.MustParsePrefix("10.200.0.0/16"), netip.MustParsePrefix("fd10::/48")},
	}, z)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("network took %s", time.Since(begin))
	begin = time.Now()
	var pods [2]*lab.Pod
	for i, name := range []string{"a", "b"} {
		if pods[i], err = net.Pod(ctx, z, name); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("pods took %s", time.Since(begin))
	begin = time.Now()
	if err := z.Sync(ctx); err != nil {
		t.Fatal(err)
	}
	t.Logf("sync took %s", time.Since(begin))
	for _, to := range append(pods[1].Addresses, net.Gateways(z)...) {
		ping(t, pods[0].Node, to, 5*time.Second)
	}
}
