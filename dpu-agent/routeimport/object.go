// SPDX-License-Identifier: Apache-2.0

package routeimport

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"
)

// Sizes of struct nhmsg and struct nexthop_grp of linux/nexthop.h, and the offset of nhmsg.nh_flags.
const nhmsgSize, groupMemberSize, nhmsgFlags = 8, 8, 4

// object is a next-hop object (ip-nexthop(8)): a next hop, or a group of others by their ids.
type object struct {
	id    uint32
	hop   hop
	group []uint32
	// discards is set for a blackhole.
	discards bool
}

func parseObject(raw []byte) (object, error) {
	if len(raw) < nhmsgSize {
		return object{}, fmt.Errorf("decode a next-hop object: %w", errShort)
	}
	o := object{hop: hop{dead: binary.NativeEndian.Uint32(raw[nhmsgFlags:])&deadFlags != 0}}
	for rest := raw[nhmsgSize:]; len(rest) > 0; {
		var a attribute
		var err error
		if a, rest, err = cut(rest); err != nil {
			return object{}, fmt.Errorf("decode a next-hop object: %w", err)
		}
		switch a.kind {
		case unix.NHA_ID:
			o.id = a.number()
		case unix.NHA_OIF:
			o.hop.link = int(a.number())
		case unix.NHA_GATEWAY:
			o.hop.gateway = a.address()
		case unix.NHA_BLACKHOLE:
			o.discards = true
		case unix.NHA_GROUP:
			for b := a.value; len(b) >= groupMemberSize; b = b[groupMemberSize:] {
				o.group = append(o.group, binary.NativeEndian.Uint32(b))
			}
		}
	}
	return o, nil
}

// objects are next-hop objects by their ids.
type objects map[uint32]object

// ways appends the next hops behind an id; ok is false if one is not there. A group has no groups inside.
func (all objects) ways(id uint32, hops []hop) (_ []hop, ok bool) {
	o, ok := all[id]
	if !ok {
		return hops, false
	}
	members := o.group
	if len(members) == 0 {
		members = []uint32{id}
	}
	for _, m := range members {
		member, there := all[m]
		if !there {
			ok = false
			continue
		}
		if !member.discards && member.hop.link != 0 {
			hops = append(hops, member.hop)
		}
	}
	return hops, ok
}
