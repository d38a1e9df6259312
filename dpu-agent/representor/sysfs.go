// SPDX-License-Identifier: Apache-2.0

package representor

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// notAPort are the errors with which the kernel says that an interface is no port of a switch, or is gone by now.
var notAPort = []error{syscall.EOPNOTSUPP, syscall.ENOENT, syscall.ENODEV, syscall.EINVAL}

// readPortName fills in what sysfs says of a link as a port of a switch (Documentation/ABI/testing/sysfs-class-net).
// A failed read leaves the rest of the links as they are.
func readPortName(sysfs string, link *Link) {
	link.PortName, link.Unreadable = readAttribute(sysfs, link.Name, "phys_port_name")
	if link.Unreadable == nil && link.PortName != "" {
		link.SwitchID, link.Unreadable = readAttribute(sysfs, link.Name, "phys_switch_id")
	}
}

func readAttribute(sysfs, link, attribute string) (string, error) {
	text, err := os.ReadFile(filepath.Join(sysfs, "class/net", link, attribute))
	if err != nil {
		if slices.ContainsFunc(notAPort, func(known error) bool { return errors.Is(err, known) }) {
			return "", nil
		}
		return "", err
	}
	return strings.TrimSuffix(string(text), "\n"), nil
}
