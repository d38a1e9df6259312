// SPDX-License-Identifier: Apache-2.0

// Package lab runs the product's surroundings for real: kube-apiserver with
// etcd, an Open vSwitch per node, and nodes, host and DPU pairs and external
// networks as network namespaces joined by veth.
//
// A lab lives in one state directory. Every process is recorded there with
// its pid and start time before anything else happens to it, and every
// namespace before it is made, so that another process can end the lab and
// the next run can clean up after one that crashed. No address, bridge or
// port of the machine is used except one listening socket on 127.0.0.1 that
// forwards to the API server.
//
// A test needs no more than
//
//	l := lab.ForTest(t, lab.Options{})
//	node, err := l.RegularNode(ctx, "worker-a", lab.RegularSpec{})
//	agent, err := node.Start(ctx, "host-agent", []string{bin, "--kubeconfig", path}, nil)
//
// and for networks of OVN-Kubernetes, on a node that runs Open vSwitch,
//
//	zone, err := node.StartOVN(ctx, lab.OVNSpec{})
//	blue, err := l.Network(ctx, lab.NetworkSpec{CUDN: "blue"}, zone)
//	pod, err := blue.Pod(ctx, zone, "client")
//
// OVN-Kubernetes itself does not run: the lab writes the rows that it would
// write, under its names, and nobody puts them right if a test breaks them.
//
// A program that leaves a lab up calls New and never Close; the lab
// command, or Down in any process, ends it.
//
// The package needs root, the kernel's veth, bridge and tun, and the packages
// that test/setup.sh installs. It works without a kernel Open vSwitch:
// bridges use the userspace datapath.
//
// A process that imports lab may be started again as the lab's forwarder; see
// forward.go.
package lab
