// SPDX-License-Identifier: Apache-2.0

package vrf

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

const (
	// requestTimeout is how long the kernel may take to go on with an answer.
	requestTimeout = 5 * time.Second
	// dumpTries is how often a dump is begun again that a change interrupted.
	dumpTries = 10
)

// rtnetlink asks the kernel in the process's own network namespace. It has one user at a time.
type rtnetlink struct{ handle nl.SocketHandle }

func openRtnetlink() (*rtnetlink, error) {
	socket, err := nl.GetNetlinkSocketAt(netns.None(), netns.None(), unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("open rtnetlink: %w", err)
	}
	timeout := unix.NsecToTimeval(requestTimeout.Nanoseconds())
	if err := errors.Join(socket.SetReceiveTimeout(&timeout), socket.SetSendTimeout(&timeout)); err != nil {
		_ = socket.Close()
		return nil, fmt.Errorf("set the timeout of rtnetlink: %w", err)
	}
	_ = socket.SetExtAck(true) // why the kernel refuses; kernels before 4.12 do not say
	return &rtnetlink{nl.SocketHandle{Socket: socket}}, nil
}

func (r *rtnetlink) close() { _ = r.handle.Socket.Close() }

// ask sends one request and returns the answers.
func (r *rtnetlink) ask(kind, flags int, payload []byte) ([][]byte, error) {
	req := nl.NewNetlinkRequest(kind, flags)
	req.Sockets = map[int]*nl.SocketHandle{unix.NETLINK_ROUTE: &r.handle}
	req.AddRawData(payload)
	return req.Execute(unix.NETLINK_ROUTE, 0)
}

// change asks for a change and waits for its end.
func (r *rtnetlink) change(kind, flags int, payload []byte) error {
	_, err := r.ask(kind, flags|unix.NLM_F_ACK, payload)
	return err
}

// dump lists all that a request with this header asks for, whole or not at all.
func (r *rtnetlink) dump(kind int, header []byte) ([][]byte, error) {
	for try := 1; ; try++ {
		all, err := r.ask(kind, unix.NLM_F_DUMP, header)
		if try < dumpTries && (errors.Is(err, netlink.ErrDumpInterrupted) || errors.Is(err, unix.EINTR)) {
			continue
		}
		return all, err
	}
}

// families are the address families that routes, addresses and rules are of.
var families = []byte{unix.AF_INET, unix.AF_INET6}

// absent tells whether the kernel does without a family.
func absent(err error) bool {
	return errors.Is(err, unix.EAFNOSUPPORT) || errors.Is(err, unix.EOPNOTSUPP)
}

// list dumps both families and decodes what comes.
func list[T any](r *rtnetlink, kind, header int, parse func([]byte) (T, error)) ([]T, error) {
	var found []T
	for _, family := range families {
		request := make([]byte, header)
		request[0] = family
		all, err := r.dump(kind, request)
		if absent(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, raw := range all {
			one, err := parse(raw)
			if err != nil {
				return nil, err
			}
			found = append(found, one)
		}
	}
	return found, nil
}

// link is one network interface.
type link struct {
	index, master int
	name, alias   string
	altNames      []string
	up            bool
	// vrf is set for a VRF, with its table; kind is the kind of any.
	vrf   bool
	table uint32
	kind  string
}

// linkByName asks for one link. The error is ENODEV where there is none.
func (r *rtnetlink) linkByName(name string) (link, error) {
	attribute := uint16(unix.IFLA_IFNAME) // the kernel looks through the alternative names as well
	if len(name) >= unix.IFNAMSIZ {
		attribute = unix.IFLA_ALT_IFNAME
	}
	message := nl.NewIfInfomsg(unix.AF_UNSPEC).Serialize()
	message = append(message, nl.NewRtAttr(int(attribute), nl.ZeroTerminated(name)).Serialize()...)
	answers, err := r.ask(unix.RTM_GETLINK, 0, message)
	if err != nil {
		return link{}, err
	}
	if len(answers) == 0 {
		return link{}, unix.ENODEV
	}
	return parseLink(answers[0])
}

func parseLink(raw []byte) (link, error) {
	l, err := netlink.LinkDeserialize(nil, raw)
	if err != nil {
		return link{}, fmt.Errorf("decode a link: %w", err)
	}
	attrs := l.Attrs()
	found := link{
		index: attrs.Index, master: attrs.MasterIndex, name: attrs.Name, alias: attrs.Alias, altNames: attrs.AltNames,
		up: attrs.RawFlags&unix.IFF_UP != 0, kind: l.Type(),
	}
	if device, ok := l.(*netlink.Vrf); ok {
		found.vrf, found.table = true, device.Table
	}
	return found, nil
}

// view is what the kernel has at one time.
type view struct {
	links     []link
	addresses []address
	routes    []route
}

// observe reads the kernel.
func (r *rtnetlink) observe() (*view, error) {
	v := &view{}
	raw, err := r.dump(unix.RTM_GETLINK, nl.NewIfInfomsg(unix.AF_UNSPEC).Serialize())
	if err != nil {
		return nil, fmt.Errorf("list links: %w", err)
	}
	for _, m := range raw {
		l, err := parseLink(m)
		if err != nil {
			return nil, err
		}
		v.links = append(v.links, l)
	}
	if v.addresses, err = list(r, unix.RTM_GETADDR, unix.SizeofIfAddrmsg, parseAddress); err != nil {
		return nil, fmt.Errorf("list addresses: %w", err)
	}
	if v.routes, err = list(r, unix.RTM_GETROUTE, unix.SizeofRtMsg, parseRoute); err != nil {
		return nil, fmt.Errorf("list routes: %w", err)
	}
	return v, nil
}

// ruleTables lists the tables that rules lead to.
func (r *rtnetlink) ruleTables() ([]uint32, error) {
	// A rule begins like a route (linux/fib_rules.h): its table is where a route's is, or in FRA_TABLE.
	tables, err := list(r, unix.RTM_GETRULE, unix.SizeofRtMsg, func(raw []byte) (uint32, error) {
		m, err := parseMessage(raw, unix.SizeofRtMsg)
		if err != nil {
			return 0, fmt.Errorf("decode a rule: %w", err)
		}
		if table := m.number(nl.FRA_TABLE); table != 0 {
			return table, nil
		}
		return uint32(m.header[rtmTable]), nil
	})
	if err != nil {
		return nil, fmt.Errorf("list rules: %w", err)
	}
	return tables, nil
}

// byName finds a link by its name, else by an alternative one.
func (v *view) byName(name string) (link, bool) {
	i := slices.IndexFunc(v.links, func(l link) bool { return l.name == name })
	if i < 0 {
		i = slices.IndexFunc(v.links, func(l link) bool { return slices.Contains(l.altNames, name) })
	}
	if i < 0 {
		return link{}, false
	}
	return v.links[i], true
}

func (v *view) byIndex(index int) (link, bool) {
	for _, l := range v.links {
		if l.index == index {
			return l, true
		}
	}
	return link{}, false
}

// hasSlaves tells whether a link is the master of another.
func (v *view) hasSlaves(index int) bool {
	return slices.ContainsFunc(v.links, func(l link) bool { return l.master == index })
}
