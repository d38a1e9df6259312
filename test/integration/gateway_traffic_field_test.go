// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/ovn-uplink/ovn-uplink/shared/api/v1alpha1"
	"github.com/ovn-uplink/ovn-uplink/test/lab"
)

// What is outside of every field: a client behind the gateways, one behind a narrow link, and a station on the wire.
var (
	clientAddresses  = addrs("198.51.100.9", "2001:db8:9::9")
	narrowAddresses  = addrs("198.51.100.10", "2001:db8:9::10")
	stationAddresses = prefixes("172.28.0.200/16", "fd00:28::200/64")
	wireGateways     = addrs("172.28.0.1", "fd00:28::1")
	podSubnets       = prefixes("10.200.0.0/16", "fd10::/48")
	// insideOnly are never on the wire: pods, joins, the gateways' own ranges, and services.
	insideOnly = append(prefixes("100.64.0.0/10", "169.254.0.0/16", "fd91::/16", "fd92::/16", "fd93::/16", "fd98::/15"), podSubnets...)
	// serviceCIDRs are those of the lab's API server.
	serviceCIDRs = prefixes("10.96.0.0/16", "fd00:10:96::/112")
)

func addrs(texts ...string) (out []netip.Addr) {
	for _, s := range texts {
		out = append(out, netip.MustParseAddr(s))
	}
	return out
}

func prefixes(texts ...string) (out []netip.Prefix) {
	for _, s := range texts {
		out = append(out, netip.MustParsePrefix(s))
	}
	return out
}

// post is a site with an Uplink of both families.
type post struct {
	*site
	addresses []netip.Addr
	// wire is the port of the bridge that leads outside, where OVS is.
	wire string
	// onWire and onHost collect what passes the wire and the host's interface.
	onWire, onHost *lab.Capture
	// agent is the process of dpu-agent.
	agent *lab.Process
}

// field is a cluster whose nodes are on one wire.
type field struct {
	*cluster
	version                 lab.Version
	posts                   []*post
	external                *lab.External
	client, narrow, station *lab.Node
	// steered says since when services answer at an address.
	steered map[netip.AddrPort]time.Time
}

const fieldUplink = "tenant-blue"

// newField makes a regular node and a pair, joined by tunnels, with their agents and the Uplink, which no network uses.
func newField(t *testing.T, version lab.Version) *field {
	t.Helper()
	f := emptyField(t, version)
	a := f.regularSite("worker-a", lab.RegularSpec{Addresses: prefixes("172.28.0.2/16", "fd00:28::2/64"), Gateways: wireGateways})
	f.add(a, "up0", addrs("172.28.0.2", "fd00:28::2"))
	b := f.pairSiteOf("worker-b", lab.PairSpec{Addresses: prefixes("172.28.0.3/16", "fd00:28::3/64"), Gateways: wireGateways})
	f.add(b, "p0", addrs("172.28.0.3", "fd00:28::3"))
	f.must(f.Interconnect(t.Context(), a.zone, b.zone))
	f.outside(a.external)
	f.start()
	return f
}

func emptyField(t *testing.T, version lab.Version) *field {
	t.Helper()
	return &field{cluster: newGatewayCluster(t, version), version: version, steered: map[netip.AddrPort]time.Time{}}
}

func (f *field) add(s *site, wire string, addresses []netip.Addr) {
	f.t.Helper()
	f.must(f.SetNodeLabels(f.t.Context(), s.node, map[string]string{"site": s.node}))
	f.posts = append(f.posts, &post{site: s, addresses: addresses, wire: wire})
}

// outside adds the machines outside.
func (f *field) outside(external *lab.External) {
	f.t.Helper()
	ctx := f.t.Context()
	f.external = external
	var err error
	f.client, err = external.Behind(ctx, "client", clientAddresses...)
	f.must(err)
	f.narrow, err = external.Behind(ctx, "narrow", narrowAddresses...)
	f.must(err)
	route, err := external.IP(ctx, "-o", "route", "get", narrowAddresses[0].String())
	f.must(err)
	_, device, _ := strings.Cut(route, " dev ")
	_, err = external.IP(ctx, "link", "set", strings.Fields(device)[0], "mtu", "1300")
	f.must(err)
	f.station, err = external.Station(ctx, "station", stationAddresses, wireGateways...)
	f.must(err)
}

// start makes the Uplink and starts captures and agents.
func (f *field) start() {
	f.t.Helper()
	var configs []v1alpha1.UplinkNodeConfig
	for _, p := range f.posts {
		configs = append(configs, nodeConfig(p.iface, map[string]string{"site": p.node}))
		var err error
		p.onWire, err = p.ovs.Capture(p.wire)
		f.must(err)
		p.onHost, err = p.host.Capture(p.iface)
		f.must(err)
	}
	f.uplink(fieldUplink, configs...)
	for _, p := range f.posts {
		p.agent = p.agents()
	}
	f.covered()
}

// in is the field for a subtest.
func (f *field) in(t *testing.T) *field {
	cluster := *f.cluster
	cluster.t = t
	out := *f
	out.cluster = &cluster
	return &out
}

// network makes a network on all posts, or those given.
func (f *field) network(spec lab.NetworkSpec, posts ...*post) *lab.Network {
	f.t.Helper()
	if posts == nil {
		posts = f.posts
	}
	if spec.Subnets == nil {
		spec.Subnets = podSubnets
	}
	var sites []*site
	for _, p := range posts {
		sites = append(sites, p.site)
	}
	return f.tenantNetwork(fieldUplink, spec, sites...)
}

// covered waits until the gateway of every post covers exactly these networks.
func (f *field) covered(networks ...string) {
	f.t.Helper()
	for _, p := range f.posts {
		f.within(programmed, fieldUplink, p.node, covers(networks...))
	}
}

func (f *field) pod(n *lab.Network, p *post, name string) *lab.Pod {
	f.t.Helper()
	pod, err := n.Pod(f.t.Context(), p.zone, name)
	f.must(err)
	return pod
}

// each runs a test for every post.
func (f *field) each(t *testing.T, name string, test func(*field, *post)) {
	t.Helper()
	for _, p := range f.posts {
		t.Run(name+" on "+p.node, func(t *testing.T) { test(f.in(t), p) })
	}
}

// clean checks that no packet so far was where it should not be.
func (f *field) clean() {
	f.t.Helper()
	for _, p := range f.posts {
		out := func(packet lab.Packet) bool { return packet.Outgoing }
		f.check(p.onWire.None(out, lab.Any(lab.Src(insideOnly...), lab.Dst(insideOnly...), inARP(insideOnly))))
		f.check(p.onWire.None(lab.Any(lab.Src(serviceCIDRs...), lab.Dst(serviceCIDRs...))))
	}
}

// inARP passes ARP from or for one of the prefixes.
func inARP(of []netip.Prefix) lab.Filter {
	return func(p lab.Packet) bool {
		for _, prefix := range of {
			if p.EtherType == lab.EtherARP && (prefix.Contains(p.Src) || prefix.Contains(p.Dst)) {
				return true
			}
		}
		return false
	}
}

// check reports an error and goes on.
func (c *cluster) check(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Error(err)
	}
}

// reaches waits until a check of a path works: flows follow the status by a moment.
func (c *cluster) reaches(what string, check func(context.Context) error) {
	c.t.Helper()
	if err := lab.Eventually(c.t.Context(), reached, check); err != nil {
		c.t.Errorf("%s: %v", what, err)
	}
}

// http waits until a server answers with the name and the client's address; no address is any.
func (c *cluster) http(from *lab.Node, to netip.AddrPort, name string, client netip.Addr) {
	c.t.Helper()
	c.reaches(fmt.Sprintf("%s to %s", from.Name, to), func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
		defer cancel()
		got, err := from.HTTPGet(ctx, to)
		if err == nil && (got.Name != name || client.IsValid() && got.Client.Addr().Unmap() != client) {
			err = fmt.Errorf("answer %+v, want %s and client %s", got, name, client)
		}
		return err
	})
}

// echo waits until a UDP server sends a datagram back.
func (c *cluster) echo(from *lab.Node, to netip.AddrPort, size int) {
	c.t.Helper()
	c.reaches(fmt.Sprintf("%d bytes from %s to %s", size, from.Name, to), func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
		defer cancel()
		return from.EchoUDP(ctx, to, size)
	})
}

// serve starts servers at addresses of a machine: HTTP on port 8080 and an echo on UDP port 9000.
func (c *cluster) serve(n *lab.Node, addresses []netip.Addr) {
	c.t.Helper()
	for _, a := range addresses {
		_, err := n.StartHTTP(netip.AddrPortFrom(a, 8080), n.Name)
		_, udp := n.StartUDPEcho(netip.AddrPortFrom(a, 9000))
		c.must(errors.Join(err, udp))
	}
}
