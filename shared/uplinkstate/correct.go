// SPDX-License-Identifier: Apache-2.0

package uplinkstate

import (
	"slices"
	"time"

	"github.com/ovn-uplink/ovn-uplink/shared/api/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Correction is the body of a JSON merge patch for where a server-side apply is not enough: it cannot remove what
// another manager owns too, be it by an edit, a restored backup, or another implementation that was here before. It
// is tied to one version of the object.
type Correction map[string]any

// CorrectHost makes the host half of a state what was wished, field by field.
func CorrectHost(state *v1alpha1.UplinkState, half HostHalf, now time.Time) Correction {
	status := hostStatus(half)
	fields := map[string]any{
		"type":              orNull(status.Type),
		"hostInterfaceName": orNull(status.HostInterfaceName),
		"macAddress":        orNull(status.MACAddress),
		"ipAddresses":       orNullList(status.IPAddresses),
		"defaultGateways":   orNullList(status.DefaultGateways),
		"hostFunction":      nil,
	}
	if f := status.HostFunction; f != nil {
		fields["hostFunction"] = map[string]any{
			"pfMAC": orNull(f.PFMAC), "pfID": f.PFID,
			"controllerNumber": f.ControllerNumber, "vfID": f.VFID, "sfID": f.SFID,
		}
	}
	return correct(state, fields, HostDataReady, conditions(HostDataReady, half.Ready, state.Status.Conditions, now))
}

// CorrectDPU makes the dpu half of a state what was wished, field by field.
func CorrectDPU(state *v1alpha1.UplinkState, half DPUHalf, now time.Time) Correction {
	fields := map[string]any{"ovsBridge": nil}
	if b := half.Bridge; b != nil {
		fields["ovsBridge"] = map[string]any{"name": b.Name, "uplinkPort": orNull(b.UplinkPort), "vlan": b.VLAN}
	}
	return correct(state, fields, Resolved, conditions(Resolved, half.Resolved, state.Status.Conditions, now))
}

// CorrectNothing takes the dpu half out of a state.
func CorrectNothing(state *v1alpha1.UplinkState) Correction {
	return correct(state, map[string]any{"ovsBridge": nil}, Resolved, nil)
}

func correct(state *v1alpha1.UplinkState, fields map[string]any, kind string, own []metav1.Condition) Correction {
	others := slices.DeleteFunc(slices.Clone(state.Status.Conditions), func(c metav1.Condition) bool { return c.Type == kind })
	fields["conditions"] = append(others, own...)
	return Correction{
		"metadata": map[string]any{"uid": state.UID, "resourceVersion": state.ResourceVersion},
		"status":   fields,
	}
}

func orNull[T ~string](text T) any {
	if text == "" {
		return nil
	}
	return text
}

func orNullList(list []string) any {
	if len(list) == 0 {
		return nil
	}
	return list
}
