// SPDX-License-Identifier: Apache-2.0

package network

import "github.com/ovn-uplink/ovn-uplink/shared/api/core"

// Occupies tells whether a pod keeps the networks of its namespace active on the node that it is scheduled to
// (Dynamic UDN): from when it is scheduled until it has ended for good.
func Occupies(pod *core.Pod) bool {
	return pod.Spec.NodeName != "" && pod.Status.Phase != core.PodSucceeded && pod.Status.Phase != core.PodFailed
}
