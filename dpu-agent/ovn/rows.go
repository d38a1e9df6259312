// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"strconv"
	"strings"

	"github.com/ovn-uplink/ovn-uplink/dpu-agent/ovsdb"
)

// The rows have the columns that are read or written. Those of references to other rows are tagged refs: they belong
// to the rows that are referred to, and are added to and taken from one by one.
type (
	routerRow struct {
		UUID          string            `ovsdb:"_uuid"`
		Name          string            `ovsdb:"name"`
		Options       map[string]string `ovsdb:"options"`
		ExternalIDs   map[string]string `ovsdb:"external_ids"`
		Ports         []string          `ovsdb:"ports" refs:"Logical_Router_Port"`
		StaticRoutes  []string          `ovsdb:"static_routes" refs:"Logical_Router_Static_Route"`
		Policies      []string          `ovsdb:"policies" refs:"Logical_Router_Policy"`
		NAT           []string          `ovsdb:"nat" refs:"NAT"`
		LoadBalancers []string          `ovsdb:"load_balancer" refs:"Load_Balancer"`
	}

	routerPortRow struct {
		UUID        string            `ovsdb:"_uuid"`
		Name        string            `ovsdb:"name"`
		MAC         string            `ovsdb:"mac"`
		Networks    []string          `ovsdb:"networks"`
		Peer        *string           `ovsdb:"peer"`
		Options     map[string]string `ovsdb:"options"`
		ExternalIDs map[string]string `ovsdb:"external_ids"`
	}

	routeRow struct {
		UUID        string            `ovsdb:"_uuid"`
		Prefix      string            `ovsdb:"ip_prefix"`
		NextHop     string            `ovsdb:"nexthop"`
		OutputPort  *string           `ovsdb:"output_port"`
		RouteTable  string            `ovsdb:"route_table"`
		ExternalIDs map[string]string `ovsdb:"external_ids"`
	}

	policyRow struct {
		UUID        string            `ovsdb:"_uuid"`
		Priority    int               `ovsdb:"priority"`
		Match       string            `ovsdb:"match"`
		Action      string            `ovsdb:"action"`
		NextHops    []string          `ovsdb:"nexthops"`
		ExternalIDs map[string]string `ovsdb:"external_ids"`
	}

	natRow struct {
		UUID        string            `ovsdb:"_uuid"`
		Type        string            `ovsdb:"type"`
		ExternalIP  string            `ovsdb:"external_ip"`
		LogicalIP   string            `ovsdb:"logical_ip"`
		ExternalIDs map[string]string `ovsdb:"external_ids"`
	}

	switchRow struct {
		UUID        string            `ovsdb:"_uuid"`
		Name        string            `ovsdb:"name"`
		ExternalIDs map[string]string `ovsdb:"external_ids"`
		Ports       []string          `ovsdb:"ports" refs:"Logical_Switch_Port"`
	}

	switchPortRow struct {
		UUID        string            `ovsdb:"_uuid"`
		Name        string            `ovsdb:"name"`
		Type        string            `ovsdb:"type"`
		Addresses   []string          `ovsdb:"addresses"`
		Options     map[string]string `ovsdb:"options"`
		ExternalIDs map[string]string `ovsdb:"external_ids"`
	}

	balancerRow struct {
		UUID        string            `ovsdb:"_uuid"`
		Name        string            `ovsdb:"name"`
		Protocol    *string           `ovsdb:"protocol"`
		VIPs        map[string]string `ovsdb:"vips"`
		Options     map[string]string `ovsdb:"options"`
		ExternalIDs map[string]string `ovsdb:"external_ids"`
	}

	// staticMACRow has no external_ids: it is of this package if its port's name is.
	staticMACRow struct {
		UUID        string `ovsdb:"_uuid"`
		LogicalPort string `ovsdb:"logical_port"`
		IP          string `ovsdb:"ip"`
		MAC         string `ovsdb:"mac"`
	}

	globalRow struct {
		UUID string `ovsdb:"_uuid"`
		Name string `ovsdb:"name"`
	}
)

const (
	globalTable     = "NB_Global"
	routerTable     = "Logical_Router"
	routerPortTable = "Logical_Router_Port"
	routeTable      = "Logical_Router_Static_Route"
	policyTable     = "Logical_Router_Policy"
	natTable        = "NAT"
	switchTable     = "Logical_Switch"
	switchPortTable = "Logical_Switch_Port"
	balancerTable   = "Load_Balancer"
	staticMACTable  = "Static_MAC_Binding"
)

func tables() map[string]any {
	return map[string]any{
		globalTable: &globalRow{}, routerTable: &routerRow{}, routerPortTable: &routerPortRow{}, routeTable: &routeRow{},
		policyTable: &policyRow{}, natTable: &natRow{}, switchTable: &switchRow{}, switchPortTable: &switchPortRow{},
		balancerTable: &balancerRow{}, staticMACTable: &staticMACRow{},
	}
}

// where keeps away what is never looked at: of these tables the CNI has rows by the thousands, for pods, services
// and network policies.
func where() map[string][]ovsdb.Condition {
	own := []ovsdb.Condition{{
		Column: "external_ids", Function: "includes", Value: ovsdb.Map{GoMap: map[any]any{ownerKey: owner}},
	}}
	return map[string][]ovsdb.Condition{
		policyTable: own, natTable: own, switchTable: own, switchPortTable: own, balancerTable: own,
	}
}

// row is a pointer to one of the row structs above.
type row interface {
	// identity tells the rows of a table under one parent apart: what has another identity is another row.
	identity() string
	ids() map[string]string
}

func (r *routerRow) identity() string     { return r.Name }
func (r *routerPortRow) identity() string { return r.Name }
func (r *switchRow) identity() string     { return r.Name }
func (r *switchPortRow) identity() string { return r.Name }
func (r *balancerRow) identity() string   { return r.ExternalIDs[networkKey] + " " + r.Name }
func (r *staticMACRow) identity() string  { return r.LogicalPort + " " + r.IP }
func (r *natRow) identity() string        { return r.Type + " " + r.LogicalIP }
func (r *policyRow) identity() string     { return strconv.Itoa(r.Priority) + " " + r.Match }
func (r *routeRow) identity() string {
	return strings.Join([]string{r.Prefix, r.NextHop, value(r.OutputPort), r.RouteTable}, " ")
}

func (r *routerRow) ids() map[string]string     { return r.ExternalIDs }
func (r *routerPortRow) ids() map[string]string { return r.ExternalIDs }
func (r *switchRow) ids() map[string]string     { return r.ExternalIDs }
func (r *switchPortRow) ids() map[string]string { return r.ExternalIDs }
func (r *balancerRow) ids() map[string]string   { return r.ExternalIDs }
func (r *staticMACRow) ids() map[string]string  { return nil }
func (r *natRow) ids() map[string]string        { return r.ExternalIDs }
func (r *policyRow) ids() map[string]string     { return r.ExternalIDs }
func (r *routeRow) ids() map[string]string      { return r.ExternalIDs }

// value is what an optional column holds, or the zero value.
func value[T any](optional *T) T {
	if optional == nil {
		return *new(T)
	}
	return *optional
}
