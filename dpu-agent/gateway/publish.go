// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/ovn-uplink/ovn-uplink/shared/api/v1alpha1"
	"github.com/ovn-uplink/ovn-uplink/shared/events"
	"github.com/ovn-uplink/ovn-uplink/shared/kube"
	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// finding is what a pass found about one network: nil is ready.
type finding = *uplinkstate.Problem

// precedence are the reasons of GatewayReady=False, highest first.
var precedence = []string{
	uplinkstate.ReasonUplinkConfigurationConflict,
	uplinkstate.ReasonUplinkVRFAttachmentFailed,
	uplinkstate.ReasonUplinkBridgeMappingFailed,
	uplinkstate.ReasonUplinkGatewayProgrammingFailed,
	uplinkstate.ReasonGatewayConfigurationPending,
}

// namedNetworks is how many networks a message names.
const namedNetworks = 3

// conclude is the gateway half for the findings about the active networks.
func conclude(findings map[string]finding) uplinkstate.GatewayHalf {
	var half uplinkstate.GatewayHalf
	byReason := map[string][]v1alpha1.NetworkStatus{}
	for cudn, found := range findings {
		n := v1alpha1.NetworkStatus{Name: cudn, Phase: v1alpha1.NetworkReady}
		if found != nil {
			n.Phase, n.Reason, n.Message = v1alpha1.NetworkFailed, found.Reason, uplinkstate.Message(found.Message)
			if found.Reason == uplinkstate.ReasonGatewayConfigurationPending {
				n.Phase = v1alpha1.NetworkPending
			}
			byReason[n.Reason] = append(byReason[n.Reason], n)
		}
		half.Networks = append(half.Networks, n)
	}
	slices.SortFunc(half.Networks, byName)
	if len(half.Networks) > uplinkstate.MaxNetworks {
		half.Networks = half.Networks[:uplinkstate.MaxNetworks]
	}
	for _, reason := range precedence {
		if failed := byReason[reason]; len(failed) > 0 {
			half.Ready = uplinkstate.False(&uplinkstate.Problem{Reason: reason, Message: summary(failed, len(findings))}, 0)
			return half
		}
	}
	if len(findings) == 0 {
		half.Ready = uplinkstate.True(uplinkstate.ReasonGatewayConfigured, "no network is active on this node", 0)
		return half
	}
	half.Ready = uplinkstate.True(uplinkstate.ReasonGatewayConfigured, fmt.Sprintf("the gateway covers %s", count(len(findings))), 0)
	return half
}

func byName(a, b v1alpha1.NetworkStatus) int { return strings.Compare(a.Name, b.Name) }

func count(networks int) string {
	if networks == 1 {
		return "1 network"
	}
	return fmt.Sprintf("%d networks", networks)
}

// summary names the networks that share a reason, and the message of the first.
func summary(failed []v1alpha1.NetworkStatus, all int) string {
	slices.SortFunc(failed, byName)
	var names []string
	for _, n := range failed[:min(len(failed), namedNetworks)] {
		names = append(names, n.Name)
	}
	more := ""
	if rest := len(failed) - len(names); rest > 0 {
		more = fmt.Sprintf(" and %d more", rest)
	}
	return fmt.Sprintf("%d of %s: %s%s: %s", len(failed), count(all), strings.Join(names, ", "), more, failed[0].Message)
}

// publish writes the half unless it is published already.
func (r *Role) publish(ctx context.Context, state *v1alpha1.UplinkState, wish uplinkstate.GatewayHalf) (*v1alpha1.UplinkState, error) {
	published, ok := uplinkstate.GatewayHalfOf(state)
	if ok && published.Equal(wish) {
		uplinkstate.Publish(state.Name, uplinkstate.GatewayReady, wish.Ready)
		return state, nil
	}
	written, err := r.client.Apply(ctx, state.Name, uplinkstate.ManagerDPUGateway, uplinkstate.ApplyGateway(state, wish, time.Now()))
	if err == nil {
		if now, _ := uplinkstate.GatewayHalfOf(written); !now.Equal(wish) {
			slog.Warn("another manager owns fields of the gateway half; correcting them", "state", state.Name)
			written, err = r.client.Merge(ctx, state.Name, uplinkstate.ManagerDPUGateway, uplinkstate.CorrectGateway(written, wish, time.Now()))
		}
	}
	if err != nil {
		return state, fmt.Errorf("publish the gateway of %s: %w", state.Name, err)
	}
	r.states.Wrote(written)
	uplinkstate.Publish(state.Name, uplinkstate.GatewayReady, wish.Ready)
	slog.Info("published gateway", "uplink", state.Spec.UplinkName, "ready", wish.Ready.Status,
		"reason", wish.Ready.Reason, "message", wish.Ready.Message)
	if !ok || published.Ready.Status != wish.Ready.Status || published.Ready.Reason != wish.Ready.Reason {
		kind := events.Warning
		if wish.Ready.Status || wish.Ready.Reason == uplinkstate.ReasonGatewayConfigurationPending {
			kind = events.Normal
		}
		r.recorder.Record(about(state), kind, wish.Ready.Reason, "ConfigureGateway", wish.Ready.Message)
	}
	return written, nil
}

// publishNothing takes the gateway half out of a state that is leaving.
func (r *Role) publishNothing(ctx context.Context, state *v1alpha1.UplinkState) error {
	uplinkstate.Retract(state.Name, uplinkstate.GatewayReady)
	if !uplinkstate.HoldsGateway(state) {
		return nil
	}
	written, err := r.client.Apply(ctx, state.Name, uplinkstate.ManagerDPUGateway, uplinkstate.ApplyNothing(state))
	switch {
	case err == nil && uplinkstate.HoldsGateway(written):
		written, err = r.client.Merge(ctx, state.Name, uplinkstate.ManagerDPUGateway, uplinkstate.CorrectNoGateway(written))
	case apierrors.IsInvalid(err) && !kube.IsGone(err):
		// Another manager owns a part of the condition, and one that is cut in half is refused.
		written, err = r.client.Merge(ctx, state.Name, uplinkstate.ManagerDPUGateway, uplinkstate.CorrectNoGateway(state))
	}
	if kube.IsGone(err) {
		return nil // the watch brings the news
	}
	if err != nil {
		return fmt.Errorf("release the gateway half of %s: %w", state.Name, err)
	}
	r.states.Wrote(written)
	return nil
}

func about(state *v1alpha1.UplinkState) events.Object {
	return events.Object{
		APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "UplinkState", Name: state.Name, UID: state.UID,
	}
}
