// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"regexp"
)

// Node is a machine of the lab: a network namespace with a management
// interface, and, after StartOVS, an Open vSwitch of its own. A machine of the
// external network is a Node without the management interface.
type Node struct {
	Name string
	// NetNS is the namespace's name for ip-netns(8).
	NetNS string
	// Address is the node's own on the management network; the zero value
	// on the external network.
	Address netip.Addr
	// OVS is the node's Open vSwitch. It runs after StartOVS.
	OVS *OVS

	lab *Lab
}

// ManagementInterface is the name of the interface through which a node
// reaches the API server.
const ManagementInterface = "mgmt0"

// firstNode is the last byte of the first node's management address.
const firstNode = 10

// longestSocket is the room that Open vSwitch's and OVN's sockets need behind
// a node's run directory: "/ovn-controller.4194304.ctl".
const longestSocket = 27

var nodeName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?$`)

// AddNode makes a node: its namespace and its management interface. The name
// becomes part of file names and must be a DNS label of at most 40 bytes. It
// makes no Node object; see CreateNode.
func (l *Lab) AddNode(ctx context.Context, name string) (*Node, error) {
	l.mu.Lock()
	l.addresses++
	last := firstNode + l.addresses - 1
	l.mu.Unlock()
	if last > 250 {
		return nil, fmt.Errorf("add node %s: the management network is full", name)
	}
	base := managementNet.Addr().As4()
	base[3] = byte(last)
	n, err := l.addMachine(ctx, name, "node", netip.AddrFrom4(base))
	if err != nil {
		return nil, fmt.Errorf("add node %s: %w", name, err)
	}
	if err := n.answerARPWhereAsked(); err != nil {
		return nil, err
	}
	port := fmt.Sprintf("m%d", last)
	err = ipAll(ctx, l.api.NetNS,
		fmt.Sprintf("link add %s type veth peer name %s netns %s", port, ManagementInterface, n.NetNS),
		fmt.Sprintf("link set %s master %s up", port, managementBridge))
	if err == nil {
		err = ipAll(ctx, n.NetNS,
			fmt.Sprintf("addr add %s/%d dev %s", n.Address, managementNet.Bits(), ManagementInterface),
			fmt.Sprintf("link set %s up", ManagementInterface))
	}
	if err != nil {
		return nil, fmt.Errorf("connect node %s to the management network: %w", name, err)
	}
	return n, nil
}

// answerARPWhereAsked has the node answer ARP only by the interface that has the
// address (arp_ignore, the kernel's ip-sysctl). By default it would answer by
// any, and the ports of a userspace switch still show their frames to the
// kernel: a bridge's address would be found at the MAC of its port.
func (n *Node) answerARPWhereAsked() error {
	err := n.Do(func() error { return os.WriteFile("/proc/sys/net/ipv4/conf/all/arp_ignore", []byte("1"), 0o644) })
	if err != nil {
		return fmt.Errorf("have node %s answer ARP only where it is asked: %w", n.Name, err)
	}
	return nil
}

// AddExternal makes a machine of the external network: a namespace that
// nothing is connected to yet.
func (l *Lab) AddExternal(ctx context.Context, name string) (*Node, error) {
	n, err := l.addMachine(ctx, name, "external", netip.Addr{})
	if err != nil {
		return nil, fmt.Errorf("add external machine %s: %w", name, err)
	}
	return n, nil
}

func (l *Lab) addMachine(ctx context.Context, name, role string, addr netip.Addr) (*Node, error) {
	if !nodeName.MatchString(name) || name == l.api.Name {
		return nil, fmt.Errorf("name %q is not a DNS label of at most 40 bytes, or reserved", name)
	}
	n := &Node{Name: name, NetNS: l.state.prefix() + "-" + name, Address: addr, lab: l}
	n.OVS = &OVS{node: n, build: l.opts.OVS}
	if room := maxSocketPath - len(n.OVS.run()) - longestSocket; room < 0 {
		return nil, fmt.Errorf("directory %s is %d bytes too long for sockets below it", l.state.dir, -room)
	}
	l.mu.Lock()
	_, taken := l.nodes[name]
	if !taken {
		l.nodes[name] = n
	}
	l.mu.Unlock()
	if taken {
		return nil, errors.New("there is one already")
	}
	for _, dir := range n.OVS.dirs() {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, fmt.Errorf("make its directory: %w", err)
		}
	}
	ns := namespace{Name: name, NetNS: n.NetNS, Role: role, Env: n.OVS.env()}
	if addr.IsValid() {
		ns.Address = addr.String()
	}
	return n, l.addNamespace(ctx, ns)
}

// removeMachine removes a machine in which nothing runs. Its name is free then.
func (l *Lab) removeMachine(ctx context.Context, n *Node) error {
	if err := (namespace{NetNS: n.NetNS}).remove(ctx); err != nil {
		return err
	}
	l.mu.Lock()
	delete(l.nodes, n.Name)
	l.mu.Unlock()
	return errors.Join(os.Remove(l.state.namespaceRecord(n.Name)), os.RemoveAll(n.Dir()))
}

// Node returns a node, pod or external machine by name, nil when there is none.
func (l *Lab) Node(name string) *Node {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.nodes[name]
}

// Dir is the node's part of the state directory.
func (n *Node) Dir() string { return n.lab.state.node(n.Name) }

// IP runs ip(8) with the arguments inside the node and returns its output.
func (n *Node) IP(ctx context.Context, args ...string) (string, error) {
	return ip(ctx, n.NetNS, args...)
}

// Exec runs a command inside the node to its end and returns its standard
// output; the error holds the output too. The command finds the node's own
// Open vSwitch as a command on a real node would. Without a deadline in ctx
// it may take 30 seconds.
func (n *Node) Exec(ctx context.Context, argv ...string) (string, error) {
	return command{
		argv: append([]string{"ip", "netns", "exec", n.NetNS}, argv...),
		env:  append(n.env(), labVariable+"="+n.lab.state.dir),
	}.run(ctx)
}

// Start starts a process inside the node and returns at once. Its output goes
// to a log file, it is recorded, and it goes on when ctx ends and when the
// caller's process does. name is a DNS label, unique among the node's running
// processes. env is added to the environment that Exec gives; it wins over
// it.
func (n *Node) Start(ctx context.Context, name string, argv, env []string) (*Process, error) {
	if len(argv) == 0 || !nodeName.MatchString(name) {
		return nil, fmt.Errorf("start %q on %s: no command, or the name is not a DNS label", name, n.Name)
	}
	return n.lab.start(ctx, processSpec{
		name:  n.Name + "." + name,
		netns: n.NetNS,
		argv:  argv,
		env:   append(n.env(), env...),
	})
}

func (n *Node) env() []string { return n.OVS.env() }
