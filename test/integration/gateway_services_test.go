// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/ovn-uplink/ovn-uplink/test/lab"
	corev1 "k8s.io/api/core/v1"
)

// The addresses of services of their own, which the outside routes to the first post.
var (
	externalIPs = addrs("192.0.2.80", "2001:db8:80::80")
	balancerIPs = addrs("192.0.2.81", "2001:db8:80::81")
)

// The ports of the tests' services: HTTP and an echo, for everybody and with traffic policy Local.
const (
	blueHTTP, blueEcho, blueSCTP = 30080, 30090, 30099
	redHTTP, redEcho             = 30180, 30190
	localHTTP, localEcho         = 30280, 30290
	vipHTTP, vipEcho             = 80, 90
)

// Real packets to services, on a regular node and on a pair.
func TestGatewayServices(t *testing.T) {
	t.Parallel()
	for _, version := range lab.OVNVersions(t) {
		t.Run(version.Name, func(t *testing.T) { services(t, newField(t, version)) })
	}
}

// shop are the networks, pods and services of the test.
type shop struct {
	*field
	blue, red       *lab.Network
	bluePod, redPod map[*post]*lab.Pod
	web             lab.ServiceSpec // of blue, to all of its pods
}

// requestTime is how long a request may take, with some SYNs sent again.
const requestTime = 4 * time.Second

func services(t *testing.T, f *field) {
	s := &shop{field: f, bluePod: map[*post]*lab.Pod{}, redPod: map[*post]*lab.Pod{}}
	s.blue, s.red = f.network(lab.NetworkSpec{CUDN: "blue"}), f.network(lab.NetworkSpec{CUDN: "red"})
	for _, p := range f.posts {
		s.bluePod[p], s.redPod[p] = f.pod(s.blue, p, "a-"+p.node), f.pod(s.red, p, "a-"+p.node)
		f.serve(s.bluePod[p].Node, s.bluePod[p].Addresses)
		f.serve(s.redPod[p].Node, s.redPod[p].Addresses)
	}
	s.web = twoPorts("blue", "web", blueHTTP, blueEcho)
	f.service(s.web, s.blue, s.all(s.bluePod)...)
	f.covered("blue", "red")

	f.each(t, "node port", s.nodePort)
	f.each(t, "two networks", s.twoNetworks)
	f.each(t, "on another node", s.elsewhere)
	f.each(t, "policy Local", s.local)
	f.each(t, "none", s.none)
	f.each(t, "late", s.late)
	t.Run("addresses", func(t *testing.T) { s.addresses(f.in(t)) })
	t.Run("affinity", func(t *testing.T) { s.affinity(f.in(t)) })
	t.Run("endpoints change", func(t *testing.T) { s.change(f.in(t)) })
	f.each(t, "SCTP", s.sctp)
	if f.version.TransitRouters {
		t.Run("Layer2 on another node", func(t *testing.T) { s.flat(f.in(t)) })
	}
	t.Run("plain slices", func(t *testing.T) { s.plain(f.in(t)) })
	f.clean()
	f.hostsApart()
}

// hostsApart checks that no host saw a packet of a service from when on that was steered.
func (f *field) hostsApart() {
	f.t.Helper()
	for to, since := range f.steered {
		late := func(p lab.Packet) bool { return p.Time.After(since) }
		for _, p := range f.posts {
			f.check(p.onHost.None(late, lab.Any(lab.From(to.Addr()), lab.To(to.Addr())), lab.Port(to.Port())))
		}
	}
}

// twoPorts is a service with HTTP and an echo.
func twoPorts(namespace, name string, http, echo int32) lab.ServiceSpec {
	return lab.ServiceSpec{
		Namespace: namespace, Name: name, DualStack: true,
		Ports: []lab.ServicePort{
			{Port: vipHTTP, NodePort: http, Target: podHTTP},
			{Protocol: corev1.ProtocolUDP, Port: vipEcho, NodePort: echo, Target: podEcho},
		},
	}
}

// service makes a service with these pods behind it.
func (f *field) service(spec lab.ServiceSpec, n *lab.Network, pods ...*lab.Pod) {
	f.t.Helper()
	_, err := f.CreateService(f.t.Context(), spec)
	f.must(errors.Join(err, f.MirrorEndpoints(f.t.Context(), spec, n, pods...)))
}

func (s *shop) all(pods map[*post]*lab.Pod) (out []*lab.Pod) {
	for _, p := range s.posts {
		out = append(out, pods[p])
	}
	return out
}

// answers waits until servers of all names, and no others, answer several requests.
func (f *field) answers(to netip.AddrPort, names ...string) {
	f.t.Helper()
	f.reaches(fmt.Sprintf("client to %s", to), func(ctx context.Context) error {
		seen := map[string]bool{}
		for range 12 * len(names) {
			got, err := f.ask(ctx, to)
			if err != nil {
				return err
			}
			if !slices.Contains(names, got.Name) {
				return fmt.Errorf("answer of %s, want one of %v", got.Name, names)
			}
			seen[got.Name] = true
		}
		if len(seen) != len(names) {
			return fmt.Errorf("answers of %v alone, want %v", seen, names)
		}
		return nil
	})
	f.steered[to] = time.Now()
}

// ask has the client ask a server, and gives up soon.
func (f *field) ask(ctx context.Context, to netip.AddrPort) (lab.Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	return f.client.HTTPGet(ctx, to)
}

// fragments checks that datagrams come back that are whole, and that are in fragments, in one flow.
//
// The userspace datapath of the older Open vSwitch does not tell the ports of a later fragment in conntrack's tuple, so
// that a flow to a service cannot begin with fragments there.
func (f *field) fragments(from *lab.Node, to netip.AddrPort) {
	f.t.Helper()
	sizes := []int{4000, 100, 4000}
	if f.version.Build == nil {
		sizes = sizes[1:]
	}
	f.reaches(fmt.Sprintf("%v bytes from %s to %s", sizes, from.Name, to), func(ctx context.Context) error {
		conn, err := from.Dial(ctx, "udp", to)
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close() }()
		buf := make([]byte, 1<<16)
		for _, size := range sizes {
			_ = conn.SetDeadline(time.Now().Add(3 * time.Second))
			if _, err := conn.Write(make([]byte, size)); err != nil {
				return err
			}
			if n, err := conn.Read(buf); err != nil || n != size {
				return fmt.Errorf("%d bytes came back as %d: %w", size, n, err)
			}
		}
		return nil
	})
}

// refused waits until the ports of each address say no, and checks that they go on to. It is for services that had
// answers before, because the host says no too, where nothing is steered yet.
func (f *field) refused(addresses []netip.Addr, http, echo uint16) {
	f.t.Helper()
	for _, a := range addresses {
		no := func(ctx context.Context) error {
			if got, err := f.ask(ctx, netip.AddrPortFrom(a, http)); !isRefused(err) {
				return fmt.Errorf("connection to %s: answer %+v, not refused: %w", a, got, orNone(err))
			}
			ctx, cancel := context.WithTimeout(ctx, requestTime)
			defer cancel()
			if err := f.client.EchoUDP(ctx, netip.AddrPortFrom(a, echo), 100); !isRefused(err) {
				return fmt.Errorf("datagram to %s: not refused: %w", a, orNone(err))
			}
			return nil
		}
		f.reaches(fmt.Sprintf("ports of %s", a), no)
		f.check(no(f.t.Context()))
	}
}

// nodePort: both protocols, both families, from behind the gateways and from the wire; fragments both ways; the host keeps
// its own server on another port.
func (s *shop) nodePort(f *field, p *post) {
	names := []string{s.bluePod[s.posts[0]].Name, s.bluePod[s.posts[1]].Name}
	for _, a := range p.addresses {
		f.answers(netip.AddrPortFrom(a, blueHTTP), names...)
		for _, from := range []*lab.Node{f.client, f.station} {
			f.fragments(from, netip.AddrPortFrom(a, blueEcho))
		}
		server, err := p.host.StartHTTP(netip.AddrPortFrom(a, hostHTTP), p.host.Name)
		f.must(err)
		f.http(f.client, server.Addr, p.host.Name, netip.Addr{})
		f.check(server.Close())
	}
}

// twoNetworks: services of networks with equal pod addresses.
func (s *shop) twoNetworks(f *field, p *post) {
	f.service(twoPorts("red", "web", redHTTP, redEcho), s.red, s.redPod[p])
	for _, a := range p.addresses {
		f.answers(netip.AddrPortFrom(a, redHTTP), s.redPod[p].Name)
		f.echo(f.client, netip.AddrPortFrom(a, redEcho), 100)
	}
}

// elsewhere: the only endpoint is on another node.
func (s *shop) elsewhere(f *field, p *post) {
	for _, other := range s.posts {
		if other == p {
			continue
		}
		f.service(s.web, s.blue, s.bluePod[other])
		for _, a := range p.addresses {
			f.answers(netip.AddrPortFrom(a, blueHTTP), s.bluePod[other].Name)
			f.fragments(f.client, netip.AddrPortFrom(a, blueEcho))
		}
	}
	f.service(s.web, s.blue, s.all(s.bluePod)...)
}

// local: the pod sees the client, and a node without a pod says no.
func (s *shop) local(f *field, p *post) {
	spec := twoPorts("blue", "local", localHTTP, localEcho)
	spec.Local = true
	f.service(spec, s.blue, s.all(s.bluePod)...)
	for _, at := range s.posts {
		f.answers(netip.AddrPortFrom(at.addresses[0], localHTTP), s.bluePod[at].Name)
	}
	f.service(spec, s.blue, s.bluePod[p])
	for i, a := range p.addresses {
		f.http(f.client, netip.AddrPortFrom(a, localHTTP), s.bluePod[p].Name, clientAddresses[i])
		f.fragments(f.client, netip.AddrPortFrom(a, localEcho))
	}
	for _, other := range s.posts {
		if other != p {
			f.refused(other.addresses, localHTTP, localEcho)
		}
	}
}

// none: without endpoints the answer is no, and with them again it is theirs.
func (s *shop) none(f *field, p *post) {
	spec := twoPorts("red", "none", 30380, 30390)
	f.service(spec, s.red, s.redPod[p])
	for _, a := range p.addresses {
		f.answers(netip.AddrPortFrom(a, 30380), s.redPod[p].Name)
	}
	f.service(spec, s.red)
	f.refused(p.addresses, 30380, 30390)
	f.service(spec, s.red, s.redPod[p])
	for _, a := range p.addresses {
		f.answers(netip.AddrPortFrom(a, 30380), s.redPod[p].Name)
	}
}

// orNone is an error to wrap also where there is none.
func orNone(err error) error {
	if err == nil {
		return errors.New("no error")
	}
	return err
}
