// SPDX-License-Identifier: Apache-2.0

package hostlink

import (
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/ovn-uplink/ovn-uplink/shared/api/v1alpha1"
	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestDecide(t *testing.T) {
	rack := map[string]string{"rack": "r1"}
	config := func(iface string, labels map[string]string) v1alpha1.UplinkNodeConfig {
		return v1alpha1.UplinkNodeConfig{Type: v1alpha1.OVSBridge, HostInterfaceName: v1alpha1.InterfaceName(iface), NodeSelector: metav1.LabelSelector{MatchLabels: labels}}
	}
	uplink := func(configs ...v1alpha1.UplinkNodeConfig) *v1alpha1.Uplink {
		return &v1alpha1.Uplink{ObjectMeta: metav1.ObjectMeta{Name: "blue", Generation: 4}, Spec: v1alpha1.UplinkSpec{NodeConfigs: configs}}
	}
	terminating := uplink(config("e0", nil))
	terminating.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	invalid := uplink(config("e0", nil))
	invalid.Spec.NodeConfigs[0].NodeSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}
	state := &v1alpha1.UplinkState{Status: v1alpha1.UplinkStateStatus{
		HostInterfaceName: "e0", MACAddress: "02:00:00:00:00:01",
		Conditions: []metav1.Condition{{Type: uplinkstate.HostDataReady, Status: metav1.ConditionTrue}},
	}}

	for name, tc := range map[string]struct {
		uplink    *v1alpha1.Uplink
		nodeGone  bool
		state     *v1alpha1.UplinkState
		verb      verb
		reason    string
		iface     string
		keepsData bool
	}{
		"selected":                                {uplink: uplink(config("e0", rack)), verb: publish, reason: uplinkstate.ReasonHostDataDiscovered, iface: "e0"},
		"measuring fails":                         {uplink: uplink(config("broken", nil)), verb: publish, reason: uplinkstate.ReasonHostInterfaceNotFound, iface: "broken"},
		"overlap, nothing published yet":          {uplink: uplink(config("e0", nil), config("e1", rack)), verb: publish, reason: uplinkstate.ReasonNodeSelectorOverlap},
		"overlap keeps the last interface":        {uplink: uplink(config("e0", nil), config("e1", rack)), state: state, verb: publish, reason: uplinkstate.ReasonNodeSelectorOverlap, iface: "e0"},
		"not selected, no state":                  {uplink: uplink(config("e0", map[string]string{"rack": "r2"})), verb: keep},
		"not selected any more":                   {uplink: uplink(config("e0", map[string]string{"rack": "r2"})), state: state, verb: leave, reason: uplinkstate.ReasonNodeNotSelected, iface: "e0", keepsData: true},
		"Uplink deleted":                          {state: state, verb: leave, reason: uplinkstate.ReasonNodeNotSelected, iface: "e0", keepsData: true},
		"Uplink deleted, no state":                {verb: keep},
		"terminating Uplinks get no new state":    {uplink: terminating, verb: keep},
		"terminating Uplinks keep what they have": {uplink: terminating, state: state, verb: publish, reason: uplinkstate.ReasonHostDataDiscovered, iface: "e0"},
		"unknown Node says nothing":               {uplink: uplink(config("e0", nil)), nodeGone: true, state: state, verb: keep},
		"invalid selector says nothing":           {uplink: invalid, state: state, verb: keep},
	} {
		t.Run(name, func(t *testing.T) {
			d := decide(tc.uplink, rack, !tc.nodeGone, tc.state, measureForTest)
			if d.verb != tc.verb || d.half.Ready.Reason != tc.reason || d.half.Data.Interface != tc.iface {
				t.Errorf("got %+v", d)
			}
			if hasData := d.half.Data.MAC != nil; hasData != (tc.reason == uplinkstate.ReasonHostDataDiscovered || tc.keepsData) {
				t.Errorf("MAC %v with %s", d.half.Data.MAC, tc.reason)
			}
			if d.verb == keep && d.why == "" {
				t.Error("nothing says why nothing is done")
			}
			if tc.verb == publish && d.half.Ready.Generation != 4 {
				t.Errorf("generation %d", d.half.Ready.Generation)
			}
		})
	}
}

// A dpu that does not answer cannot keep a state for ever.
func TestPatience(t *testing.T) {
	marked := time.Unix(1000, 0)
	for name, tc := range map[string]struct {
		left  bool
		after time.Duration
		gone  bool
	}{
		"answered at once":    {true, 0, true},
		"just marked":         {false, 0, false},
		"after 59 seconds":    {false, 59 * time.Second, false},
		"after a minute":      {false, time.Minute, true},
		"answered after that": {true, 2 * time.Minute, true},
	} {
		t.Run(name, func(t *testing.T) {
			if gone := patience(tc.left, marked, marked.Add(tc.after)) <= 0; gone != tc.gone {
				t.Errorf("may go: %v", gone)
			}
		})
	}
}

func TestOverlapNamesTheEntries(t *testing.T) {
	all := v1alpha1.UplinkNodeConfig{HostInterfaceName: "e0"}
	d := decide(&v1alpha1.Uplink{ObjectMeta: metav1.ObjectMeta{Name: "blue"}, Spec: v1alpha1.UplinkSpec{NodeConfigs: []v1alpha1.UplinkNodeConfig{all, all}}}, nil, true, nil, measureForTest)
	if !strings.Contains(d.half.Ready.Message, "nodeConfigs 0, 1 of Uplink blue") {
		t.Errorf("message %q", d.half.Ready.Message)
	}
}

func measureForTest(config v1alpha1.UplinkNodeConfig) (measurement, *uplinkstate.Problem) {
	if config.HostInterfaceName == "broken" {
		return measurement{}, uplinkstate.Problemf(uplinkstate.ReasonHostInterfaceNotFound, "no interface %s", config.HostInterfaceName)
	}
	return measurement{HostData: uplinkstate.HostData{
		Interface: string(config.HostInterfaceName),
		MAC:       net.HardwareAddr{2, 0, 0, 0, 0, 1},
		Addresses: []netip.Prefix{netip.MustParsePrefix("192.0.2.5/24")},
	}}, nil
}
