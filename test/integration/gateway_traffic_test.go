// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ovn-uplink/ovn-uplink/test/lab"
)

// The ports of the tests, by which captures tell whose a packet is.
const (
	podHTTP, podEcho   = 8080, 9000
	hostHTTP, hostEcho = 7080, 7000
	sharedPort         = 40123
)

// Real packets of pods, on a regular node and on a pair, and of both hosts while networks come and go.
func TestGatewayTraffic(t *testing.T) {
	t.Parallel()
	for _, version := range lab.OVNVersions(t) {
		t.Run(version.Name, func(t *testing.T) { traffic(t, newField(t, version)) })
	}
}

func traffic(t *testing.T, f *field) {
	f.serve(f.client, clientAddresses)
	f.serve(f.narrow, narrowAddresses)

	watched := f.watchHosts()
	blue, red := f.network(lab.NetworkSpec{CUDN: "blue"}), f.network(lab.NetworkSpec{CUDN: "red"})
	f.covered("blue", "red")
	watched.unharmed("while the gateway was set up")

	pods := map[*post][]*lab.Pod{}
	for _, p := range f.posts {
		pods[p] = []*lab.Pod{f.pod(blue, p, "a-"+p.node), f.pod(red, p, "a-"+p.node)}
		if got := pods[p]; !slices.Equal(got[0].Addresses, got[1].Addresses) {
			t.Fatalf("pods have addresses %v and %v", got[0].Addresses, got[1].Addresses)
		}
	}
	f.each(t, "egress", func(f *field, p *post) {
		for _, pod := range pods[p] {
			f.egress(p, pod)
		}
	})
	f.each(t, "errors", func(f *field, p *post) { f.errorsReach(pods[p][0]) })
	f.each(t, "equal pods", func(f *field, p *post) { f.apart(p, pods[p][0], pods[p][1]) })
	f.each(t, "equal echoes", func(f *field, p *post) { f.echoes(pods[p]...) })
	f.each(t, "stray", func(f *field, p *post) { f.stray(p, pods[p][0]) })
	t.Run("others", func(t *testing.T) { f.in(t).others(pods) })

	watched = f.watchHosts()
	f.network(lab.NetworkSpec{CUDN: "green"})
	f.covered("blue", "green", "red")
	for _, gone := range [][]string{{"green", "blue", "red"}, {"blue", "red"}, {"red"}} {
		f.must(f.DeleteCUDN(t.Context(), gone[0]))
		f.covered(gone[1:]...)
	}
	watched.unharmed("while networks came and went, to the last")
	f.clean()
}

// egress checks the ways of a pod to the outside.
func (f *field) egress(p *post, pod *lab.Pod) {
	f.t.Helper()
	for i, to := range clientAddresses {
		f.pings(pod.Node, to)
		f.http(pod.Node, netip.AddrPortFrom(to, podHTTP), f.client.Name, p.addresses[i])
		for _, size := range []int{100, 1400, 4000, 9000} {
			f.echo(pod.Node, netip.AddrPortFrom(to, podEcho), size)
		}
		left := p.onWire.Count(lab.From(p.addresses[i]), lab.To(to), lab.Port(podHTTP))
		if left == 0 {
			f.t.Errorf("nothing left with %s for %s port %d", p.addresses[i], to, podHTTP)
		}
	}
}

// errorsReach checks that a pod hears of what became of its packets.
func (f *field) errorsReach(pod *lab.Pod) {
	f.t.Helper()
	ctx := f.t.Context()
	for i, to := range clientAddresses {
		err := pod.EchoUDP(ctx, netip.AddrPortFrom(to, 9), 100)
		if !isRefused(err) {
			f.t.Errorf("a datagram for a closed port of %s: %v, want it refused", to, err)
		}
		if _, err := pod.HTTPGet(ctx, netip.AddrPortFrom(to, 9)); !isRefused(err) {
			f.t.Errorf("a connection to a closed port of %s: %v, want it refused", to, err)
		}
		f.pings(pod.Node, narrowAddresses[i])
		f.must(upload(ctx, pod.Node, f.narrow, narrowAddresses[i]))
		route, err := pod.IP(ctx, "route", "get", narrowAddresses[i].String())
		if err != nil || !strings.Contains(route, "mtu 1300") {
			f.t.Errorf("the pod has not heard of the narrow link to %s: %v\n%s", narrowAddresses[i], err, route)
		}
	}
}

// apart checks that two pods with equal addresses, and the host, use equal ports to the same destination at once, and
// that each hears its own answers alone.
func (f *field) apart(p *post, blue, red *lab.Pod) {
	f.t.Helper()
	for i, to := range clientAddresses {
		talks := []*talk{
			{from: blue.Node, device: "eth0", source: blue.Addresses[i], size: 300},
			{from: red.Node, device: "eth0", source: red.Addresses[i], size: 400},
			{from: p.host, device: p.iface, source: p.addresses[i], size: 500},
		}
		for _, l := range talks {
			f.must(l.open(to, sharedPort))
		}
		for range 50 {
			for _, l := range talks {
				f.must(l.once())
			}
		}
		for _, l := range talks {
			f.check(l.own(talks))
			f.check(l.close())
		}
	}
}

// echoes checks that pods with equal addresses may send echo requests of the same identifier to the same destination at
// once: whom the datapath cannot help, because it translates no identifiers, hears nothing, and not another's answers.
func (f *field) echoes(pods ...*lab.Pod) {
	f.t.Helper()
	for _, to := range clientAddresses {
		var work sync.WaitGroup
		var answered atomic.Int32
		for _, pod := range pods {
			work.Go(func() {
				out, err := pod.Exec(f.t.Context(), "ping", "-e", "4711", "-c10", "-i0.2", "-W2", to.String())
				if err == nil {
					answered.Add(1)
				}
				if strings.Contains(out, "DUP") {
					f.t.Errorf("%s has answers that are not its own:\n%s", pod.Name, out)
				}
			})
		}
		work.Wait()
		if answered.Load() == 0 {
			f.t.Errorf("no pod gets answers from %s", to)
		}
	}
	f.clean()
}

// stray checks that nothing for a service's address leaves, whoever sends it.
func (f *field) stray(p *post, pod *lab.Pod) {
	f.t.Helper()
	ctx := f.t.Context()
	for i, cidr := range serviceCIDRs {
		to := unused(cidr)
		_, err := p.host.IP(ctx, "route", "add", cidr.String(), "via", wireGateways[i].String(), "dev", p.iface)
		f.must(err)
		for _, from := range []*lab.Node{p.host, pod.Node} {
			if _, err := from.Exec(ctx, "ping", "-c2", "-i0.2", "-W1", to.String()); err == nil {
				f.t.Errorf("%s answers %s", to, from.Name)
			}
		}
		if p.onHost.Count(lab.To(to)) == 0 {
			f.t.Errorf("the host sent nothing to %s", to)
		}
		_, err = p.host.IP(ctx, "route", "del", cidr.String(), "via", wireGateways[i].String(), "dev", p.iface)
		f.must(err)
	}
	f.clean()
}

// others checks that whom packets do not concern does not get them: the host and a station those of pods, the pods
// those of the host, and that one answers who asks for the Uplink's address.
func (f *field) others(pods map[*post][]*lab.Pod) {
	f.t.Helper()
	ctx := f.t.Context()
	stranger, err := f.station.Capture(lab.StationInterface)
	f.must(err)
	for _, p := range f.posts {
		var seen []*lab.Capture
		for _, pod := range pods[p] {
			c, err := pod.Capture("eth0")
			f.must(err)
			seen = append(seen, c)
		}
		for i, to := range clientAddresses {
			server, err := p.host.StartHTTP(netip.AddrPortFrom(p.addresses[i], hostHTTP), p.host.Name)
			f.must(err)
			f.http(f.client, server.Addr, p.host.Name, to)
			f.http(p.host, netip.AddrPortFrom(to, podHTTP), f.client.Name, p.addresses[i])
			for _, pod := range pods[p] {
				f.http(pod.Node, netip.AddrPortFrom(to, podHTTP), f.client.Name, p.addresses[i])
			}
			f.check(server.Close())
			f.check(f.asks(p, i, stranger))
		}
		for _, c := range seen {
			f.check(c.None(lab.Any(lab.Src(hostPrefixes(p.addresses)...), lab.Dst(hostPrefixes(p.addresses)...))))
		}
		f.check(stranger.None(lab.Any(lab.Dst(hostPrefixes(clientAddresses)...), lab.Src(hostPrefixes(clientAddresses)...))))
		f.patchAgain(p)
		for i, to := range clientAddresses {
			f.pings(pods[p][0].Node, to)
			f.check(f.asks(p, i, stranger))
		}
	}
	f.check(errors.Join(ctx.Err()))
	f.clean()
}
