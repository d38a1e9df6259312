// SPDX-License-Identifier: Apache-2.0

package hostlink

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/k8snetworkplumbingwg/sriovnet"
	"github.com/ovn-uplink/ovn-uplink/shared/api/v1alpha1"
	"github.com/ovn-uplink/ovn-uplink/shared/kernel"
)

// Directories of sysfs.
const (
	netDevices = "class/net"
	pciDevices = "bus/pci/devices"
)

const (
	// functionTimeout is for all that is read to find one function.
	functionTimeout = 5 * time.Second
	// silentPause is how long a driver that did not answer in time is left alone, so that nobody else has to wait
	// for it each time.
	silentPause = 30 * time.Second
)

// isRepresentor tells a switchdev representor by its phys_port_name.
func isRepresentor(port string) bool {
	name, ok := kernel.ParsePortName(port)
	return ok && name.Flavour != sriovnet.PORT_FLAVOUR_PHYSICAL
}

// FunctionReader finds the PCI function behind an interface. It may be used from several goroutines.
type FunctionReader struct {
	sysfs  *kernel.Sysfs
	memory *functionMemory
}

// functionMemory keeps what is known of links by the name that was asked for, which may be an alternative one.
type functionMemory struct {
	// pause is silentPause, unless a test is in a hurry.
	pause time.Duration

	mu    sync.Mutex
	known map[string]knownFunction
}

// knownFunction is what was read of the link with this index.
type knownFunction struct {
	index    int
	function *v1alpha1.HostFunction
	// silent is when its driver did not answer in time, zero if it did.
	silent time.Time
}

// NewFunctionReader makes a reader of the sysfs at root, "" for /sys. Another root goes for the library
// sriovnet too, and therefore for the whole process: make readers before anything reads.
func NewFunctionReader(root string) FunctionReader {
	sysfs := &kernel.Sysfs{Root: root}
	kernel.RedirectSriovnet(sysfs)
	return FunctionReader{sysfs: sysfs, memory: &functionMemory{pause: silentPause, known: map[string]knownFunction{}}}
}

// Function finds the physical, virtual or scalable function behind an interface, by name or alternative name.
// It is nil for interfaces without one: veth, Open vSwitch's internal ports, bonds, virtio, representors.
//
// An error means that it cannot be told now, and is for the log and for inspect only. With it comes what was
// last known of the same link, which a driver that does not answer has not changed. Such a driver is asked again
// only after 30 seconds.
func (r FunctionReader) Function(ctx context.Context, s *kernel.Snapshot, iface string) (*v1alpha1.HostFunction, error) {
	link, ok := s.LinkByName(iface)
	if !ok {
		return nil, fmt.Errorf("find the PCI function of %s: no such interface", iface)
	}
	last := r.memory.recall(iface, link)
	if !last.silent.IsZero() && time.Since(last.silent) < r.memory.pause {
		return last.function.DeepCopy(), fmt.Errorf("find the PCI function of %s: not asked again within %s: %w",
			iface, r.memory.pause, kernel.ErrTimeout)
	}
	reading, cancel := context.WithTimeout(ctx, functionTimeout)
	defer cancel()
	function, err := r.functionOf(reading, s, link)
	if err == nil {
		r.memory.keep(iface, s, knownFunction{index: link.Index, function: function.DeepCopy()})
		return function, nil
	}
	if errors.Is(err, kernel.ErrTimeout) || reading.Err() != nil && ctx.Err() == nil {
		r.memory.keep(iface, s, knownFunction{index: link.Index, function: last.function, silent: time.Now()})
	}
	return last.function.DeepCopy(), fmt.Errorf("find the PCI function of %s: %w", iface, err)
}

// recall is what is known of a link, nothing if the name was another link's.
func (m *functionMemory) recall(iface string, link kernel.Link) knownFunction {
	m.mu.Lock()
	defer m.mu.Unlock()
	if last := m.known[iface]; last.index == link.Index {
		return last
	}
	return knownFunction{}
}

// keep remembers what is known of a link. A new name is the occasion to forget those that links no longer have, so
// that there are never many more than the links of the snapshot have.
func (m *functionMemory) keep(iface string, s *kernel.Snapshot, known knownFunction) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.known[iface]; !ok {
		maps.DeleteFunc(m.known, func(name string, last knownFunction) bool {
			link, ok := s.LinkByName(name)
			return !ok || link.Index != last.index
		})
	}
	m.known[iface] = known
}

func (r FunctionReader) functionOf(ctx context.Context, s *kernel.Snapshot, link kernel.Link) (*v1alpha1.HostFunction, error) {
	device, err := deviceOf(ctx, r.sysfs, link)
	if device == "" {
		return nil, err
	}
	name := path.Base(device)
	_, isPCI := parsePCIAddress(name)
	switch {
	case isPCI:
		return r.pciFunction(ctx, s, link.Name, name)
	case strings.Contains(name, ".sf."): // an auxiliary device, such as mlx5_core.sf.4
		return r.scalableFunction(ctx, s, name, device)
	}
	return nil, nil
}

// deviceOf is the path of a link's device below the sysfs root, "" if it has none.
func deviceOf(ctx context.Context, sysfs *kernel.Sysfs, link kernel.Link) (string, error) {
	// Names are reused, and a sysfs that was mounted in another network namespace shows that one's links.
	index, err := sysfs.ReadAttr(ctx, netDevices, link.Name, "ifindex")
	switch {
	case errors.Is(err, kernel.ErrAbsent): // a simulated card without this attribute, or no link at all
	case err != nil:
		return "", err
	case index != strconv.Itoa(link.Index):
		return "", nil
	}
	device, err := sysfs.Resolve(ctx, netDevices, link.Name, "device")
	if errors.Is(err, kernel.ErrAbsent) {
		return "", nil
	}
	return device, err
}

// pciFunction is for interfaces whose device is a PCI function, physical or virtual.
func (r FunctionReader) pciFunction(ctx context.Context, s *kernel.Snapshot, netdev, address string) (*v1alpha1.HostFunction, error) {
	// Not by sriovnet.GetPfPciFromVfPci: its error does not tell "no virtual function" from "unknown".
	pf, err := r.sysfs.Resolve(ctx, pciDevices, address, "physfn")
	switch {
	case errors.Is(err, kernel.ErrAbsent):
		port, err := r.portName(ctx, netdev)
		if err != nil || isRepresentor(port) {
			return nil, err
		}
		return r.onPhysical(ctx, s, address, netdev)
	case err != nil:
		return nil, err
	}
	pf = path.Base(pf)
	index, err := r.virtualIndex(ctx, pf, address)
	if err != nil {
		return nil, err
	}
	function, err := r.onPhysical(ctx, s, pf, "")
	if err != nil {
		return nil, err
	}
	function.VFID = &index
	return function, nil
}

func (r FunctionReader) scalableFunction(ctx context.Context, s *kernel.Snapshot, auxiliary, device string) (*v1alpha1.HostFunction, error) {
	pf, ok := nearestPCI(device)
	if !ok {
		return nil, fmt.Errorf("auxiliary device %s is below no PCI function", auxiliary)
	}
	number, err := kernel.Access(ctx, r.sysfs, "sfnum of "+auxiliary, func() (int, error) { return sriovnet.GetSfIndexByAuxDev(auxiliary) })
	if err != nil {
		return nil, err
	}
	function, err := r.onPhysical(ctx, s, pf.String(), "")
	if err != nil {
		return nil, err
	}
	sf := int64(number)
	function.SFID = &sf
	return function, nil
}

// virtualIndex is the number of a virtual function on its physical one: that of the link virtfn<n> that leads
// to it. sriovnet.GetVfIndexByPciAddress reads /sys whatever root it was given.
func (r FunctionReader) virtualIndex(ctx context.Context, pf, vf string) (int32, error) {
	names, err := r.sysfs.List(ctx, pciDevices, pf)
	if err != nil {
		return 0, err
	}
	for _, name := range names {
		digits, isVF := strings.CutPrefix(name, "virtfn")
		index, err := strconv.ParseUint(digits, 10, 16)
		if !isVF || err != nil {
			continue
		}
		target, err := r.sysfs.Resolve(ctx, pciDevices, pf, name)
		if err != nil && !errors.Is(err, kernel.ErrAbsent) {
			return 0, err
		}
		if path.Base(target) == vf {
			return int32(index), nil
		}
	}
	return 0, fmt.Errorf("physical function %s has no virtual function %s", pf, vf)
}
