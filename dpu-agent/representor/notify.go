// SPDX-License-Identifier: Apache-2.0

package representor

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

const (
	// configGroup is the multicast group of devlink's notifications (include/uapi/linux/devlink.h).
	configGroup = "config"
	// notifyBuffer is the size in bytes of the socket's buffer: a card that goes to switchdev mode tells of thousands
	// of ports at once.
	notifyBuffer = 4 << 20
)

// portCommands are the notifications after which ports may differ. Others of the group, such as those of health
// reporters and parameters, come all the time.
var portCommands = []byte{nl.DEVLINK_CMD_PORT_NEW, nl.DEVLINK_CMD_PORT_DEL}

// notifications calls changed after every change of devlink ports, until the context ends or the subscription
// breaks; then something may have been missed. It calls ready once changes are no longer missed. On a kernel
// without devlink there is nothing to wait for but the end.
func notifications(ctx context.Context, ready, changed func()) error {
	socket, err := subscribe()
	if errors.Is(err, errNoDevlink) {
		ready()
		<-ctx.Done()
		return nil
	}
	if err != nil {
		return fmt.Errorf("subscribe to devlink: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = socket.Close() })
	defer func() {
		if stop() {
			_ = socket.Close()
		}
	}()
	ready()
	for {
		messages, _, err := socket.Receive()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("receive from devlink: %w", err)
		}
		for _, m := range messages {
			if len(m.Data) > 0 && slices.Contains(portCommands, m.Data[0]) {
				changed()
				break
			}
		}
	}
}

func subscribe() (*nl.NetlinkSocket, error) {
	if err := hasDevlink(); err != nil {
		return nil, err
	}
	family, err := withNetlink(unix.NETLINK_GENERIC, devlinkFamily)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(family.Groups, func(g netlink.GenlMulticastGroup) bool { return g.Name == configGroup })
	if i < 0 {
		return nil, errors.New("devlink has no multicast group " + configGroup)
	}
	socket, err := nl.Subscribe(unix.NETLINK_GENERIC)
	if err != nil {
		return nil, err
	}
	// nl.Subscribe takes groups up to 32 only, and generic netlink numbers them as families come.
	if err := unix.SetsockoptInt(socket.GetFd(), unix.SOL_NETLINK, unix.NETLINK_ADD_MEMBERSHIP, int(family.Groups[i].ID)); err != nil {
		_ = socket.Close()
		return nil, err
	}
	if err := growBuffer(socket); err != nil {
		_ = socket.Close()
		return nil, err
	}
	return socket, nil
}

// growBuffer gives a socket a receive buffer of notifyBuffer, or without CAP_NET_ADMIN, which SO_RCVBUFFORCE needs,
// of what net.core.rmem_max allows. An overflow is an error, after which all is read again.
func growBuffer(socket *nl.NetlinkSocket) error {
	if socket.SetReceiveBufferSize(notifyBuffer, true) == nil {
		return nil
	}
	if err := socket.SetReceiveBufferSize(notifyBuffer, false); err != nil {
		return fmt.Errorf("set the receive buffer: %w", err)
	}
	return nil
}
