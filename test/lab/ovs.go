// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// maxSocketPath is the longest path of a unix socket, unix(7).
const maxSocketPath = 107

// OVSBuild is an Open vSwitch, and an OVN, other than the installed ones.
type OVSBuild struct {
	// Path is the directory of its executables, searched before PATH.
	Path string
	// Schema is its vswitch.ovsschema.
	Schema string
	// OVNSchemas is the directory of its ovn-nb.ovsschema and
	// ovn-sb.ovsschema. Only nodes that run OVN need it.
	OVNSchemas string
}

// installedSchema is where the distribution's package has it.
const installedSchema = "/usr/share/openvswitch/vswitch.ovsschema"

// OVS is the Open vSwitch of one node: an ovsdb-server and an ovs-vswitchd of
// its own, with everything they write below the node's directory. The methods
// that start and stop them are for one goroutine at a time.
type OVS struct {
	node     *Node
	build    *OVSBuild
	db       *Process
	vswitchd *Process
}

func (o *OVS) run() string { return filepath.Join(o.node.Dir(), "run") }

func (o *OVS) conf() string { return filepath.Join(o.node.Dir(), "db", "conf.db") }

func (o *OVS) dirs() []string {
	dir := o.node.Dir()
	return []string{o.run(), filepath.Join(dir, "db"), filepath.Join(dir, "log"), filepath.Join(dir, "etc")}
}

// DB is the database's endpoint, such as "unix:/…/db.sock". It is valid in
// every namespace.
func (o *OVS) DB() string { return "unix:" + filepath.Join(o.run(), "db.sock") }

// RunDir is where the sockets are: db.sock, <bridge>.mgmt and others. Commands
// of Open vSwitch find it through the variable OVS_RUNDIR, which Node.Exec and
// Node.Start set.
func (o *OVS) RunDir() string { return o.run() }

// env is the environment in which Open vSwitch's and OVN's commands find this
// node's processes, ovs-vswitchd(8) and others.
func (o *OVS) env() []string {
	dir := o.node.Dir()
	env := append(baseEnv(),
		"OVS_RUNDIR="+o.run(),
		"OVS_DBDIR="+filepath.Join(dir, "db"),
		"OVS_LOGDIR="+filepath.Join(dir, "log"),
		"OVS_SYSCONFDIR="+filepath.Join(dir, "etc"),
		"OVN_RUNDIR="+o.run(),
		"OVN_DBDIR="+filepath.Join(dir, "db"),
		"OVN_SYSCONFDIR="+filepath.Join(dir, "etc"),
		"OVN_LOGDIR="+filepath.Join(dir, "log"))
	if o.build != nil {
		env = append(env, "PATH="+o.build.Path+string(filepath.ListSeparator)+os.Getenv("PATH"))
	}
	return env
}

// datapath is the type that bridges are given, ovs-vswitchd.conf.db(5).
func (l *Lab) datapath() string {
	if l.opts.KernelDatapath {
		return "system"
	}
	return "netdev"
}

// StartOVS starts an Open vSwitch on the node, of the version that the lab's
// options name.
func (n *Node) StartOVS(ctx context.Context) error { return n.StartOVSBuild(ctx, n.lab.opts.OVS) }

// StartOVSBuild is StartOVS with a given version; nil is the installed one.
func (n *Node) StartOVSBuild(ctx context.Context, build *OVSBuild) error {
	o := n.OVS
	o.build = build
	schema := installedSchema
	if build != nil {
		schema = build.Schema
	}
	if _, err := o.command(ctx, "ovsdb-tool", "create", o.conf(), schema); err != nil {
		return fmt.Errorf("start Open vSwitch on %s: %w", n.Name, err)
	}
	if err := o.StartDB(ctx); err != nil {
		return err
	}
	_, err := o.Vsctl(ctx, "--no-wait", "--", "init", "--", "set", "Open_vSwitch", ".",
		"external_ids:system-id="+n.Name, "external_ids:hostname="+n.Name)
	if err != nil {
		return fmt.Errorf("start Open vSwitch on %s: %w", n.Name, err)
	}
	return o.StartVswitchd(ctx)
}

// Vsctl runs ovs-vsctl on the node's database and returns its output. It waits
// for ovs-vswitchd to carry out a change unless --no-wait is among the
// arguments.
func (o *OVS) Vsctl(ctx context.Context, args ...string) (string, error) {
	return o.command(ctx, "ovs-vsctl", append([]string{"--timeout=20"}, args...)...)
}

// Ofctl runs ovs-ofctl on a bridge of the node, with OpenFlow 1.4 so that
// bundles work, and returns its output.
func (o *OVS) Ofctl(ctx context.Context, args ...string) (string, error) {
	return o.command(ctx, "ovs-ofctl", append([]string{"--timeout=20", "-OOpenFlow14"}, args...)...)
}

// Appctl runs a command of the node's ovs-vswitchd and returns its output.
func (o *OVS) Appctl(ctx context.Context, args ...string) (string, error) {
	return o.command(ctx, "ovs-appctl", append([]string{"--timeout=20", "--target=ovs-vswitchd"}, args...)...)
}

// command runs one of Open vSwitch's commands outside the namespace: all that
// they talk to are sockets with a path.
func (o *OVS) command(ctx context.Context, name string, args ...string) (string, error) {
	path, err := lookPath(name, o.env())
	if err != nil {
		return "", err
	}
	return command{argv: append([]string{path}, args...), env: o.env()}.run(ctx)
}

// StartDB starts the node's ovsdb-server on the database that StartOVS made
// and waits until it answers.
func (o *OVS) StartDB(ctx context.Context) error {
	p, err := o.start(ctx, "ovsdb-server",
		o.conf(),
		"--remote=p"+o.DB(),
		"--remote=db:Open_vSwitch,Open_vSwitch,manager_options")
	if err != nil {
		return err
	}
	o.db = p
	return o.waitFor(ctx, p, func(ctx context.Context) error {
		_, err := o.command(ctx, "ovsdb-client", "list-dbs", o.DB())
		return err
	})
}

// StopDB ends ovsdb-server.
func (o *OVS) StopDB(ctx context.Context) error { return stopIf(ctx, o.db) }

// RestartDB ends ovsdb-server and starts it again.
func (o *OVS) RestartDB(ctx context.Context) error {
	if err := o.StopDB(ctx); err != nil {
		return err
	}
	return o.StartDB(ctx)
}

// StartVswitchd starts ovs-vswitchd and waits until it has carried out what
// the database says. In the userspace datapath, internal interfaces end with
// the process that made them: after a restart they are new, and without
// addresses.
func (o *OVS) StartVswitchd(ctx context.Context) error {
	p, err := o.start(ctx, "ovs-vswitchd", o.DB())
	if err != nil {
		return err
	}
	o.vswitchd = p
	return o.waitFor(ctx, p, func(ctx context.Context) error {
		// An empty change still waits until everything is configured.
		_, err := o.Vsctl(ctx, "set", "Open_vSwitch", ".", "external_ids:hostname="+o.node.Name)
		return err
	})
}

// StopVswitchd ends ovs-vswitchd.
func (o *OVS) StopVswitchd(ctx context.Context) error { return stopIf(ctx, o.vswitchd) }

// DBProcess is the ovsdb-server that was started last, nil before StartOVS.
func (o *OVS) DBProcess() *Process { return o.db }

// VswitchdProcess is the ovs-vswitchd that was started last, nil before
// StartOVS.
func (o *OVS) VswitchdProcess() *Process { return o.vswitchd }

// start runs a daemon in the foreground, where its pid is known from the
// start, and lets it log to the process's log.
func (o *OVS) start(ctx context.Context, program string, args ...string) (*Process, error) {
	return o.startAs(ctx, program, program, args...)
}

// startAs is start for one of several processes of a program, under a name of
// its own.
func (o *OVS) startAs(ctx context.Context, name, program string, args ...string) (*Process, error) {
	return o.node.lab.start(ctx, o.spec(name, program, args))
}

// startMonitored is start for a daemon that crashes by itself: one that
// restarts it stays with it.
func (o *OVS) startMonitored(ctx context.Context, program string, args ...string) (*Process, error) {
	spec := o.spec(program, program, append(args, "--monitor"))
	spec.monitor = true
	return o.node.lab.start(ctx, spec)
}

func (o *OVS) spec(name, program string, args []string) processSpec {
	return processSpec{
		name:  o.node.Name + "." + name,
		netns: o.node.NetNS,
		argv: append([]string{program}, append(args,
			"--pidfile="+filepath.Join(o.run(), name+".pid"), "--overwrite-pidfile",
			"--no-chdir", "-vconsole:info", "-vsyslog:off", "-vfile:off")...),
		env:   o.env(),
		infra: true,
	}
}

func (o *OVS) waitFor(ctx context.Context, p *Process, answers func(context.Context) error) error {
	err := Eventually(ctx, 20*time.Second, func(ctx context.Context) error {
		if !p.Running() {
			return fmt.Errorf("%s ended: %w", p.Name, p.Wait(ctx))
		}
		return answers(ctx)
	})
	if err != nil {
		return fmt.Errorf("start %s: %w; the end of its log:\n%s", p.Name, err, strings.TrimSpace(p.Log(2000)))
	}
	return nil
}

func stopIf(ctx context.Context, p *Process) error {
	if p == nil {
		return nil
	}
	return p.Stop(ctx)
}
