// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"strconv"
	"strings"
)

const northbound = "OVN_Northbound"

// The external_ids by which OVN-Kubernetes knows its rows.
const (
	networkKey  = "k8s.ovn.org/network"
	topologyKey = "k8s.ovn.org/topology"
	roleKey     = "k8s.ovn.org/role"
	nodeKey     = "k8s.ovn.org/node"
	nadKey      = "k8s.ovn.org/nad"
	zoneNodeKey = "ic-node"
)

// switchTunnelKey and routerTunnelKey are the first of the datapath tunnel
// keys that zones share; a network adds its id.
const (
	switchTunnelKey = 16711683
	routerTunnelKey = switchTunnelKey + 4096
)

// datapath is a router or switch that a builder is filling.
type datapath struct {
	table                        string
	row                          columns
	ports, routes, policies, nat []uuidRef
}

// builder collects the rows of one network in one zone.
type builder struct {
	*transaction
	n         *Network
	z         *Zone
	datapaths []*datapath
	remotes   map[string]*Zone // the ports of type remote
}

func (n *Network) builder(z *Zone) *builder {
	return &builder{transaction: &transaction{database: northbound}, n: n, z: z, remotes: map[string]*Zone{}}
}

// ids are the external_ids of the network's routers and switches.
func (b *builder) ids(more ...string) map[string]string {
	ids := map[string]string{
		networkKey:  b.n.Name,
		topologyKey: strings.ToLower(b.n.Spec.Topology),
		roleKey:     "primary",
	}
	for i := 0; i+1 < len(more); i += 2 {
		ids[more[i]] = more[i+1]
	}
	return ids
}

// rowIDs are the external_ids of a route or policy.
func (b *builder) rowIDs(more ...string) map[string]string {
	ids := b.ids(more...)
	delete(ids, roleKey)
	return ids
}

func (b *builder) router(name string, options map[string]string, ids map[string]string) *datapath {
	d := &datapath{table: "Logical_Router", row: columns{"name": name, "options": options, "external_ids": ids}}
	b.datapaths = append(b.datapaths, d)
	return d
}

func (b *builder) lswitch(name string, config map[string]string) *datapath {
	d := &datapath{table: "Logical_Switch", row: columns{"name": name, "other_config": config, "external_ids": b.ids()}}
	b.datapaths = append(b.datapaths, d)
	return d
}

// finish inserts the routers and switches with what hangs on them.
func (b *builder) finish() {
	for _, d := range b.datapaths {
		d.row["ports"] = d.ports
		if d.table == "Logical_Router" {
			d.row["static_routes"], d.row["policies"], d.row["nat"] = d.routes, d.policies, d.nat
		}
		b.insert(d.table, d.row)
	}
}

// write carries the changes out in the zone.
func (b *builder) write(ctx context.Context) error {
	if err := b.commit(ctx, b.z.Node.OVS, b.z.NB()); err != nil {
		return err
	}
	return b.z.bindRemote(ctx, b.remotes)
}

// routerPort adds a port to a router. Values in more win.
func (b *builder) routerPort(r *datapath, name string, networks []netip.Prefix, more columns) {
	row := columns{"name": name, "mac": addressMAC(networks[0].Addr()), "networks": texts(networks), "external_ids": b.ids()}
	maps.Copy(row, more)
	r.ports = append(r.ports, b.insert("Logical_Router_Port", row))
}

// switchPort adds a port to a switch.
func (b *builder) switchPort(s *datapath, name, kind string, addresses []string, options map[string]string, ids ...string) {
	s.ports = append(s.ports, b.insert("Logical_Switch_Port", columns{
		"name": name, "type": kind, "addresses": addresses, "options": options, "external_ids": b.ids(ids...),
	}))
}

// link joins a router and a switch by a port on each.
func (b *builder) link(r *datapath, routerPort string, networks []netip.Prefix, s *datapath, switchPort string, more columns) {
	b.routerPort(r, routerPort, networks, more)
	b.switchPort(s, switchPort, "router", []string{"router"}, map[string]string{"router-port": routerPort})
}

// here is the gateway chassis of a distributed router's port.
func (b *builder) here(port string) []uuidRef {
	return []uuidRef{b.insert("Gateway_Chassis", columns{
		"name": port + "-" + b.z.Chassis, "chassis_name": b.z.Chassis, "priority": 1,
	})}
}

func (b *builder) route(r *datapath, prefix fmt.Stringer, hop netip.Addr, ids map[string]string, more columns) {
	row := columns{"ip_prefix": prefix.String(), "nexthop": hop.String(), "external_ids": ids}
	maps.Copy(row, more)
	r.routes = append(r.routes, b.insert("Logical_Router_Static_Route", row))
}

func (b *builder) snat(r *datapath, external netip.Addr, logical netip.Prefix, more columns) {
	row := columns{
		"type": "snat", "external_ip": external.String(), "logical_ip": logical.String(),
		"external_ids": b.rowIDs(), "options": map[string]string{"stateless": "false"},
	}
	maps.Copy(row, more)
	r.nat = append(r.nat, b.insert("NAT", row))
}

// localTraffic is what pods of the node reach by the management port: the
// node's own addresses by policies, the service of the API server by routes.
func (b *builder) localTraffic(r *datapath, inport string) {
	gatewayMasq, managementMasq := b.n.masquerade()
	nodes := addresses(b.n.outer(b.z))
	for i, subnet := range b.n.NodeSubnets(b.z) {
		management := after(subnet.Addr(), 2)
		family := "ip4"
		service := serviceAddresses[0]
		if subnet.Addr().Is6() {
			family, service = "ip6", serviceAddresses[1]
		}
		for _, dst := range []netip.Addr{nodes[i], gatewayMasq[i]} {
			r.policies = append(r.policies, b.insert("Logical_Router_Policy", columns{
				"priority":     1004,
				"match":        fmt.Sprintf(`inport == "%s" && %s.dst == %s /* %s */`, inport, family, dst, b.n.Switch(b.z)),
				"action":       "reroute",
				"nexthops":     []string{management.String()},
				"external_ids": b.rowIDs(),
			}))
		}
		b.route(r, service, management, b.rowIDs(), nil)
		if b.z.schema.has("NAT", "match") && b.distributed() {
			b.snat(r, managementMasq[i], subnet, columns{
				"logical_port": inport,
				"match":        "eth.dst == " + addressMAC(after(b.n.NodeSubnets(b.z)[0].Addr(), 2)),
			})
		}
	}
}

// distributed says whether the pods' first router is on every chassis.
func (b *builder) distributed() bool { return b.n.Router(b.z) != b.gatewayName() }

func (b *builder) gatewayName() string { return "GR_" + b.n.Prefix + b.z.Name }

// managementPort is the switch's port of the node itself.
func (b *builder) managementPort(s *datapath, options map[string]string) {
	subnets := b.n.NodeSubnets(b.z)
	management := addresses(offset(subnets, 2))
	b.switchPort(s, "k8s-"+b.n.Prefix+b.z.Name, "",
		[]string{addressMAC(management[0]) + " " + strings.Join(texts(management), " ")}, options)
}

// gateway makes the node's gateway router and its outer side. The localnet
// port has a patch port only if the node's mappings have its bridge.
func (b *builder) gateway(forceSNAT string) *datapath {
	p, node := b.n.Prefix, b.z.Name
	gr := b.router(b.gatewayName(), map[string]string{
		"always_learn_from_arp_request": "false",
		"dynamic_neigh_routers":         "true",
		"chassis":                       b.z.Chassis,
		"lb_force_snat_ip":              forceSNAT,
		"mac_binding_age_threshold":     "300",
	}, b.ids("physical_ip", b.z.Node.Address.String(), "physical_ips", strings.Join(texts(addresses(b.n.outer(b.z))), ",")))
	ext := b.lswitch("ext_"+p+node, nil)
	outer := b.n.outer(b.z)
	masquerade, _ := b.n.masquerade()
	all := outer
	for i, m := range b.n.pick(masqueradeSubnets) {
		all = append(all, netip.PrefixFrom(masquerade[i], m.Bits()))
	}
	port := "rtoe-" + b.gatewayName()
	b.link(gr, port, all, ext, "etor-"+b.gatewayName(), nil)
	b.switchPort(ext, "br-ex_"+p+node, "localnet", []string{"unknown"}, map[string]string{"network_name": "physnet"})
	for i, o := range outer {
		everything := netip.PrefixFrom(netip.IPv4Unspecified(), 0)
		if o.Addr().Is6() {
			everything = netip.PrefixFrom(netip.IPv6Unspecified(), 0)
		}
		b.route(gr, everything, after(o.Masked().Addr(), 1), b.rowIDs(), columns{"output_port": []string{port}})
		b.snat(gr, masquerade[i], b.n.NodeSubnets(b.z)[i], nil)
	}
	return gr
}

// transitConfig is the other_config of a switch that zones share.
func transitConfig(name string, id int) map[string]string {
	return map[string]string{
		"interconn-ts":             name,
		"requested-tnl-key":        strconv.Itoa(switchTunnelKey + id),
		"mcast_snoop":              "true",
		"mcast_querier":            "false",
		"mcast_flood_unregistered": "true",
	}
}

func hostPrefix(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }
