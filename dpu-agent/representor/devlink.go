// SPDX-License-Identifier: Apache-2.0

package representor

import (
	"errors"
	"fmt"
	"time"

	"github.com/k8snetworkplumbingwg/sriovnet"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

const (
	// netlinkTimeout bounds the wait for each answer of the kernel.
	netlinkTimeout = 5 * time.Second
	// dumpTries is how often a dump is begun again that a change interrupted.
	dumpTries = 10
)

// errNoDevlink is for a kernel without devlink. That it has no devlink ports is known, not unknown.
var errNoDevlink = errors.New("the kernel has no devlink")

// devlinkFamily asks the kernel for the generic netlink family of devlink.
func devlinkFamily(h *netlink.Handle) (*netlink.GenlFamily, error) {
	family, err := h.GenlFamilyGet(nl.GENL_DEVLINK_NAME)
	if errors.Is(err, unix.ENOENT) {
		return nil, errNoDevlink
	}
	return family, err
}

// genericHeader is struct genlmsghdr of linux/genetlink.h.
type genericHeader struct{ command, version byte }

func (genericHeader) Len() int { return nl.SizeofGenlmsg }

func (h genericHeader) Serialize() []byte { return []byte{h.command, h.version, 0, 0} }

// hasDevlink asks the kernel whether it has devlink. It is asked at every look, so it does not use nl.Genlmsg: what that
// sends as reserved bytes is memory behind it, where another goroutine may be writing.
func hasDevlink() error {
	socket, err := nl.Subscribe(unix.NETLINK_GENERIC)
	if err != nil {
		return err
	}
	defer func() { _ = socket.Close() }()
	timeout := unix.NsecToTimeval(netlinkTimeout.Nanoseconds())
	if err := socket.SetReceiveTimeout(&timeout); err != nil {
		return err
	}
	request := nl.NewNetlinkRequest(nl.GENL_ID_CTRL, 0)
	request.Sockets = map[int]*nl.SocketHandle{unix.NETLINK_GENERIC: {Socket: socket}}
	request.AddData(genericHeader{command: nl.GENL_CTRL_CMD_GETFAMILY, version: nl.GENL_CTRL_VERSION})
	request.AddData(nl.NewRtAttr(nl.GENL_CTRL_ATTR_FAMILY_NAME, nl.ZeroTerminated(nl.GENL_DEVLINK_NAME)))
	if _, err = request.Execute(unix.NETLINK_GENERIC, 0); errors.Is(err, unix.ENOENT) {
		return errNoDevlink
	}
	return err
}

// withNetlink runs a function with a handle of this network namespace for one netlink protocol.
func withNetlink[T any](protocol int, f func(*netlink.Handle) (T, error)) (T, error) {
	h, err := netlink.NewHandle(protocol)
	if err != nil {
		return *new(T), err
	}
	defer func() { _ = h.Close() }()
	if err := h.SetSocketTimeout(netlinkTimeout); err != nil {
		return *new(T), err
	}
	return f(h)
}

// complete repeats a dump until it is whole. Acting on half of one would take for absent what was not looked at.
func complete[T any](dump func() (T, error)) (T, error) {
	for try := 1; ; try++ {
		all, err := dump()
		if try < dumpTries && errors.Is(err, netlink.ErrDumpInterrupted) {
			continue
		}
		return all, err
	}
}

// kernelPorts dumps the devlink ports of this network namespace, sorted by handle.
func kernelPorts() ([]Port, error) {
	found, err := withNetlink(unix.NETLINK_GENERIC, func(h *netlink.Handle) ([]*netlink.DevlinkPort, error) {
		if err := hasDevlink(); err != nil {
			return nil, err
		}
		return complete(h.DevLinkGetAllPortList)
	})
	if errors.Is(err, errNoDevlink) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("dump devlink ports: %w", err)
	}
	ports := make([]Port, len(found))
	for i, p := range found {
		ports[i] = Port{
			Bus: p.BusName, Device: p.DeviceName, Index: p.PortIndex,
			Flavour: sriovnet.PortFlavour(p.PortFlavour), Netdev: p.NetdeviceName,
			Controller: p.ControllerNumber, PF: widen(p.PfNumber), VF: widen(p.VfNumber), SF: p.SfNumber, External: p.External,
		}
		if p.Fn != nil {
			ports[i].HWAddr = p.Fn.HwAddr
		}
	}
	sortPorts(ports)
	return ports, nil
}

func widen(n *uint16) *uint32 {
	if n == nil {
		return nil
	}
	wide := uint32(*n)
	return &wide
}

// KernelLinks lists the network interfaces of this network namespace.
func KernelLinks() ([]Link, error) {
	found, err := withNetlink(unix.NETLINK_ROUTE, func(h *netlink.Handle) ([]netlink.Link, error) {
		return complete(h.DisableVFInfoCollection().LinkList)
	})
	if err != nil {
		return nil, fmt.Errorf("list network interfaces: %w", err)
	}
	links := make([]Link, len(found))
	for i, link := range found {
		a := link.Attrs()
		links[i] = Link{Name: a.Name, AltNames: a.AltNames, Alias: a.Alias, MAC: a.HardwareAddr}
	}
	return links, nil
}
