// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 is the Uplink API: what an administrator wishes (Uplink) and what was found and
// programmed on each node (UplinkState).
//
// +k8s:deepcopy-gen=package
// +k8s:openapi-gen=true
// +groupName=k8s.ovn.org
package v1alpha1
