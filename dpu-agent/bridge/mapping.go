// SPDX-License-Identifier: Apache-2.0

package bridge

import "strings"

const (
	mappingsKey = "ovn-bridge-mappings"
	// defaultNetwork is the physical network that OVN-Kubernetes maps to its default gateway bridge.
	defaultNetwork = "physnet"
)

// Mapping is one element of external_ids:ovn-bridge-mappings: the bridge that carries a physical network.
type Mapping struct {
	// Network and Bridge are empty for an element that is no mapping.
	Network string `json:"network"`
	Bridge  string `json:"bridge"`
	// Text is the element as it stands, byte for byte, because it may be somebody else's.
	Text string `json:"text"`
}

// ParseMappings reads the value of external_ids:ovn-bridge-mappings, "network:bridge,network:bridge". Elements
// that are no mapping are kept as text. The Texts joined with commas are the value again.
func ParseMappings(value string) []Mapping {
	if value == "" {
		return nil
	}
	var mappings []Mapping
	for element := range strings.SplitSeq(value, ",") {
		m := Mapping{Text: element}
		network, bridge, _ := strings.Cut(element, ":")
		if network, bridge = strings.TrimSpace(network), strings.TrimSpace(bridge); network != "" && bridge != "" {
			m.Network, m.Bridge = network, bridge
		}
		mappings = append(mappings, m)
	}
	return mappings
}

// Mappings gives the bridge mappings that ovn-controller uses, and the key of external_ids that they are under.
func (v *View) Mappings() (key string, mappings []Mapping) {
	key, value := v.effective(mappingsKey)
	return key, ParseMappings(value)
}

// IntegrationBridge is the name of OVN's own bridge.
func (v *View) IntegrationBridge() string {
	if _, name := v.effective("ovn-bridge"); name != "" {
		return name
	}
	return "br-int"
}

// effective finds a setting as ovn-controller(8) does: under the key with the chassis appended if that is there,
// even if it is empty, else under the key itself.
func (v *View) effective(key string) (effectiveKey, value string) {
	if v.Chassis != "" {
		own := key + "-" + v.Chassis
		if value, found := v.ExternalIDs[own]; found {
			return own, value
		}
	}
	return key, v.ExternalIDs[key]
}
