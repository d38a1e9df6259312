// SPDX-License-Identifier: Apache-2.0

// Package v1 is a read-only view of the OVN-Kubernetes objects that the agents look at: only the fields that
// are used, so that objects of newer releases decode too.
//
// +k8s:deepcopy-gen=package
// +groupName=k8s.ovn.org
package v1
