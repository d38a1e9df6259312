// SPDX-License-Identifier: Apache-2.0

package lab_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ovn-uplink/ovn-uplink/test/lab"
)

// ping fails the test unless the node reaches the address within d.
func ping(t *testing.T, n *lab.Node, to netip.Addr, d time.Duration) {
	t.Helper()
	err := lab.Eventually(t.Context(), d, func(ctx context.Context) error {
		_, err := n.Exec(ctx, "ping", "-c1", "-W1", to.String())
		return err
	})
	if err != nil {
		t.Errorf("%s does not reach %s: %v", n.Name, to, err)
	}
}

func TestRegularNode(t *testing.T) {
	l := lab.ForTest(t, lab.Options{NoAPIServer: true})
	ctx := t.Context()
	begin := time.Now()
	r, err := l.RegularNode(ctx, "worker-a", lab.RegularSpec{
		Addresses: []netip.Prefix{netip.MustParsePrefix("172.28.0.2/16"), netip.MustParsePrefix("fd00:28::2/64")},
		Gateways:  []netip.Addr{netip.MustParseAddr("172.28.0.1"), netip.MustParseAddr("fd00:28::1")},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("node took %s", time.Since(begin))
	ping(t, r.Node, lab.InternetAddress, 5*time.Second)
	ping(t, r.Node, netip.MustParseAddr("fd00:28::1"), 5*time.Second)

	link, err := r.IP(ctx, "-o", "link", "show", "ovsbr1")
	if err != nil || !strings.Contains(link, "02:42:ac:1c:00:02") {
		t.Errorf("bridge interface: %v, %s", err, link)
	}
	if got, err := r.OVS.Vsctl(ctx, "get", "Open_vSwitch", ".", "external_ids:hostname"); err != nil || strings.TrimSpace(got) != "worker-a" {
		t.Errorf("hostname in the database: %q, %v", got, err)
	}
	if got, err := r.Exec(ctx, "ovs-vsctl", "port-to-br", "up0"); err != nil || strings.TrimSpace(got) != "ovsbr1" {
		t.Errorf("a command on the node finds bridge %q, %v", got, err)
	}
	if got, err := r.OVS.Appctl(ctx, "fdb/show", "ovsbr1"); err != nil || !strings.Contains(got, "02:42:ac:1c:00:02") {
		t.Errorf("addresses learned: %v\n%s", err, got)
	}

	answersOnce(t, r)

	t.Run("restart", func(t *testing.T) { testRestartOVS(t, r) })
	t.Run("more nodes at once", func(t *testing.T) { testMoreNodes(t, l) })
}

// answersOnce checks that the bridge's address is found at the bridge alone, and not at its port too.
func answersOnce(t *testing.T, r *lab.Regular) {
	t.Helper()
	address := r.Spec.Addresses[0].Addr()
	wire, err := r.External.Capture("ext0")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.External.IP(t.Context(), "neigh", "flush", "all"); err != nil {
		t.Fatal(err)
	}
	ping(t, r.External.Node, address, 5*time.Second)
	if _, err := wire.Wait(t.Context(), 5*time.Second, lab.AnswerFor(address)); err != nil {
		t.Error(err)
	}
	if got := wire.Answered(address); len(got) != 1 || got[r.Spec.MAC] == 0 {
		t.Errorf("who said where %s is: %v, want %s alone", address, got, r.Spec.MAC)
	}
}

func testRestartOVS(t *testing.T, r *lab.Regular) {
	ctx := t.Context()
	if err := r.OVS.RestartDB(ctx); err != nil {
		t.Fatal(err)
	}
	ping(t, r.Node, lab.InternetAddress, 5*time.Second)
	if err := r.OVS.StopVswitchd(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Exec(ctx, "ping", "-c1", "-W1", lab.InternetAddress.String()); err == nil {
		t.Error("a stopped switch forwards")
	}
	if err := r.OVS.StartVswitchd(ctx); err != nil {
		t.Fatal(err)
	}
	if err := r.Configure(ctx); err != nil {
		t.Fatal(err)
	}
	ping(t, r.Node, lab.InternetAddress, 5*time.Second)
	// Killed, not stopped: nothing that is left over keeps it from starting.
	if err := r.OVS.VswitchdProcess().Kill(ctx); err != nil {
		t.Fatal(err)
	}
	if err := r.OVS.DBProcess().Kill(ctx); err != nil {
		t.Fatal(err)
	}
	if err := r.OVS.StartDB(ctx); err != nil {
		t.Fatal(err)
	}
	if err := r.OVS.StartVswitchd(ctx); err != nil {
		t.Fatal(err)
	}
	if err := r.Configure(ctx); err != nil {
		t.Fatal(err)
	}
	ping(t, r.Node, lab.InternetAddress, 5*time.Second)
}

func testMoreNodes(t *testing.T, l *lab.Lab) {
	begin := time.Now()
	var nodes [4]*lab.Regular
	var all sync.WaitGroup
	for i := range nodes {
		all.Go(func() {
			addr := netip.AddrFrom4([4]byte{172, 28, 1, byte(i + 1)})
			var err error
			nodes[i], err = l.RegularNode(t.Context(), fmt.Sprintf("more-%d", i), lab.RegularSpec{
				MAC:       fmt.Sprintf("02:42:ac:1c:01:%02x", i+1),
				Addresses: []netip.Prefix{netip.PrefixFrom(addr, 16)},
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if t.Failed() {
		return
	}
	t.Logf("%d nodes took %s", len(nodes), time.Since(begin))
	for i, n := range nodes {
		ping(t, n.Node, nodes[(i+1)%len(nodes)].Spec.Addresses[0].Addr(), 5*time.Second)
	}
}

func TestPair(t *testing.T) {
	l := lab.ForTest(t, lab.Options{NoAPIServer: true})
	ctx := t.Context()
	begin := time.Now()
	p, err := l.Pair(ctx, "worker-b", lab.PairSpec{})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("pair took %s", time.Since(begin))
	ping(t, p.Host, lab.InternetAddress, 5*time.Second)
	transfer(t, p.Host, p.External.Node)

	// Every packet passes the card's bridge.
	if _, err := p.Card.OVS.Ofctl(ctx, "add-flow", "br-ext", "priority=9,icmp,actions=drop"); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Host.Exec(ctx, "ping", "-c1", "-W1", lab.InternetAddress.String()); err == nil {
		t.Error("a ping passed the card although its bridge drops it")
	}
	if _, err := p.Card.OVS.Ofctl(ctx, "del-flows", "br-ext", "icmp"); err != nil {
		t.Fatal(err)
	}
	ping(t, p.Host, lab.InternetAddress, 5*time.Second)

	host, err := p.Card.OVS.Vsctl(ctx, "get", "Open_vSwitch", ".", "external_ids:host-k8s-nodename")
	if err != nil || strings.TrimSpace(host) != "worker-b" {
		t.Errorf("the card's host is %q, %v", host, err)
	}
	link, err := p.Host.IP(ctx, "-o", "link", "show", "ens1f0")
	if err != nil || !strings.Contains(link, p.Spec.MAC) {
		t.Errorf("host interface: %v, %s", err, link)
	}
	ports, err := p.Card.Devlink()
	if err != nil || ports["pci/0000:03:00.0/196608"].Function.HWAddr != p.Spec.MAC {
		t.Errorf("devlink: %v, %+v", err, ports)
	}
}

// transfer sends a megabyte over TCP and back, which fails when checksums are
// left to hardware that is not there.
func transfer(t *testing.T, from, to *lab.Node) {
	t.Helper()
	var ln net.Listener
	err := to.Do(func() (err error) {
		ln, err = net.Listen("tcp4", net.JoinHostPort(lab.InternetAddress.String(), "0"))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	served := make(chan error, 1)
	go func() {
		conn, err := ln.Accept()
		if err == nil {
			_, err = io.Copy(conn, conn)
			_ = conn.Close()
		}
		served <- err
	}()
	var conn net.Conn
	err = from.Do(func() (err error) {
		conn, err = net.DialTimeout("tcp4", ln.Addr().String(), 5*time.Second)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	sent := bytes.Repeat([]byte("uplink"), 1<<20/6)
	go func() {
		_, _ = conn.Write(sent) // an error shows in what comes back
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.CloseWrite()
		}
	}()
	got, err := io.ReadAll(conn)
	if err != nil || !bytes.Equal(got, sent) {
		t.Errorf("sent %d bytes, got %d back, %v", len(sent), len(got), err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}

func TestWire(t *testing.T) {
	l := lab.ForTest(t, lab.Options{NoAPIServer: true})
	ctx := t.Context()
	n, err := l.AddNode(ctx, "worker-a")
	if err != nil {
		t.Fatal(err)
	}
	ext, err := l.AddExternal(ctx, "lan")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Wire(ctx, n, "eth0", ext, "eth0"); err != nil {
		t.Fatal(err)
	}
	for node, addr := range map[*lab.Node]string{n: "192.0.2.1/24", ext: "192.0.2.2/24"} {
		if _, err := node.IP(ctx, "addr", "add", addr, "dev", "eth0"); err != nil {
			t.Fatal(err)
		}
	}
	ping(t, n, netip.MustParseAddr("192.0.2.2"), 5*time.Second)
	if err := l.Wire(ctx, n, "eth0", ext, "eth1"); err == nil {
		t.Error("an interface was made twice")
	}
	for _, name := range []string{"worker-a", "api", "", "A", "a/b", strings.Repeat("a", 41)} {
		if _, err := l.AddNode(ctx, name); err == nil {
			t.Errorf("a node named %q was made", name)
		}
	}
}
