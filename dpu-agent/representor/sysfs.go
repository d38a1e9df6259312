// SPDX-License-Identifier: Apache-2.0

package representor

import (
	"context"
	"errors"

	"github.com/ovn-uplink/ovn-uplink/shared/kernel"
)

// readPortName fills in what sysfs says of a link as a port of a switch (Documentation/ABI/testing/sysfs-class-net).
// A failed read leaves the rest of the links as they are.
func readPortName(ctx context.Context, sysfs *kernel.Sysfs, link *Link) {
	link.PortName, link.Unreadable = readAttribute(ctx, sysfs, link.Name, "phys_port_name")
	if link.Unreadable == nil && link.PortName != "" {
		link.SwitchID, link.Unreadable = readAttribute(ctx, sysfs, link.Name, "phys_switch_id")
	}
}

// readAttribute is empty for an interface that is no port of a switch, or is gone by now.
func readAttribute(ctx context.Context, sysfs *kernel.Sysfs, link, attribute string) (string, error) {
	text, err := sysfs.ReadAttr(ctx, "class/net", link, attribute)
	if errors.Is(err, kernel.ErrAbsent) {
		return "", nil
	}
	return text, err
}
