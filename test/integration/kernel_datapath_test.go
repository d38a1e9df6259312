// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"net/netip"
	"testing"

	"github.com/ovn-uplink/ovn-uplink/shared/kernel/kerneltest"
	"github.com/ovn-uplink/ovn-uplink/test/lab"
)

// The kernel's Open vSwitch carries what the one in user space does: two networks with equal addresses out, and in.
func TestKernelDatapath(t *testing.T) {
	kerneltest.NeedGuest(t)
	for _, version := range lab.OVNVersions(t) {
		t.Run(version.Name, func(t *testing.T) { datapath(emptyField(t, version)) })
	}
}

func datapath(f *field) {
	ctx := f.t.Context()
	a := f.regularSite("worker-a", lab.RegularSpec{Addresses: prefixes("172.28.0.2/16", "fd00:28::2/64"), Gateways: wireGateways})
	f.add(a, "up0", addrs("172.28.0.2", "fd00:28::2"))
	f.outside(a.external)
	f.serve(f.client, clientAddresses)
	f.start()
	kind, err := a.ovs.OVS.Appctl(ctx, "dpif/show")
	f.must(err)
	f.t.Logf("datapaths:\n%s", kind)

	p := f.posts[0]
	blue, red := f.network(lab.NetworkSpec{CUDN: "blue"}), f.network(lab.NetworkSpec{CUDN: "red"})
	pods := []*lab.Pod{f.pod(blue, p, "a"), f.pod(red, p, "a")}
	for i, n := range []*lab.Network{blue, red} {
		f.serve(pods[i].Node, pods[i].Addresses)
		f.service(twoPorts(n.Spec.Namespace, "web", int32(blueHTTP+100*i), int32(blueEcho+100*i)), n, pods[i])
	}
	f.covered("blue", "red")
	for i, pod := range pods {
		f.egress(p, pod)
		for _, at := range p.addresses {
			f.answers(netip.AddrPortFrom(at, uint16(blueHTTP+100*i)), pod.Name)
			for _, size := range []int{100, 1400, 4000} {
				f.echo(f.client, netip.AddrPortFrom(at, uint16(blueEcho+100*i)), size)
			}
		}
	}
	f.apart(p, pods[0], pods[1])
	f.clean()
}
