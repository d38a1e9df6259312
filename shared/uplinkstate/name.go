// SPDX-License-Identifier: Apache-2.0

package uplinkstate

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

const (
	// maxName is the longest object name that Kubernetes takes (DNS-1123 subdomain).
	maxName = 253
	// nameDigest is how many hexadecimal digits of the digest a shortened name carries.
	nameDigest = 10
)

// Name is the name of the UplinkState of an Uplink on a node: "<uplink>.<node>", and where that is longer
// than 253 characters "<cut uplink>.<cut node>-<10 hex digits of the SHA-256 of the pair>". Names are made,
// never parsed: the identity of a state is its spec.
func Name(uplink, node string) string {
	if full := uplink + "." + node; len(full) <= maxName {
		return full
	}
	// '/' can stand in neither name, so that no two pairs hash the same text.
	sum := sha256.Sum256([]byte(uplink + "/" + node))
	suffix := "-" + hex.EncodeToString(sum[:])[:nameDigest]
	room := maxName - len(suffix) - len(".")
	uplink = uplink[:min(len(uplink), room/2)]
	node = node[:min(len(node), room-len(uplink))]
	// A label may not end in '-' or '.', nor may one be empty.
	return strings.TrimRight(uplink, "-.") + "." + strings.TrimRight(node, "-.") + suffix
}
