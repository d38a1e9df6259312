// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/ovn-uplink/ovn-uplink/test/lab"
)

// The CRDs are installed on their own, as a person would; those of OVN-Kubernetes because there is none here.
const (
	crds        = "deploy/host/chart/crds"
	networkCRDs = "deploy/host/ovn-kubernetes-crds"
)

// demo is the simulated cluster and what the steps need of it.
type demo struct {
	bin     string
	lab     *lab.Lab
	kubectl string
	regular *lab.Regular
	pair    *lab.Pair
	// sites are the nodes as the Uplink sees them: the regular one, and the pair.
	sites   []site
	tenants []tenant
}

// site is a node's name, where its Open vSwitch and OVN are, and where the Uplink's address is.
type site struct {
	node    string
	zone    *lab.Zone
	bridge  string
	address netip.Addr
}

func (d *demo) build(ctx context.Context, dir string) (err error) {
	say := func(format string, args ...any) { fmt.Printf("   "+format+"\n", args...) }
	if d.lab, err = lab.New(ctx, lab.Options{Dir: dir, Log: say}); err != nil {
		return err
	}
	if d.kubectl, err = lab.KubectlBinary(ctx, say); err != nil {
		return err
	}
	if d.regular, err = d.lab.RegularNode(ctx, "worker-a", lab.RegularSpec{}); err != nil {
		return err
	}
	if d.pair, err = d.lab.Pair(ctx, "worker-b", lab.PairSpec{}); err != nil {
		return err
	}
	if err := d.startOVN(ctx); err != nil {
		return err
	}
	for _, name := range []string{"worker-a", "worker-b"} {
		if err := d.lab.CreateNode(ctx, name, map[string]string{"example.com/tenant-blue-uplink": "true"}); err != nil {
			return err
		}
	}
	return d.run(ctx, "apply", "-f", crds, "-f", networkCRDs)
}

// startOVN does what OVN-Kubernetes would: an OVN beside each Open vSwitch, joined by tunnels, and the cluster's own
// gateway bridge mapped.
func (d *demo) startOVN(ctx context.Context) error {
	d.sites = []site{
		{node: d.regular.Name, bridge: d.regular.Spec.Bridge, address: d.regular.Spec.Addresses[0].Addr()},
		{node: d.pair.Host.Name, bridge: d.pair.Spec.Bridge, address: d.pair.Spec.Addresses[0].Addr()},
	}
	for i, n := range []*lab.Node{d.regular.Node, d.pair.Card} {
		var err error
		if d.sites[i].zone, err = n.StartOVN(ctx, lab.OVNSpec{}); err != nil {
			return err
		}
	}
	return d.lab.Interconnect(ctx, d.sites[0].zone, d.sites[1].zone)
}

func (d *demo) startAgents(ctx context.Context) error {
	kubeconfig, err := d.lab.NodeKubeconfig(lab.AdminUser)
	if err != nil {
		return err
	}
	for _, a := range []struct {
		node *lab.Node
		argv []string
	}{
		{d.regular.Node, []string{"dpu-agent", "--role=all", "--node-name=worker-a", "--state-dir=" + filepath.Join(d.regular.Dir(), "state")}},
		{d.regular.Node, []string{"host-agent", "cluster", "--leader-elect=false"}},
		{d.pair.Host, []string{"host-agent", "--node-name=worker-b", "--sysfs-root=" + d.pair.Host.SysfsRoot()}},
		{d.pair.Card, []string{"dpu-agent", "--role=dpu", "--state-dir=" + filepath.Join(d.pair.Card.Dir(), "state"), "--sysfs-root=" + d.pair.Card.SysfsRoot(), "--devlink-ports=" + d.pair.Card.DevlinkFile()}},
	} {
		argv := append([]string{filepath.Join(d.bin, a.argv[0])}, a.argv[1:]...)
		argv = append(argv, "--kubeconfig="+kubeconfig)
		if _, err := a.node.Start(ctx, a.argv[0], argv, nil); err != nil {
			return err
		}
		fmt.Printf("   %s: %s\n", a.node.Name, strings.Join(a.argv, " "))
	}
	return nil
}

// patience is how long a condition may take: much, on a machine that does other things too.
const patience = 90 * time.Second

// run shows a kubectl command and what it prints.
func (d *demo) run(ctx context.Context, args ...string) error {
	fmt.Printf("   $ kubectl %s\n", strings.Join(args, " "))
	out, err := d.output(ctx, args...)
	fmt.Print(indent(out))
	return err
}

// show shows a command on a machine of the lab and returns what it printed.
func show(ctx context.Context, on *lab.Node, argv ...string) (string, error) {
	fmt.Printf("   %s $ %s\n", on.Name, strings.Join(argv, " "))
	out, err := on.Exec(ctx, argv...)
	fmt.Print(indent(strings.ReplaceAll(out, "\n\n", "\n")))
	return out, err
}

func (d *demo) output(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, d.kubectl, append([]string{"--kubeconfig", d.lab.Kubeconfig()}, args...)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+d.lab.Kubeconfig())
	out, err := cmd.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return string(out), nil
}

// expect waits until the Resolved condition of a state says what it should.
func (d *demo) expect(ctx context.Context, state, want string) error {
	return d.expectCondition(ctx, "uplinkstate", state, "Resolved", want)
}

func (d *demo) expectCondition(ctx context.Context, kind, name, condition, want string) error {
	path := fmt.Sprintf(`{.status.conditions[?(@.type==%q)]`, condition)
	err := d.expectPath(ctx, kind, name, condition, path+".status}/"+path+".reason}", want)
	if err != nil {
		if message, wrong := d.output(ctx, "get", kind, name, "-o", "jsonpath="+path+".message}"); wrong == nil {
			err = fmt.Errorf("%w: %s", err, message)
		}
	}
	return err
}

// expectPath waits until a part of an object, by its JSON path, is what it should be.
func (d *demo) expectPath(ctx context.Context, kind, name, what, path, want string) error {
	start := time.Now()
	err := lab.Eventually(ctx, patience, func(ctx context.Context) error {
		got, err := d.output(ctx, "get", kind, name, "-o", "jsonpath="+path)
		if err == nil && got != want {
			err = fmt.Errorf("%s %s has %s %q, want %q", kind, name, what, got, want)
		}
		return err
	})
	if err == nil {
		fmt.Printf("   %s: %s is %s after %.1f s\n", name, what, want, time.Since(start).Seconds())
	}
	return err
}

func indent(text string) string {
	text = strings.TrimRight(text, "\n")
	return "   " + strings.ReplaceAll(text, "\n", "\n   ") + "\n"
}
