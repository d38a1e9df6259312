// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
	"github.com/ovn-uplink/ovn-uplink/test/lab"
	"k8s.io/apimachinery/pkg/types"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// advertise has networks with the label advertise=NAME advertised in a VRF.
func (c *cluster) advertise(name, vrf string) {
	c.t.Helper()
	c.must(c.Apply(c.t.Context(), fmt.Sprintf(`
apiVersion: k8s.ovn.org/v1
kind: RouteAdvertisements
metadata: {name: %[1]s}
spec:
  targetVRF: %[2]q
  advertisements: [PodNetwork]
  nodeSelector: {}
  frrConfigurationSelector: {}
  networkSelectors:
  - networkSelectionType: ClusterUserDefinedNetworks
    clusterUserDefinedNetworkSelector: {networkSelector: {matchLabels: {advertise: %[1]s}}}
`, name, vrf)))
}

func (c *cluster) withdraw(name string) {
	c.t.Helper()
	client, err := c.Dynamic()
	c.must(err)
	gvr := schema.GroupVersionResource{Group: "k8s.ovn.org", Version: "v1", Resource: "routeadvertisements"}
	c.must(client.Resource(gvr).Delete(c.t.Context(), name, metav1.DeleteOptions{}))
}

// label gives a CUDN a label that RouteAdvertisements select by; an empty value takes it away.
func (c *cluster) label(cudn, value string) {
	c.t.Helper()
	label := "null"
	if value != "" {
		label = fmt.Sprintf("%q", value)
	}
	_, err := c.networks().Patch(c.t.Context(), cudn, types.MergePatchType,
		[]byte(`{"metadata":{"labels":{"advertise":`+label+`}}}`), metav1.PatchOptions{})
	c.must(err)
}

// routeTo has the network outside know the way to pods, as a router does that BGP told of it.
func (f *field) routeTo(p *post, pods ...*lab.Pod) {
	f.t.Helper()
	for _, pod := range pods {
		for i, a := range pod.Addresses {
			_, err := f.external.IP(f.t.Context(), "route", "replace", a.String(), "via", p.addresses[i].String())
			f.must(err)
		}
	}
}

// seenAs waits until a server outside sees a pod by an address.
func (f *field) seenAs(pod *lab.Pod, to, as netip.Addr) {
	f.t.Helper()
	f.http(pod.Node, netip.AddrPortFrom(to, podHTTP), f.client.Name, as)
}

// learned are addresses that only a route of BGP leads to: the network outside's own gateways do not know them.
var learned = addrs("192.0.2.9", "2001:db8:113::9")

// A network that is advertised in the default VRF is known outside by its pods' addresses, and reaches what BGP taught.
func TestGatewayAdvertised(t *testing.T) {
	t.Parallel()
	for _, version := range lab.OVNVersions(t) {
		t.Run(version.Name, func(t *testing.T) { advertised(t, newField(t, version)) })
	}
}

func advertised(t *testing.T, f *field) {
	f.serve(f.client, clientAddresses)
	blue, red := f.network(lab.NetworkSpec{CUDN: "blue"}), f.network(lab.NetworkSpec{CUDN: "red"})
	f.covered("blue", "red")
	f.label("blue", "bgp")
	for _, a := range learned {
		_, err := f.station.IP(t.Context(), "address", "add", a.String(), "dev", "lo", "nodad")
		f.must(err)
	}
	f.serve(f.station, learned)

	pods := map[*post][]*lab.Pod{}
	for _, p := range f.posts {
		pods[p] = []*lab.Pod{f.pod(blue, p, "a-"+p.node), f.pod(red, p, "a-"+p.node)}
		f.serve(pods[p][0].Node, pods[p][0].Addresses)
		f.serve(pods[p][1].Node, pods[p][1].Addresses)
		f.routeTo(p, pods[p][0])
	}
	translated := func(f *field, p *post, pod *lab.Pod) {
		for i, to := range clientAddresses {
			f.seenAs(pod, to, p.addresses[i])
		}
	}
	untranslated := func(f *field, pod *lab.Pod) {
		for i, to := range clientAddresses {
			f.seenAs(pod, to, pod.Addresses[i])
			f.http(f.client, netip.AddrPortFrom(pod.Addresses[i], podHTTP), pod.Name, to)
			f.echo(pod.Node, netip.AddrPortFrom(to, podEcho), 4000)
		}
	}
	f.each(t, "not advertised", func(f *field, p *post) {
		translated(f, p, pods[p][0])
		for _, a := range pods[p][0].Addresses {
			if _, err := f.client.Exec(t.Context(), "ping", "-c1", "-W1", a.String()); err == nil {
				f.t.Errorf("%s answers at %s though it is not advertised", pods[p][0].Name, a)
			}
		}
	})

	f.advertise("bgp", "default")
	f.each(t, "advertised", func(f *field, p *post) {
		untranslated(f, pods[p][0])
		translated(f, p, pods[p][1])
	})
	f.each(t, "learned", func(f *field, p *post) { f.follows(p, pods[p][0]) })

	// Two that what comes from the wire could be for: neither gets more than it has.
	f.label("red", "bgp")
	for _, p := range f.posts {
		f.within(programmed, fieldUplink, p.node, gatewayFails(uplinkstate.ReasonUplinkConfigurationConflict))
		untranslated(f, pods[p][0])
		translated(f, p, pods[p][1])
	}
	f.label("red", "")
	f.covered("blue", "red")

	f.withdraw("bgp")
	f.each(t, "withdrawn", func(f *field, p *post) { translated(f, p, pods[p][0]) })
}

// follows checks that pods reach what BGP taught the kernel, and no more when it took that back.
func (f *field) follows(p *post, pod *lab.Pod) {
	f.t.Helper()
	ctx := f.t.Context()
	prefixes := []string{"192.0.2.0/24", "2001:db8:113::/64"}
	route := func(command string, i int) {
		args := []string{"route", command, prefixes[i], "via", stationAddresses[i].Addr().String(), "dev", p.bridge, "proto", "bgp"}
		if p.host != p.ovs { // the card's bridge has no address
			args = append(args, "onlink")
		}
		_, err := p.ovs.IP(ctx, args...)
		f.must(err)
	}
	reaches := func(i int) error {
		_, err := pod.Exec(ctx, "ping", "-c1", "-W1", learned[i].String())
		return err
	}
	for i := range prefixes {
		if reaches(i) == nil {
			f.t.Errorf("%s is reached before it was learned", learned[i])
		}
		route("add", i)
		f.http(pod.Node, netip.AddrPortFrom(learned[i], podHTTP), f.station.Name, pod.Addresses[i])
		// What all goes at once may come back; another prefix says that it does not.
		route("del", i)
		f.must(lab.Eventually(ctx, 30*time.Second, func(context.Context) error {
			if reaches(i) == nil {
				return fmt.Errorf("%s is reached though BGP took it back", learned[i])
			}
			return nil
		}))
	}
	out, err := p.zone.Nbctl(ctx, "--bare", "--columns=ip_prefix", "list", "Logical_Router_Static_Route")
	if err != nil || strings.Contains(out, "192.0.2.0") {
		f.t.Errorf("routes that were taken back are left: %v\n%s", err, out)
	}
}

// Ten thousand routes come, one of them changes, and that is one row.
func TestGatewayImportsManyRoutes(t *testing.T) {
	t.Parallel()
	const routes = 10_000
	c := newGatewayCluster(t, version(t, "installed"))
	s := c.regularSite("worker-a", lab.RegularSpec{})
	c.uplink("tenant-blue", nodeConfig(s.iface, nil))
	blue := c.tenantNetwork("tenant-blue", lab.NetworkSpec{CUDN: "blue"}, s)
	agent := s.dpuAgent()
	c.within(programmed, "tenant-blue", s.node, covers("blue"))
	pod := s.pod(blue, "a")

	batch := func(command func(i int) string) {
		t.Helper()
		var lines strings.Builder
		for i := range routes {
			fmt.Fprintln(&lines, command(i))
		}
		file := filepath.Join(t.TempDir(), "batch")
		c.must(os.WriteFile(file, []byte(lines.String()), 0o600))
		_, err := s.ovs.IP(t.Context(), "-batch", file)
		c.must(err)
	}
	prefix := func(i int) string { return fmt.Sprintf("11.%d.%d.0/24", i/256, i%256) }
	imported := func(want func(map[string]string) error) map[string]string {
		t.Helper()
		var rows map[string]string
		begin := time.Now()
		c.must(lab.Eventually(t.Context(), programmed, func(ctx context.Context) error {
			out, err := s.zone.Nbctl(ctx, "--bare", "--no-headings", "--format=csv", "--columns=_uuid,ip_prefix", "list", "Logical_Router_Static_Route")
			if err != nil {
				return err
			}
			rows = map[string]string{}
			for line := range strings.Lines(out) {
				if uuid, p, _ := strings.Cut(strings.TrimSpace(line), ","); strings.HasPrefix(p, "11.") {
					rows[uuid] = p
				}
			}
			return want(rows)
		}))
		t.Logf("after %s", time.Since(begin).Round(time.Millisecond))
		return rows
	}
	count := func(n int) func(map[string]string) error {
		return func(rows map[string]string) error {
			if len(rows) != n {
				return fmt.Errorf("%d routes, want %d", len(rows), n)
			}
			return nil
		}
	}
	batch(func(i int) string { return "route add " + prefix(i) + " via 172.28.0.1 proto bgp metric 20" })
	before := imported(count(routes))
	c.within(programmed, "tenant-blue", s.node, covers("blue"))

	_, err := s.ovs.IP(t.Context(), "route", "del", prefix(77))
	c.must(err)
	after := imported(count(routes - 1))
	for uuid := range after {
		if before[uuid] == "" {
			t.Errorf("%s was written anew", after[uuid])
		}
	}
	rss, err := agent.RSS()
	c.must(err)
	t.Logf("the agent takes %d MiB", rss>>20)
	c.pings(pod.Node, lab.InternetAddress)

	// All at once may be a routing daemon's restart: nothing changes for the grace time, and then all of it.
	batch(func(i int) string {
		if i == 77 {
			return "link show lo" // it is gone already
		}
		return "route del " + prefix(i)
	})
	imported(count(0))
}
