// SPDX-License-Identifier: Apache-2.0

package vrf

import (
	"encoding/binary"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// madeAddress encodes an address as the kernel tells of it.
func madeAddress(t *testing.T, prefix string, flags, preferred, valid uint32) address {
	t.Helper()
	p := netip.MustParsePrefix(prefix)
	header := make([]byte, unix.SizeofIfAddrmsg)
	header[0], header[1] = unix.AF_INET, byte(p.Bits())
	if p.Addr().Is6() {
		header[0] = unix.AF_INET6
	}
	binary.NativeEndian.PutUint32(header[4:], 5)
	info := append(append(bytesOf(preferred), bytesOf(valid)...), make([]byte, 8)...)
	m := message{header: header, attrs: []attribute{{unix.IFA_ADDRESS, p.Addr().AsSlice()}, {unix.IFA_CACHEINFO, info}, {unix.IFA_FLAGS, bytesOf(flags)}}}
	a, err := parseAddress(m.bytes())
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestC21Addresses: which addresses are put back, and with what is left of their lifetimes.
func TestC21Addresses(t *testing.T) {
	for _, c := range []struct {
		name, prefix string
		flags        uint32
		carried      bool
	}{
		{"IPv4", "192.0.2.5/24", unix.IFA_F_PERMANENT, true},
		{"IPv4, secondary", "192.0.2.6/24", unix.IFA_F_SECONDARY, true},
		{"IPv4 link-local", "169.254.7.7/16", 0, true},
		{"IPv6", "2001:db8::5/64", unix.IFA_F_PERMANENT, true},
		{"IPv6, tentative", "2001:db8::5/64", unix.IFA_F_TENTATIVE, true},
		{"IPv6, somebody else's", "2001:db8::5/64", unix.IFA_F_DADFAILED, false},
		{"IPv6, temporary", "2001:db8::5/64", unix.IFA_F_TEMPORARY, false},
		{"IPv6 link-local", "fe80::5/64", unix.IFA_F_PERMANENT, false},
	} {
		if got := madeAddress(t, c.prefix, c.flags, forever, forever).carried(); got != c.carried {
			t.Errorf("%s: carried %t", c.name, got)
		}
	}
	for _, c := range []struct {
		name             string
		preferred, valid uint32
		passed           time.Duration
		want             [2]uint32
		ok               bool
	}{
		{"endless", forever, forever, time.Hour, [2]uint32{forever, forever}, true},
		{"some left", 1800, 3600, 100 * time.Second, [2]uint32{1700, 3500}, true},
		{"deprecated meanwhile", 60, 3600, 100 * time.Second, [2]uint32{0, 3500}, true},
		{"over", 60, 90, 100 * time.Second, [2]uint32{0, 0}, false},
	} {
		left, ok := madeAddress(t, "192.0.2.5/24", 0, c.preferred, c.valid).after(c.passed)
		info := left.get(unix.IFA_CACHEINFO)
		if got := [2]uint32{binary.NativeEndian.Uint32(info), binary.NativeEndian.Uint32(info[4:])}; got != c.want || ok != c.ok || len(info) != 16 {
			t.Errorf("%s: %v, %t; want %v, %t", c.name, got, ok, c.want, c.ok)
		}
	}
}

func TestJournal(t *testing.T) {
	j := journal{filepath.Join(t.TempDir(), "not", "there", "yet")}
	if rec, err := j.read("u0"); rec != nil || err != nil {
		t.Fatalf("an empty journal has %+v, %v", rec, err)
	}
	boot, err := bootID()
	if err != nil {
		t.Fatal(err)
	}
	rec := &record{Phase: attached, Interface: "u0", Index: 5, Boot: boot, VRF: blue, Table: 500, Sysctls: map[string]setting{"/x": {"0", "1"}}}
	whole := taken{[]address{madeAddress(t, "192.0.2.5/24", 0, forever, forever)}, []route{spec{dst: "0.0.0.0/0", via: "192.0.2.1"}.route(t)}}
	rec.hold(whole)
	if err := j.write(rec); err != nil {
		t.Fatal(err)
	}
	read, err := j.read("u0")
	if err != nil {
		t.Fatal(err)
	}
	held, err := read.held()
	if err != nil || !held.equal(whole) || read.Phase != attached || read.VRF != blue || read.Sysctls["/x"] != (setting{"0", "1"}) {
		t.Errorf("read %+v with %v, %v", read, held, err)
	}

	// A write that was killed leaves a file that is no record, and the record that was there.
	if err := os.WriteFile(j.path("u0")+".new", []byte(`{"pha`), 0o600); err != nil {
		t.Fatal(err)
	}
	if names, err := j.interfaces(); err != nil || !slices.Equal(names, []string{"u0"}) {
		t.Errorf("interfaces are %q, %v", names, err)
	}
	if again, err := j.read("u0"); err != nil || again == nil || again.Index != 5 {
		t.Errorf("read %+v, %v", again, err)
	}

	// After a boot of the machine nothing is as it was recorded.
	rec.Boot = "00000000-0000-0000-0000-000000000000"
	if err := j.write(rec); err != nil {
		t.Fatal(err)
	}
	if old, err := j.read("u0"); old != nil || err != nil {
		t.Errorf("a record of another boot: %+v, %v", old, err)
	}
	if names, err := j.interfaces(); err != nil || len(names) > 0 {
		t.Errorf("interfaces are %q, %v", names, err)
	}
	if err := os.WriteFile(j.path("u1"), []byte("not a record"), 0o600); err != nil {
		t.Fatal(err)
	}
	if broken, err := j.read("u1"); err == nil {
		t.Errorf("a broken record was read as %+v", broken)
	}
}

func TestFreeTable(t *testing.T) {
	v := &view{
		links: []link{{name: "blue", vrf: true, table: 500}},
		routes: []route{spec{dst: "0.0.0.0/0", table: 501}.route(t),
			// That of a VRF that somebody removed.
			spec{dst: "0.0.0.0/0", table: 503, kind: unix.RTN_UNREACHABLE, proto: 117, metric: lastResort}.route(t)},
	}
	for _, c := range []struct {
		tables TableRange
		want   uint32
	}{{TableRange{500, 899}, 503}, {TableRange{504, 899}, 504}, {TableRange{500, 502}, 0}, {TableRange{0, 10}, 1}} {
		if got := v.freeTable([]uint32{254, 502}, c.tables); got != c.want {
			t.Errorf("of %+v table %d is free, want %d", c.tables, got, c.want)
		}
	}
}

// FuzzRoute: whatever the kernel says is decoded or refused; what was decoded survives being put back and read again.
func FuzzRoute(f *testing.F) {
	t := &testing.T{}
	for _, s := range []spec{{dst: "0.0.0.0/0", via: "192.0.2.1"}, {dst: "2001:db8::/64", expires: 7},
		{dst: "198.51.100.0/24", via: "192.0.2.1", hops: []int{5, 6}}, {dst: "198.51.100.0/24", object: true, src: "192.0.2.5"}} {
		f.Add(s.message(t))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		r, err := parseRoute(raw)
		if err != nil {
			return
		}
		again, err := parseRoute(r.bytes())
		if err != nil || !again.same(r) {
			t.Errorf("%x: %+v, read again %+v, %v", raw, r, again, err)
		}
	})
}

// TestAttachments: what could not return entirely is in no VRF any more.
func TestAttachments(t *testing.T) {
	a := New(Config{Journal: t.TempDir()})
	boot, err := bootID()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{string(attaching): false, string(attached): false, string(detaching): true, string(returning): true}
	for p := range want {
		r := &record{Phase: phase(p), Interface: p, Boot: boot, VRF: VRF{Name: "blue", Uplink: "tenant-blue"}}
		if err := a.journal.write(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.journal.write(&record{Phase: attached, Interface: "old", Boot: "an earlier one"}); err != nil {
		t.Fatal(err)
	}
	all, err := a.Attachments()
	if err != nil || len(all) != len(want) {
		t.Fatalf("%v, %v", all, err)
	}
	for _, got := range all {
		if got.Leaving != want[got.Interface] || got.VRF.Uplink != "tenant-blue" {
			t.Errorf("%+v, want leaving %v", got, want[got.Interface])
		}
	}
}
