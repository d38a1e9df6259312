// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"
	"time"

	"github.com/ovn-uplink/ovn-uplink/test/lab"
)

// tenant is a network of the demo with a pod on each node.
type tenant struct {
	name     string
	nodePort int32
	network  *lab.Network
	pods     []*lab.Pod // in the order of the sites
}

// tenantNetwork is a network and the namespace that its pods are in.
const tenantNetwork = `apiVersion: v1
kind: Namespace
metadata:
  name: %[1]s
  labels: {k8s.ovn.org/primary-user-defined-network: ""}
---
apiVersion: k8s.ovn.org/v1
kind: ClusterUserDefinedNetwork
metadata:
  name: %[1]s
spec:
  uplinks: [tenant-blue]
  namespaceSelector:
    matchLabels: {kubernetes.io/metadata.name: %[1]s}
  network:
    topology: Layer3
    layer3: {role: Primary, subnets: [{cidr: 10.200.0.0/16, hostSubnet: 24}]}
`

func (d *demo) networks(ctx context.Context) error {
	fmt.Print(indent(fmt.Sprintf(tenantNetwork, "blue")))
	fmt.Println("   and the same for red; OVN-Kubernetes' part, routers, switches and pods in OVN, is played by the lab")
	for i, name := range []string{"blue", "red"} {
		t := tenant{name: name, nodePort: 30080 + int32(i)}
		var err error
		if t.network, err = d.lab.Network(ctx, lab.NetworkSpec{CUDN: name}, d.sites[0].zone, d.sites[1].zone); err != nil {
			return err
		}
		if err := d.lab.Apply(ctx, fmt.Sprintf(tenantNetwork, name)); err != nil {
			return err
		}
		d.tenants = append(d.tenants, t)
	}
	for _, s := range d.sites {
		// Without networks the gateway was ready too.
		state := "tenant-blue." + s.node
		if err := d.expectPath(ctx, "uplinkstate", state, "networks", "{.status.networks[*].name}", "blue red"); err != nil {
			return err
		}
		if err := d.expectCondition(ctx, "uplinkstate", state, "GatewayReady", "True/GatewayConfigured"); err != nil {
			return err
		}
	}
	for _, t := range d.tenants {
		if err := d.expectCondition(ctx, "clusteruserdefinednetwork", t.name, "UplinksReady", "True/UplinksReady"); err != nil {
			return err
		}
	}
	if err := d.table(ctx); err != nil {
		return err
	}
	return d.run(ctx, "get", "uplinkstate", "-o", "custom-columns=NAME:.metadata.name,NETWORKS:.status.networks[*].name,PHASES:.status.networks[*].phase")
}

// egress has a pod of each network on each node ping and ask a server far away, and looks at the wire.
func (d *demo) egress(ctx context.Context) error {
	external := d.regular.External
	if err := serve(ctx, external.Node, netip.AddrPortFrom(lab.InternetAddress, 80)); err != nil {
		return err
	}
	wire, err := external.Capture("ext0")
	if err != nil {
		return err
	}
	defer func() { _ = wire.Close() }()
	for i, s := range d.sites {
		for j := range d.tenants {
			t := &d.tenants[j]
			pod, err := t.network.Pod(ctx, s.zone, string(rune('a'+i)))
			if err != nil {
				return err
			}
			t.pods = append(t.pods, pod)
			fmt.Printf("   %s is a pod of %s on %s with address %s\n", pod.Name, t.name, s.node, pod.Addresses[0])
			wire.Reset()
			if err := ping(ctx, pod.Node); err != nil {
				return err
			}
			if err := left(ctx, wire, s.address); err != nil {
				return err
			}
			a, err := ask(ctx, pod.Node, netip.AddrPortFrom(lab.InternetAddress, 80))
			if err != nil {
				return err
			}
			if a.client.Addr() != s.address {
				return fmt.Errorf("the server saw %s as %s, want the Uplink's address %s", pod.Name, a.client, s.address)
			}
		}
	}
	return nil
}

// ping shows one ping that was answered. The first may be lost while neighbours are learned.
func ping(ctx context.Context, from *lab.Node) error {
	argv := []string{"ping", "-c", "1", "-W", "2", lab.InternetAddress.String()}
	var out string
	err := lab.Eventually(ctx, patience, func(ctx context.Context) (err error) {
		out, err = from.Exec(ctx, argv...)
		return err
	})
	fmt.Printf("   %s $ %s\n", from.Name, strings.Join(argv, " "))
	for line := range strings.Lines(out) {
		if strings.Contains(line, "bytes from") {
			fmt.Print(indent(line))
		}
	}
	return err
}

// left checks that the pings on the wire have the Uplink's address, and nothing there has a pod's.
func left(ctx context.Context, wire *lab.Capture, want netip.Addr) error {
	seen, err := wire.Wait(ctx, 10*time.Second, lab.Echo(), lab.To(lab.InternetAddress))
	if err != nil {
		return err
	}
	fmt.Printf("   on the wire: %s > %s, ICMP echo request, from %s\n", seen.Src, seen.Dst, seen.EthSrc)
	if seen.Src != want {
		return fmt.Errorf("the ping left with source %s, want the Uplink's address %s", seen.Src, want)
	}
	pods := netip.MustParsePrefix("10.200.0.0/16")
	return wire.None(lab.Any(lab.Src(pods), lab.Dst(pods)))
}

// ask shows an HTTP request and what was answered. It is repeated: the first may come before the flows do.
func ask(ctx context.Context, from *lab.Node, at netip.AddrPort) (answer, error) {
	argv := []string{"curl", "-sS", "--max-time", "2", "http://" + at.String()}
	var out string
	err := lab.Eventually(ctx, patience, func(ctx context.Context) (err error) {
		out, err = from.Exec(ctx, argv...)
		return err
	})
	fmt.Printf("   %s $ %s\n", from.Name, strings.Join(argv, " "))
	fmt.Print(indent(out))
	if err != nil {
		return answer{}, err
	}
	return parseAnswer(out)
}

// ingress publishes a service of each network on a node port, and asks for it from outside at each node.
func (d *demo) ingress(ctx context.Context) error {
	for _, t := range d.tenants {
		for _, pod := range t.pods {
			if err := serve(ctx, pod.Node, netip.AddrPortFrom(pod.Addresses[0], 80)); err != nil {
				return err
			}
		}
		spec := lab.ServiceSpec{Namespace: t.name, Name: "web", Ports: []lab.ServicePort{{Port: 80, NodePort: t.nodePort}}}
		if _, err := d.lab.CreateService(ctx, spec); err != nil {
			return err
		}
		if err := d.lab.MirrorEndpoints(ctx, spec, t.network, t.pods...); err != nil {
			return err
		}
	}
	if err := d.run(ctx, "get", "service", "-A", "-o", "wide", "--field-selector", "metadata.name=web"); err != nil {
		return err
	}
	for _, s := range d.sites {
		for _, t := range d.tenants {
			a, err := ask(ctx, d.regular.External.Node, netip.AddrPortFrom(s.address, uint16(t.nodePort)))
			if err != nil {
				return err
			}
			if !strings.HasPrefix(a.name, t.name+"-") {
				return fmt.Errorf("node port %d of %s was answered by %s, want a pod of %s", t.nodePort, s.node, a.name, t.name)
			}
		}
	}
	return nil
}

// inside shows that both networks leave by one patch port, and what OVN has for that.
func (d *demo) inside(ctx context.Context) error {
	for _, s := range d.sites {
		out, err := show(ctx, s.zone.Node, "ovs-vsctl", "list-ports", s.bridge)
		if err != nil {
			return err
		}
		if n := strings.Count(out, "patch-"); n != 1 {
			return fmt.Errorf("bridge %s of %s has %d patch ports, want one for all networks", s.bridge, s.node, n)
		}
	}
	fmt.Println()
	_, err := show(ctx, d.regular.Node, d.explain("blue")...)
	return err
}

// explain is the command that shows the chain of a network on worker-a.
func (d *demo) explain(network string) []string {
	return []string{filepath.Join(d.bin, "dpu-agent"), "explain", network, "--role=all", "--node-name=" + d.regular.Name}
}
