// SPDX-License-Identifier: Apache-2.0

// Package network says what a ClusterUserDefinedNetwork is called in the systems that OVN-Kubernetes fills:
// northbound rows, bridge mappings, VRFs.
package network

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
)

// maxInterfaceName is the longest name of a Linux link: IFNAMSIZ less the final NUL.
const maxInterfaceName = 15

// Name is what OVN-Kubernetes calls the network of a CUDN, in external_ids and in bridge mappings.
func Name(cudn string) string { return "cluster_udn_" + cudn }

// Prefix is what the names of the network's northbound rows begin with.
func Prefix(cudn string) string {
	return strings.NewReplacer("-", ".", "/", ".").Replace(Name(cudn)) + "_"
}

// The annotations of a NetworkAttachmentDefinition that say what OVN-Kubernetes calls its network and which number the
// network has in the cluster.
const (
	NameAnnotation = "k8s.ovn.org/network-name"
	IDAnnotation   = "k8s.ovn.org/network-id"
)

// NeedsID tells whether the name of a network's VRF is made of the network's id.
func NeedsID(cudn string) bool { return len(cudn) > maxInterfaceName || cudn == vrfDefault }

// VRFName is the name of the network's VRF device: the CUDN's own name where a link can have it, else one made
// of the network id (IDAnnotation; nil while it is not known), else a stable digest. FRR and RouteAdvertisements use the
// same name.
func VRFName(cudn string, networkID *int) string {
	switch {
	case !NeedsID(cudn):
		return cudn
	case networkID != nil:
		return "mp" + strconv.Itoa(*networkID) + "-udn-vrf"
	}
	sum := sha256.Sum256([]byte(cudn))
	return "udn-" + hex.EncodeToString(sum[:])[:maxInterfaceName-len("udn-")]
}
