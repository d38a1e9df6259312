// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/ovn-uplink/ovn-uplink/test/lab"
)

const tenantBlue = `apiVersion: k8s.ovn.org/v1alpha1
kind: Uplink
metadata:
  name: tenant-blue
spec:
  nodeConfigs:
  - type: OVSBridge
    nodeSelector:
      matchLabels:
        kubernetes.io/hostname: worker-a
        example.com/tenant-blue-uplink: "true"
    hostInterfaceName: ovsbr1
  - type: OVSBridge
    nodeSelector:
      matchLabels:
        kubernetes.io/hostname: worker-b
        example.com/tenant-blue-uplink: "true"
    hostInterfaceName: ens1f0
`

const oops = `apiVersion: k8s.ovn.org/v1alpha1
kind: Uplink
metadata:
  name: oops
spec:
  nodeConfigs:
  - type: OVSBridge
    nodeSelector:
      matchLabels:
        kubernetes.io/hostname: worker-a
    hostInterfaceName: %s
`

const isResolved = "True/Resolved"

func (d *demo) resolve(ctx context.Context) error {
	fmt.Print(indent(tenantBlue))
	if err := d.lab.Apply(ctx, tenantBlue); err != nil {
		return err
	}
	for _, state := range []string{"tenant-blue.worker-a", "tenant-blue.worker-b"} {
		if err := d.expect(ctx, state, isResolved); err != nil {
			return err
		}
	}
	if err := d.expectCondition(ctx, "uplink", "tenant-blue", "Ready", "True/Ready"); err != nil {
		return err
	}
	return d.table(ctx)
}

func (d *demo) table(ctx context.Context) error {
	return d.run(ctx, "get", "uplink,uplinkstate", "-o", "wide")
}

func (d *demo) missingInterface(ctx context.Context) error {
	host, iface := d.pair.Host, d.pair.Spec.Interface
	fmt.Printf("   on worker-b: ip link set %s name renamed0\n", iface)
	if err := d.rename(ctx, iface, "renamed0"); err != nil {
		return err
	}
	if err := d.expect(ctx, "tenant-blue.worker-b", "False/HostInterfaceNotFound"); err != nil {
		return err
	}
	if err := d.why(ctx, "uplinkstate", "tenant-blue.worker-b", "Resolved"); err != nil {
		return err
	}
	if err := d.expectCondition(ctx, "uplink", "tenant-blue", "Ready", "False/UplinkStateNotResolved"); err != nil {
		return err
	}
	if err := d.why(ctx, "uplink", "tenant-blue", "Ready"); err != nil {
		return err
	}
	fmt.Printf("   on worker-b: the interface comes back, with its address and route\n")
	if err := d.rename(ctx, "renamed0", iface); err != nil {
		return err
	}
	if _, err := host.IP(ctx, "route", "replace", "default", "via", d.pair.Spec.Gateways[0].String(), "dev", iface); err != nil {
		return err
	}
	return d.expect(ctx, "tenant-blue.worker-b", isResolved)
}

func (d *demo) rename(ctx context.Context, from, to string) error {
	for _, args := range [][]string{
		{"link", "set", from, "down"}, {"link", "set", from, "name", to}, {"link", "set", to, "up"},
	} {
		if _, err := d.pair.Host.IP(ctx, args...); err != nil {
			return err
		}
	}
	return nil
}

func (d *demo) integrationBridge(ctx context.Context) error {
	n := d.regular.Node
	for _, args := range [][]string{{"link", "set", "br-int", "up"}, {"addr", "replace", "198.51.100.1/24", "dev", "br-int"}} {
		if _, err := n.IP(ctx, args...); err != nil {
			return err
		}
	}
	fmt.Println("   an Uplink named oops has hostInterfaceName: br-int for worker-a")
	if err := d.lab.Apply(ctx, fmt.Sprintf(oops, "br-int")); err != nil {
		return err
	}
	if err := d.expect(ctx, "oops.worker-a", "False/BridgeInvalid"); err != nil {
		return err
	}
	if err := d.why(ctx, "uplinkstate", "oops.worker-a", "Resolved"); err != nil {
		return err
	}
	fmt.Printf("   the administrator names %s instead\n", d.regular.Spec.Bridge)
	if err := d.lab.Apply(ctx, fmt.Sprintf(oops, d.regular.Spec.Bridge)); err != nil {
		return err
	}
	if err := d.expect(ctx, "oops.worker-a", isResolved); err != nil {
		return err
	}
	if err := d.run(ctx, "delete", "uplink", "oops", "--timeout=60s"); err != nil {
		return err
	}
	_, err := n.IP(ctx, "addr", "del", "198.51.100.1/24", "dev", "br-int")
	return err
}

// why prints what a person would read.
func (d *demo) why(ctx context.Context, kind, name, condition string) error {
	message, err := d.output(ctx, "get", kind, name, "-o", fmt.Sprintf(`jsonpath={.status.conditions[?(@.type==%q)].message}`, condition))
	if err == nil {
		fmt.Printf("   message: %s\n", message)
	}
	return err
}

func (d *demo) goodbye(dir string, took time.Duration) {
	kubectl := "kubectl"
	if _, err := exec.LookPath(kubectl); err != nil {
		kubectl = d.kubectl
	}
	inside := "go run ./test/lab/cmd/lab exec --dir " + dir
	fmt.Printf(`
== All as expected, after %.0f s. Everything is up. Try:
   export KUBECONFIG=%s
   %s get uplinkstate tenant-blue.worker-a -o yaml
   %s blue-a -- curl -s http://%s
   %s worker-a -- %s
   Logs of the agents are in %s/log. 'make demo-down' ends it all.
`, took.Seconds(), d.lab.Kubeconfig(), kubectl, inside, lab.InternetAddress, inside, strings.Join(d.explain("red"), " "), dir)
}
