// SPDX-License-Identifier: Apache-2.0

package lab_test

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/ovn-uplink/ovn-uplink/test/lab"
)

// outside is an external network with a node, a second station and a server
// behind the gateway.
type outside struct {
	node            *lab.Regular
	station, behind *lab.Node
}

var (
	stationAddr  = netip.MustParseAddr("172.28.0.77")
	stationAddr6 = netip.MustParseAddr("fd00:28::77")
	behindAddr   = netip.MustParseAddr("203.0.113.80")
	behindAddr6  = netip.MustParseAddr("2001:db8:80::1")
)

func newOutside(t *testing.T) outside {
	t.Helper()
	l := lab.ForTest(t, lab.Options{NoAPIServer: true})
	ctx := t.Context()
	gateways := []netip.Addr{netip.MustParseAddr("172.28.0.1"), netip.MustParseAddr("fd00:28::1")}
	r, err := l.RegularNode(ctx, "worker-a", lab.RegularSpec{
		Addresses: []netip.Prefix{netip.MustParsePrefix("172.28.0.2/16"), netip.MustParsePrefix("fd00:28::2/64")},
		Gateways:  gateways,
	})
	if err != nil {
		t.Fatal(err)
	}
	o := outside{node: r}
	o.station, err = r.External.Station(ctx, "station",
		[]netip.Prefix{netip.PrefixFrom(stationAddr, 16), netip.PrefixFrom(stationAddr6, 64)}, gateways...)
	if err != nil {
		t.Fatal(err)
	}
	if o.behind, err = r.External.Behind(ctx, "server", behindAddr, behindAddr6); err != nil {
		t.Fatal(err)
	}
	return o
}

// A port more does not change the address by which neighbours know a bridge.
func TestBridgeKeepsItsAddress(t *testing.T) {
	o := newOutside(t)
	e := o.node.External
	address := func() string {
		t.Helper()
		out, err := e.IP(t.Context(), "-br", "link", "show", "type", "bridge")
		if err != nil {
			t.Fatal(err)
		}
		return strings.Fields(out)[2]
	}
	before := address()
	for _, args := range []string{"link add low address 02:00:00:00:00:01 type veth peer name low-peer", "link set low master ext0"} {
		if _, err := e.IP(t.Context(), strings.Fields(args)...); err != nil {
			t.Fatal(err)
		}
	}
	if after := address(); after != before {
		t.Errorf("the bridge's address was %s, with one more port it is %s", before, after)
	}
}

func TestServers(t *testing.T) {
	o := newOutside(t)
	ctx := t.Context()
	for _, c := range []struct {
		name   string
		node   *lab.Node
		addr   netip.Addr
		client string
	}{
		{"station", o.station, stationAddr, "172.28.0.2"},
		{"station over IPv6", o.station, stationAddr6, "fd00:28::2"},
		{"behind the gateway", o.behind, behindAddr, "172.28.0.2"},
		{"behind the gateway over IPv6", o.behind, behindAddr6, "fd00:28::2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			ping(t, o.node.Node, c.addr, 5*time.Second)
			web, err := c.node.StartHTTP(netip.AddrPortFrom(c.addr, 0), c.node.Name)
			if err != nil {
				t.Fatal(err)
			}
			got, err := o.node.HTTPGet(ctx, web.Addr)
			if err != nil || got.Name != c.node.Name || got.Client.Addr() != netip.MustParseAddr(c.client) {
				t.Errorf("HTTP: %+v, %v", got, err)
			}
			echo, err := c.node.StartUDPEcho(netip.AddrPortFrom(c.addr, 0))
			if err != nil {
				t.Fatal(err)
			}
			for _, size := range []int{1, 1400, 4000} {
				if err := o.node.EchoUDP(ctx, echo.Addr, size); err != nil {
					t.Error(err)
				}
			}
			if web.Served() != 1 || echo.Served() != 3 {
				t.Errorf("served %d and %d", web.Served(), echo.Served())
			}
			if err := echo.Close(); err != nil {
				t.Error(err)
			}
			short, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			if err := o.node.EchoUDP(short, echo.Addr, 1); err == nil {
				t.Error("a closed server answers")
			}
		})
	}
	t.Run("SCTP", func(t *testing.T) {
		lab.NeedSCTP(t)
		echo, err := o.station.StartSCTPEcho(netip.AddrPortFrom(stationAddr, 7000))
		if err != nil {
			t.Fatal(err)
		}
		if err := o.node.EchoSCTP(ctx, echo.Addr, 1000); err != nil {
			t.Error(err)
		}
	})
}

func TestCapture(t *testing.T) {
	o := newOutside(t)
	ctx := t.Context()
	c, err := o.node.Capture("up0")
	if err != nil {
		t.Fatal(err)
	}
	self, self6 := o.node.Spec.Addresses[0].Addr(), o.node.Spec.Addresses[1].Addr()
	ping(t, o.node.Node, stationAddr, 5*time.Second)
	ping(t, o.node.Node, stationAddr6, 5*time.Second)
	ping(t, o.station, self, 5*time.Second)
	link, err := o.station.IP(ctx, "-br", "link", "show", "dev", lab.StationInterface)
	if err != nil {
		t.Fatal(err)
	}
	mac := strings.Fields(link)[2]
	for name, filters := range map[string][]lab.Filter{
		"echo out":             {lab.Echo(), lab.From(self), lab.To(stationAddr), lab.EtherFrom(o.node.Spec.MAC)},
		"echo back":            {lab.Echo(), lab.From(stationAddr), lab.EtherFrom(mac)},
		"echo of IPv6":         {lab.Proto(lab.ProtoICMPv6), lab.Echo(), lab.From(self6)},
		"request":              {lab.Asking(stationAddr)},
		"reply":                {lab.AnswerFor(stationAddr)},
		"solicitation":         {lab.Asking(stationAddr6)},
		"advertisement":        {lab.AnswerFor(stationAddr6)},
		"one of two":           {lab.Any(lab.Port(1), lab.Echo())},
		"the subnet's, not me": {lab.Src(netip.MustParsePrefix("172.28.0.0/16")), lab.Not(lab.From(self))},
	} {
		if _, err := c.Wait(ctx, 5*time.Second, filters...); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for addr, of := range map[netip.Addr]string{stationAddr: mac, stationAddr6: mac} {
		if got := c.Answered(addr); len(got) != 1 || got[of] == 0 {
			t.Errorf("who has %s: %v, want %s only", addr, got, of)
		}
	}
	pods := netip.MustParsePrefix("10.200.0.0/16")
	if err := c.None(lab.Src(pods)); err != nil {
		t.Error(err)
	}
	if err := c.None(lab.Echo()); err == nil {
		t.Error("frames that were captured are said not to be there")
	}

	t.Run("fragments", func(t *testing.T) {
		c.Reset()
		echo, err := o.station.StartUDPEcho(netip.AddrPortFrom(stationAddr, 0))
		if err != nil {
			t.Fatal(err)
		}
		if err := o.node.EchoUDP(ctx, echo.Addr, 4000); err != nil {
			t.Fatal(err)
		}
		fragment := func(p lab.Packet) bool { return p.Fragment }
		if n := c.Count(lab.Proto(lab.ProtoUDP), fragment); n != 6 {
			t.Errorf("%d fragments, want 3 each way", n)
		}
		if n := c.Count(fragment, lab.Port(echo.Addr.Port())); n != 2 {
			t.Errorf("%d first fragments, want 1 each way", n)
		}
	})
	t.Run("VLAN", func(t *testing.T) {
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		all, err := o.station.Capture(lab.StationInterface)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := o.node.OVS.Vsctl(ctx, "add-port", "ovsbr1", "tagged", "tag=42", "--", "set", "Interface", "tagged", "type=internal"); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{{"addr", "add", "192.0.2.1/24", "dev", "tagged"}, {"link", "set", "tagged", "up"}} {
			if _, err := o.node.IP(ctx, args...); err != nil {
				t.Fatal(err)
			}
		}
		_, _ = o.node.Exec(ctx, "ping", "-c1", "-W1", "192.0.2.2") // nobody is there to answer
		tagged := func(p lab.Packet) bool { return p.VLAN == 42 }
		if _, err := all.Wait(ctx, 5*time.Second, lab.Asking(netip.MustParseAddr("192.0.2.2")), tagged); err != nil {
			t.Error(err)
		}
	})
}

func TestPingSeries(t *testing.T) {
	o := newOutside(t)
	ctx := t.Context()
	ping(t, o.node.Node, behindAddr, 5*time.Second)
	ping(t, o.node.Node, behindAddr6, 5*time.Second)
	for _, to := range []netip.Addr{behindAddr, behindAddr6} {
		t.Run(to.String(), func(t *testing.T) {
			series, err := o.node.PingSeries(to, 10*time.Millisecond)
			if err != nil {
				t.Fatal(err)
			}
			until := func(what string, enough func(lab.PingResult) bool) lab.PingResult {
				t.Helper()
				err := lab.Eventually(ctx, 5*time.Second, func(context.Context) error {
					if r := series.Result(); !enough(r) {
						return fmt.Errorf("not yet %s: %s", what, r)
					}
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
				return series.Result()
			}
			until("running", func(r lab.PingResult) bool { return r.Received >= 30 })
			begin := time.Now()
			if _, err := o.node.OVS.Ofctl(ctx, "add-flow", "ovsbr1", "priority=9,in_port=LOCAL,actions=drop"); err != nil {
				t.Fatal(err)
			}
			lost := until("interrupted", func(r lab.PingResult) bool { return r.Lost() >= 30 })
			if _, err := o.node.OVS.Ofctl(ctx, "--strict", "del-flows", "ovsbr1", "priority=9,in_port=LOCAL"); err != nil {
				t.Fatal(err)
			}
			took := time.Since(begin)
			until("running again", func(r lab.PingResult) bool { return r.Received >= lost.Received+30 })
			r := series.Stop(ctx)
			t.Logf("%s: interrupted for %s", r, took)
			if r.Lost() < 25 || r.Duplicates != 0 || r.LongestGap < 250*time.Millisecond || r.LongestGap > took+200*time.Millisecond {
				t.Errorf("%s, after %s without a way", r, took)
			}
		})
	}
}
