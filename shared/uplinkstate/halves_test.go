// SPDX-License-Identifier: Apache-2.0

package uplinkstate

import (
	"encoding/json"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/ovn-uplink/ovn-uplink/shared/api/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func blueHalf() HostHalf {
	vf := int32(3)
	return HostHalf{
		Data: HostData{
			Type:      v1alpha1.OVSBridge,
			Interface: "ovsbr1",
			MAC:       net.HardwareAddr{2, 0x42, 0xac, 0x1c, 0, 2},
			Function:  &v1alpha1.HostFunction{PFMAC: "02:00:00:00:00:01", PFID: 1, VFID: &vf},
			Addresses: []netip.Prefix{netip.MustParsePrefix("172.28.0.2/16"), netip.MustParsePrefix("2001:db8::2/64")},
			Gateways:  []netip.Addr{netip.MustParseAddr("172.28.0.1"), netip.MustParseAddr("fe80::1")},
		},
		Ready: True(ReasonHostDataDiscovered, "measured", 3),
	}
}

// What a role reads back must equal what it wished, or it would write for ever.
func TestHostHalfRoundTrip(t *testing.T) {
	for name, half := range map[string]HostHalf{
		"all fields": blueHalf(),
		"failure": {
			Data:  HostData{Type: v1alpha1.OVSBridge, Interface: "eth9"},
			Ready: False(Problemf(ReasonHostInterfaceNotFound, "no interface eth9"), 1),
		},
	} {
		t.Run(name, func(t *testing.T) {
			patch := ApplyHost(&v1alpha1.Uplink{ObjectMeta: metav1.ObjectMeta{Name: "blue", UID: "u1"}}, "w", half, nil, time.Now())
			got, ok := HostHalfOf(stateOf(t, patch))
			if !ok || !got.Equal(half) {
				t.Errorf("read back %+v, wished %+v", got, half)
			}
		})
	}
}

func TestDPUHalfRoundTrip(t *testing.T) {
	vlan := int32(100)
	half := DPUHalf{
		Bridge:   &v1alpha1.OVSBridgeStatus{Name: "br-ext", UplinkPort: "p0", VLAN: &vlan},
		Resolved: True(ReasonResolved, "bridge br-ext", 7),
	}
	state := &v1alpha1.UplinkState{ObjectMeta: metav1.ObjectMeta{Name: "blue.w", UID: "s1"}}
	patch := ApplyDPU(state, half, time.Now())
	if patch.Metadata.UID != "s1" || patch.Spec != nil {
		t.Errorf("the dpu's patch must carry the UID and no spec: %+v", patch)
	}
	if got, ok := DPUHalfOf(stateOf(t, patch)); !ok || !got.Equal(half) {
		t.Errorf("read back %+v, wished %+v", got, half)
	}
}

func TestTransitionTimeStaysWhileStatusStays(t *testing.T) {
	then := metav1.NewTime(time.Unix(1000, 0))
	state := &v1alpha1.UplinkState{Status: v1alpha1.UplinkStateStatus{Conditions: []metav1.Condition{
		{Type: Resolved, Status: metav1.ConditionFalse, Reason: ReasonBridgeNotFound, LastTransitionTime: then},
	}}}
	same := ApplyDPU(state, DPUHalf{Resolved: False(Problemf(ReasonBridgeInvalid, "x"), 0)}, time.Now())
	if got := same.Status.Conditions[0].LastTransitionTime; !got.Equal(&then) {
		t.Errorf("False to False moved the time to %s", got)
	}
	other := ApplyDPU(state, DPUHalf{Resolved: True(ReasonResolved, "", 0)}, time.Now())
	if got := other.Status.Conditions[0].LastTransitionTime; got.Equal(&then) {
		t.Error("False to True kept the time")
	}
}

// The other side of the split is not trusted: text that does not parse counts as absent.
func TestHostHalfOfUntrustedText(t *testing.T) {
	for name, mac := range map[string]string{"garbage": "x", "zero": "00:00:00:00:00:00", "multicast": "01:00:5e:00:00:01", "InfiniBand": "00:00:00:00:fe:80:00:00:00:00:00:00:02:00:5e:10:00:00:00:01"} {
		t.Run(name, func(t *testing.T) {
			half, ok := HostHalfOf(&v1alpha1.UplinkState{Status: v1alpha1.UplinkStateStatus{
				MACAddress: mac, IPAddresses: []string{"nonsense", "192.0.2.1/24"}, DefaultGateways: []string{"", "192.0.2.254"},
				Conditions: []metav1.Condition{{Type: HostDataReady, Status: metav1.ConditionTrue}},
			}})
			if !ok || half.Data.MAC != nil || len(half.Data.Addresses) != 1 || len(half.Data.Gateways) != 1 {
				t.Errorf("got %+v", half)
			}
		})
	}
}

func FuzzHostHalfOf(f *testing.F) {
	f.Add("02:42:ac:1c:00:02", "172.28.0.2/16", "172.28.0.1")
	f.Add("00:00", "::/0", "fe80::1%eth0")
	f.Fuzz(func(t *testing.T, mac, address, gateway string) {
		state := &v1alpha1.UplinkState{Status: v1alpha1.UplinkStateStatus{
			MACAddress: mac, IPAddresses: []string{address}, DefaultGateways: []string{gateway},
			Conditions: []metav1.Condition{{Type: HostDataReady}},
		}}
		half, ok := HostHalfOf(state)
		if !ok {
			t.Fatal("no half")
		}
		if half.Data.MAC != nil && !UsableMAC(half.Data.MAC) {
			t.Errorf("unusable MAC %s taken", half.Data.MAC)
		}
	})
}

func TestLeavingAndLeft(t *testing.T) {
	state := &v1alpha1.UplinkState{}
	if Leaving(state) || !Left(state) {
		t.Error("an empty state is neither leaving nor held")
	}
	state.Status.Conditions = []metav1.Condition{
		{Type: HostDataReady, Status: metav1.ConditionFalse, Reason: ReasonNodeNotSelected},
		{Type: Resolved, Status: metav1.ConditionTrue},
	}
	if !Leaving(state) || Left(state) {
		t.Error("a marked state that the dpu still holds is leaving and not left")
	}
}

// stateOf is what the API server stores of a patch.
func stateOf(t *testing.T, patch Patch) *v1alpha1.UplinkState {
	t.Helper()
	body, err := json.Marshal(patch)
	if err != nil {
		t.Fatal(err)
	}
	state := &v1alpha1.UplinkState{}
	if err := json.Unmarshal(body, state); err != nil {
		t.Fatal(err)
	}
	return state
}
