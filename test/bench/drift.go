// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/ovn-uplink/ovn-uplink/shared/api/v1alpha1"
	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
	"github.com/ovn-uplink/ovn-uplink/test/lab"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// settle is the agents' default for --settle.
	settle = time.Second
	// maxDrift is how long a change may take to be published, less the settle time, in 99 of 100 cases.
	maxDrift = 500 * time.Millisecond
	// rest is how long nothing must be written before the writes of a change are counted. It is longer than what
	// a second write that has to settle again would take.
	rest = settle + 500*time.Millisecond
	// patience bounds the wait for one change.
	patience = 20 * time.Second
)

// change is something that happens to a machine and what an UplinkState then has to say.
type change struct {
	do    func(context.Context) error
	shown func(*v1alpha1.UplinkState) bool
}

// drifts are the times from a change to the write that shows it, and the number of writes of each.
type drifts struct {
	took   []time.Duration
	writes []int
}

// drift measures how long changes on either side take to be published, and how many writes that takes.
func (b *bench) drift(ctx context.Context) ([]row, error) {
	return b.withCluster(ctx, func(c *cluster) ([]row, error) {
		if err := c.addUplink(ctx, "tenant-blue", nil); err != nil {
			return nil, err
		}
		s, err := c.start(ctx, "--settle", settle.String())
		if err != nil {
			return nil, err
		}
		if err := c.waitResolved(ctx, "tenant-blue"); err != nil {
			return nil, err
		}
		j, err := c.watch(ctx)
		if err != nil {
			return nil, err
		}
		defer j.close()
		if err := j.quiet(ctx, 2*rest); err != nil {
			return nil, err
		}
		address, err := newAddresses(c.pair)
		if err != nil {
			return nil, err
		}
		defer address.close()
		var rows []row
		for _, kind := range []struct {
			what string
			next func(int) change
		}{
			{"address on the host", address.next},
			{"OVS port tag on the card", c.tag},
			{"link to the wire on the card", c.wire},
		} {
			n := full(b, 10, 5)
			b.say("%d changes, one after the other: %s", n, kind.what)
			d, err := j.follow(ctx, n, kind.next)
			if err != nil {
				return rows, fmt.Errorf("%s: %w", kind.what, err)
			}
			rows = append(rows, d.rows(kind.what)...)
		}
		return rows, s.stop(ctx)
	})
}

// follow makes changes one after the other, each when what the one before caused has come to rest.
func (j *journal) follow(ctx context.Context, n int, next func(int) change) (drifts, error) {
	var d drifts
	for i := range n {
		c := next(i)
		before := j.count()
		began := time.Now()
		if err := c.do(ctx); err != nil {
			return d, err
		}
		wait, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("change %d was not published within %s", i+1, patience))
		at, err := j.await(wait, before, c.shown)
		cancel()
		if err != nil {
			return d, err
		}
		if err := j.quiet(ctx, rest); err != nil {
			return d, err
		}
		d.took = append(d.took, at.Sub(began))
		d.writes = append(d.writes, j.count()-before)
	}
	return d, nil
}

func (d drifts) rows(what string) []row {
	p50, p99 := percentile(d.took, 50)-settle, percentile(d.took, 99)-settle
	var total int
	for _, n := range d.writes {
		total += n
	}
	return []row{{
		Measure: "drift, " + what,
		How:     fmt.Sprintf("%d changes; from the change to the watch event, less %.0f s settle", len(d.took), settle.Seconds()),
		Figure:  fmt.Sprintf("p50 %s, p99 %s", millis(p50), millis(p99)),
		Target:  "p99 < " + millis(maxDrift), Verdict: judge(p99 < maxDrift),
		Values: map[string]float64{"p50": p50.Seconds(), "p99": p99.Seconds()},
	}, {
		Measure: "writes, " + what, How: fmt.Sprintf("UplinkState writes until %.1f s of rest", rest.Seconds()),
		Figure: fmt.Sprintf("%d to %d per change, %d in all", slices.Min(d.writes), slices.Max(d.writes), total),
		Target: "exactly 1", Verdict: judge(slices.Min(d.writes) == 1 && slices.Max(d.writes) == 1),
		Values: map[string]float64{"min": float64(slices.Min(d.writes)), "max": float64(slices.Max(d.writes)), "total": float64(total)},
	}}
}

// addresses moves the address of the host's interface to and fro.
type addresses struct {
	kernel *netlink.Handle // of the host's namespace
	link   netlink.Link
	pair   [2]netip.Prefix // the one that is there first
}

func newAddresses(p *lab.Pair) (*addresses, error) {
	first := p.Spec.Addresses[0]
	// In a prefix of its own: in the same one it would be secondary, and go with the first.
	second := netip.PrefixFrom(first.Addr().Next(), first.Bits()+1)
	a := &addresses{pair: [2]netip.Prefix{first, second}}
	err := p.Host.Do(func() (err error) {
		a.kernel, err = netlink.NewHandle(unix.NETLINK_ROUTE)
		return err
	})
	if err == nil {
		a.link, err = a.kernel.LinkByName(p.Spec.Interface)
	}
	if err != nil {
		return nil, fmt.Errorf("change addresses of %s: %w", p.Spec.Interface, err)
	}
	return a, nil
}

func (a *addresses) close() { _ = a.kernel.Close() }

func (a *addresses) next(i int) change {
	old, wanted := a.pair[i%2], a.pair[(i+1)%2]
	return change{
		do: func(context.Context) error {
			// Before the old one goes, so that the default route never loses its gateway.
			if err := a.kernel.AddrAdd(a.link, netlinkAddr(wanted)); err != nil {
				return fmt.Errorf("add address %s: %w", wanted, err)
			}
			if err := a.kernel.AddrDel(a.link, netlinkAddr(old)); err != nil {
				return fmt.Errorf("remove address %s: %w", old, err)
			}
			return nil
		},
		shown: func(s *v1alpha1.UplinkState) bool {
			return slices.Equal(s.Status.IPAddresses, []string{wanted.String()})
		},
	}
}

func netlinkAddr(p netip.Prefix) *netlink.Addr {
	return &netlink.Addr{IPNet: &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}}
}

// tag gives the host-facing port of the card another VLAN tag.
func (c *cluster) tag(i int) change {
	vlan := int32(100 + i)
	return change{
		do: func(ctx context.Context) error {
			_, err := c.pair.Card.OVS.Vsctl(ctx, "set", "Port", c.pair.Spec.Representor, fmt.Sprintf("tag=%d", vlan))
			return err
		},
		shown: func(s *v1alpha1.UplinkState) bool {
			b := s.Status.OVSBridge
			return b != nil && b.VLAN != nil && *b.VLAN == vlan
		},
	}
}

// wire takes the card's physical port down, and up again with the next change.
func (c *cluster) wire(i int) change {
	state, status := "down", metav1.ConditionFalse
	if i%2 == 1 {
		state, status = "up", metav1.ConditionTrue
	}
	return change{
		do: func(ctx context.Context) error {
			_, err := c.pair.Card.IP(ctx, "link", "set", c.pair.Spec.Uplink, state)
			return err
		},
		shown: func(s *v1alpha1.UplinkState) bool {
			return meta.IsStatusConditionPresentAndEqual(s.Status.Conditions, uplinkstate.Resolved, status)
		},
	}
}
