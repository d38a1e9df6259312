// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"crypto/sha256"
	"net"
	"strings"
)

// The external_ids of every row of this package. Neither k8s.ovn.org/network nor ic-node is among them, and no name
// begins with GR_: the CNI takes away what it finds by those.
const (
	ownerKey   = "ovn-uplink/owner"
	uplinkKey  = "ovn-uplink/uplink"
	nodeKey    = "ovn-uplink/node"
	networkKey = "ovn-uplink/network"
	owner      = "dpu-agent"
)

// names are the names of an Uplink's rows on one node. Neither Uplinks nor nodes have underscores in their names.
type names struct{ uplink, node string }

func (n names) edge() string         { return "uplink_" + n.uplink + "_edge_" + n.node }
func (n names) edgePort() string     { return n.edge() + "-ext" }
func (n names) external() string     { return "uplink_" + n.uplink + "_ext_" + n.node }
func (n names) externalPort() string { return n.external() + "-edge" }
func (n names) localnet() string     { return "uplink_" + n.uplink + "_phys_" + n.node }

// PhysicalNetwork is the name that a bridge mapping joins to the bridge of an Uplink.
func PhysicalNetwork(uplink string) string { return "uplink-" + uplink }

func (n names) gateway(p string) string     { return "uplink_" + n.uplink + "_gw_" + p + n.node }
func (n names) gatewayEdge(p string) string { return n.gateway(p) + "-edge" }
func (n names) gatewayLink(p string) string { return n.gateway(p) + "-link" }
func (n names) edgeGateway(p string) string { return n.edge() + "-" + p }
func (n names) link(p string) string        { return "uplink_" + n.uplink + "_link_" + p + n.node }
func (n names) linkCNI(p string) string     { return n.link(p) + "-cni" }
func (n names) linkGateway(p string) string { return n.link(p) + "-gw" }

// routerLink is the port on the CNI's router.
func (n names) routerLink(p string) string { return n.link(p) + "-router" }

// uplinkOfLink is the Uplink whose port on a CNI's router has a name; false if it is the name of something else.
func uplinkOfLink(port string) (string, bool) {
	rest, isOwn := strings.CutPrefix(port, "uplink_")
	uplink, rest, _ := strings.Cut(rest, "_")
	return uplink, isOwn && strings.HasPrefix(rest, "link_") && strings.HasSuffix(rest, "-router")
}

// portMAC is the MAC of a router port, locally administered and the same wherever it is made from the same name:
// ports of one link have different names.
func portMAC(name string) string {
	sum := sha256.Sum256([]byte(name))
	return net.HardwareAddr{0x0a, 0x58, sum[0], sum[1], sum[2], sum[3]}.String()
}
