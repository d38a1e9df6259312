// SPDX-License-Identifier: Apache-2.0

package vrf

import (
	"errors"
	"fmt"
	"strings"

	"github.com/ovn-uplink/ovn-uplink/shared/kernel"
	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// lastResort is the metric of the default routes that end a VRF, so that what it has no route for does not go on in
// table main (Documentation/networking/vrf.rst).
const lastResort = 4278198272

// suitable finds the device of a VRF; ok is false when it has to be made. The error is a Problem if what has its name
// cannot be it.
func (w *work) suitable(v VRF) (device link, ok bool, err error) {
	device, ok = w.byName(v.Name)
	switch {
	case !ok:
		return link{}, false, nil
	case !device.vrf:
		return link{}, false, uplinkstate.Problemf(uplinkstate.ReasonUplinkVRFAttachmentFailed,
			"the VRF of network %s is to be named %s, but that is a network interface of kind %s; rename or remove it", v.Network, v.Name, device.kind)
	case strings.HasPrefix(device.alias, aliasPrefix) && device.alias != v.alias():
		return link{}, false, uplinkstate.Problemf(uplinkstate.ReasonUplinkConfigurationConflict,
			"VRF %s is that of network %s, and network %s cannot have one of the same name",
			v.Name, strings.TrimPrefix(device.alias, aliasPrefix), v.Network)
	}
	return device, true, nil
}

// choose notes which table the VRF has, or will have.
func (w *work) choose() error {
	device, ok, err := w.suitable(w.rec.VRF)
	if err != nil {
		return err
	}
	if ok {
		w.rec.Table = device.table
		return nil
	}
	ruled, err := w.ruleTables()
	if err != nil {
		return err
	}
	w.rec.Table, w.rec.Making = w.freeTable(ruled, w.cfg.Tables), true
	if w.rec.Table == 0 {
		return uplinkstate.Problemf(uplinkstate.ReasonUplinkVRFAttachmentFailed,
			"no routing table from %d to %d is free for VRF %s; free one, or give the agent more", w.cfg.Tables.First, w.cfg.Tables.Last, w.rec.VRF.Name)
	}
	return nil
}

// freeTable is the first table of a range without routes, rules that lead to it and VRFs; 0 if there is none.
func (v *view) freeTable(ruled []uint32, tables TableRange) uint32 {
	used := map[uint32]bool{}
	for _, l := range v.links {
		used[l.table] = true
	}
	for _, r := range v.routes {
		used[r.table] = used[r.table] || !r.last()
	}
	for _, table := range ruled {
		used[table] = true
	}
	for table := max(tables.First, 1); table <= tables.Last; table++ {
		if !used[table] {
			return table
		}
	}
	return 0
}

// device finds the VRF device of the record or makes it, marks it and lets it work.
func (w *work) device() (link, error) {
	device, ok, err := w.suitable(w.rec.VRF)
	if err != nil {
		return link{}, err
	}
	if !ok {
		w.cfg.at("make VRF")
		if err := w.makeDevice(); err != nil {
			return link{}, fmt.Errorf("make VRF %s with table %d: %w", w.rec.VRF.Name, w.rec.Table, err)
		}
		if w.view, err = w.observe(); err != nil {
			return link{}, err
		}
		if device, ok, err = w.suitable(w.rec.VRF); err != nil || !ok {
			return link{}, fmt.Errorf("make VRF %s: it went again: %w", w.rec.VRF.Name, err)
		}
		w.log.Info("Made VRF", "vrf", device.name, "table", device.table)
	}
	// One without a mark may be from a run that was killed in between.
	if w.rec.Making && device.alias == "" && device.table == w.rec.Table {
		w.cfg.at("mark VRF")
		if err := w.setLink(device.index, nl.NewRtAttr(unix.IFLA_IFALIAS, []byte(w.rec.VRF.alias()))); err != nil {
			return link{}, fmt.Errorf("mark VRF %s: %w", device.name, err)
		}
		device.alias = w.rec.VRF.alias()
	}
	w.rec.Table = device.table
	if !device.up {
		w.cfg.at("set VRF up")
		if err := w.setLink(device.index, nil); err != nil {
			return link{}, fmt.Errorf("set VRF %s up: %w", device.name, err)
		}
	}
	if device.alias == w.rec.VRF.alias() {
		w.cfg.at("end VRF")
		if err := w.endDevice(device.table); err != nil {
			return link{}, fmt.Errorf("make the last routes of VRF %s: %w", device.name, err)
		}
	}
	return device, nil
}

func (w *work) makeDevice() error {
	info := nl.NewRtAttr(unix.IFLA_LINKINFO, nil)
	info.AddRtAttr(nl.IFLA_INFO_KIND, nl.NonZeroTerminated("vrf"))
	info.AddRtAttr(nl.IFLA_INFO_DATA, nil).AddRtAttr(nl.IFLA_VRF_TABLE, bytesOf(w.rec.Table))
	message := append(nl.NewIfInfomsg(unix.AF_UNSPEC).Serialize(), nl.NewRtAttr(unix.IFLA_IFNAME, nl.ZeroTerminated(w.rec.VRF.Name)).Serialize()...)
	return w.change(unix.RTM_NEWLINK, unix.NLM_F_CREATE|unix.NLM_F_EXCL, append(message, info.Serialize()...))
}

// setLink sets an attribute of a link, or sets it up if that is nil.
func (w *work) setLink(index int, attr *nl.RtAttr) error {
	header := nl.NewIfInfomsg(unix.AF_UNSPEC)
	header.Index = int32(index)
	if attr == nil {
		header.Flags, header.Change = unix.IFF_UP, unix.IFF_UP
		return w.change(unix.RTM_NEWLINK, 0, header.Serialize())
	}
	return w.change(unix.RTM_NEWLINK, 0, append(header.Serialize(), attr.Serialize()...))
}

// endDevice gives a table an unreachable default of either family.
func (w *work) endDevice(table uint32) error {
	for _, family := range families {
		header := make([]byte, unix.SizeofRtMsg)
		header[0], header[rtmTable], header[rtmProtocol], header[rtmType] = family, unix.RT_TABLE_COMPAT, kernel.ProtocolOwn, unix.RTN_UNREACHABLE
		m := message{header: header, attrs: []attribute{{unix.RTA_TABLE, bytesOf(table)}, {unix.RTA_PRIORITY, bytesOf(lastResort)}}}
		err := w.change(unix.RTM_NEWROUTE, unix.NLM_F_CREATE|unix.NLM_F_EXCL, m.bytes())
		if err != nil && !errors.Is(err, unix.EEXIST) && !absent(err) {
			return err
		}
	}
	return nil
}

// removeDevice removes the VRF device of the record if this program made it and no link is left in it.
func (w *work) removeDevice() error {
	device, ok := w.byName(w.rec.VRF.Name)
	if !ok {
		// Somebody else removed it, which leaves the routes that lead nowhere.
		return w.unendDevice(w.view, w.rec.Table)
	}
	ours := device.vrf && (device.alias == w.rec.VRF.alias() || w.rec.Making && device.alias == "" && device.table == w.rec.Table)
	if !ours || w.hasSlaves(device.index) {
		return nil
	}
	w.cfg.at("remove VRF")
	if err := w.deleteDevice(w.view, device); err != nil {
		return err
	}
	w.log.Info("Removed VRF", "vrf", device.name)
	return nil
}

// deleteDevice removes a VRF device with its unreachable defaults.
func (r *rtnetlink) deleteDevice(v *view, device link) error {
	// First, so that whoever is killed in between finds the device and does both.
	if err := r.unendDevice(v, device.table); err != nil {
		return err
	}
	header := nl.NewIfInfomsg(unix.AF_UNSPEC)
	header.Index = int32(device.index)
	if err := r.change(unix.RTM_DELLINK, 0, header.Serialize()); err != nil && !errors.Is(err, unix.ENODEV) {
		return fmt.Errorf("remove VRF %s: %w", device.name, err)
	}
	return nil
}

// unendDevice removes the unreachable defaults from a table.
func (r *rtnetlink) unendDevice(v *view, table uint32) error {
	for _, route := range v.routes {
		if route.table != table || !route.last() {
			continue
		}
		if err := r.change(unix.RTM_DELROUTE, 0, route.bytes()); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("remove route %s: %w", route, err)
		}
	}
	return nil
}

// last tells whether the route is one of those that endDevice makes.
func (r route) last() bool {
	return r.kind == unix.RTN_UNREACHABLE && r.protocol == kernel.ProtocolOwn && r.metric == lastResort && r.dst.Bits() == 0
}
