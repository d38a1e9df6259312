// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// OVNSpec describes the OVN of a node. Empty fields get the value in their
// comment.
type OVNSpec struct {
	// SystemID is the chassis name in external_ids:system-id: the node's
	// name.
	SystemID string
	// Override is the chassis name in the file system-id-override, which
	// wins over SystemID (ovn-controller(8)): no such file.
	Override string
	// Mappings is external_ids:ovn-bridge-mappings: "physnet:br-ex". The
	// bridge need not exist.
	Mappings string
}

// Zone is a node with an OVN of its own, as OVN-Kubernetes runs it with one
// node per zone: both databases, ovn-northd and ovn-controller. The methods
// that start and stop them are for one goroutine at a time.
type Zone struct {
	Node *Node
	// Name is that of the Node object, which rows are named after: on a
	// card the host's, external_ids:host-k8s-nodename of Open vSwitch.
	Name string
	// Chassis is the name under which the node is in the southbound
	// database.
	Chassis string
	// ID is the node id that OVN-Kubernetes would have given, 2 and up.
	ID int
	// Encap is the address of the node's end of tunnels.
	Encap netip.Addr

	schema     nbSchema
	remotes    map[*Zone]bool // in the southbound database
	nb         *Process
	sb         *Process
	northd     *Process
	controller *Process
}

// firstNodeID is OVN-Kubernetes' first node id; 0 and 1 are reserved.
const firstNodeID = 2

// syncDeadline bounds Sync, whose time grows with the size of the databases.
const syncDeadline = 2 * time.Minute

// StartOVN starts an OVN on a node that runs Open vSwitch, of the same build,
// and returns once the node is a chassis of it.
func (n *Node) StartOVN(ctx context.Context, spec OVNSpec) (*Zone, error) {
	orString(&spec.SystemID, n.Name)
	orString(&spec.Mappings, "physnet:br-ex")
	n.lab.mu.Lock()
	id := firstNodeID + n.lab.zones
	n.lab.zones++
	n.lab.mu.Unlock()
	z := &Zone{Node: n, Name: n.Name, Chassis: spec.SystemID, ID: id, Encap: n.Address, remotes: map[*Zone]bool{}}
	if spec.Override != "" {
		z.Chassis = spec.Override
	}
	host, err := n.OVS.Vsctl(ctx, "--if-exists", "get", "Open_vSwitch", ".", "external_ids:host-k8s-nodename")
	if err != nil {
		return nil, fmt.Errorf("start OVN on %s: %w", n.Name, err)
	}
	if host = strings.Trim(strings.TrimSpace(host), `"`); host != "" {
		z.Name = host
	}
	if err := z.create(ctx, spec); err != nil {
		return nil, fmt.Errorf("start OVN on %s: %w", n.Name, err)
	}
	// Each waits for the one before it by itself.
	var nb, sb error
	var both sync.WaitGroup
	both.Go(func() { nb = z.StartNB(ctx) })
	both.Go(func() { sb = z.StartSB(ctx) })
	both.Wait()
	if err := errors.Join(nb, sb); err != nil {
		return nil, err
	}
	if err := z.StartNorthd(ctx); err != nil {
		return nil, err
	}
	if err := z.StartController(ctx); err != nil {
		return nil, err
	}
	if _, err := z.Nbctl(ctx, "set", "NB_Global", ".", "name="+z.Name); err != nil {
		return nil, fmt.Errorf("start OVN on %s: %w", n.Name, err)
	}
	return z, nil
}

// create makes what must be there before anything starts.
func (z *Zone) create(ctx context.Context, spec OVNSpec) error {
	o := z.Node.OVS
	schemas := "/usr/share/ovn"
	if o.build != nil {
		schemas = o.build.OVNSchemas
	}
	for db, schema := range map[string]string{z.file("ovnnb_db.db"): "ovn-nb.ovsschema", z.file("ovnsb_db.db"): "ovn-sb.ovsschema"} {
		if _, err := o.command(ctx, "ovsdb-tool", "create", db, filepath.Join(schemas, schema)); err != nil {
			return err
		}
	}
	if err := readJSON(filepath.Join(schemas, "ovn-nb.ovsschema"), &z.schema); err != nil {
		return err
	}
	if spec.Override != "" {
		path := filepath.Join(z.Node.Dir(), "etc", "system-id-override")
		if err := os.WriteFile(path, []byte(spec.Override+"\n"), 0o644); err != nil {
			return fmt.Errorf("write the chassis name: %w", err)
		}
	}
	_, err := o.Vsctl(ctx, "--no-wait", "set", "Open_vSwitch", ".",
		"external_ids:system-id="+spec.SystemID,
		"external_ids:ovn-remote="+quote(z.SB()),
		"external_ids:ovn-encap-type=geneve",
		"external_ids:ovn-encap-ip="+z.Encap.String(),
		"external_ids:ovn-bridge=br-int",
		"external_ids:ovn-bridge-datapath-type="+z.Node.lab.datapath(),
		"external_ids:ovn-monitor-all=true",
		"external_ids:ovn-bridge-mappings="+quote(spec.Mappings))
	return err
}

// quote protects a value from the commands' own syntax, ovs-vsctl(8).
func quote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

// file is a path in the directory of the node's databases.
func (z *Zone) file(name string) string { return filepath.Join(z.Node.Dir(), "db", name) }

// socket is a path in the node's run directory.
func (z *Zone) socket(name string) string { return filepath.Join(z.Node.OVS.run(), name) }

// NB is the northbound database's endpoint, valid in every namespace.
func (z *Zone) NB() string { return "unix:" + z.socket("ovnnb_db.sock") }

// SB is the southbound database's endpoint, valid in every namespace.
func (z *Zone) SB() string { return "unix:" + z.socket("ovnsb_db.sock") }

// Nbctl runs ovn-nbctl and returns its output.
func (z *Zone) Nbctl(ctx context.Context, args ...string) (string, error) {
	return z.Node.OVS.command(ctx, "ovn-nbctl", append([]string{"--timeout=20", "--db=" + z.NB()}, args...)...)
}

// Sbctl runs ovn-sbctl and returns its output.
func (z *Zone) Sbctl(ctx context.Context, args ...string) (string, error) {
	return z.Node.OVS.command(ctx, "ovn-sbctl", append([]string{"--timeout=20", "--db=" + z.SB()}, args...)...)
}

// Appctl runs a command of one of the zone's processes, "ovn-controller" or
// "ovn-northd", and returns its output.
func (z *Zone) Appctl(ctx context.Context, target string, args ...string) (string, error) {
	return z.Node.OVS.command(ctx, "ovn-appctl", append([]string{"--timeout=20", "--target=" + target}, args...)...)
}

// Sync waits until the flows of the node's integration bridge are those of
// the northbound database as it is now.
func (z *Zone) Sync(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, syncDeadline)
	defer cancel()
	_, err := z.Node.OVS.command(ctx, "ovn-nbctl",
		fmt.Sprintf("--timeout=%d", int(syncDeadline.Seconds())), "--db="+z.NB(), "--wait=hv", "sync")
	if err != nil {
		return fmt.Errorf("wait for the flows of %s: %w", z.Node.Name, err)
	}
	return nil
}
