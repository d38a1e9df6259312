// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"cmp"
	"fmt"
	"math"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/ovn-uplink/ovn-uplink/dpu-agent/ovn"
	"github.com/ovn-uplink/ovn-uplink/dpu-agent/service"
	"github.com/ovn-uplink/ovn-uplink/dpu-agent/vrf"
	"github.com/ovn-uplink/ovn-uplink/shared/agent"
	"github.com/spf13/pflag"
)

// The values of --endpoint-source.
const (
	mirrored = "mirrored"
	plain    = "plain"
)

// Config is what the role needs to know.
type Config struct {
	// Northbound is where the northbound database of OVN listens, as in ovsdb(7).
	Northbound string
	// Ranges are the addresses inside OVN.
	Ranges ovn.Ranges
	// OVSRunDir is where the sockets of Open vSwitch are.
	OVSRunDir string
	// Zones are the first and last conntrack zone that bridges may use.
	Zones [2]uint16
	// Dynamic is true where a network is active only on nodes that have a pod of it (Dynamic UDN).
	Dynamic bool
	// InactiveGrace is how long a network's gateway stays where its last pod is gone, DeletionGrace how long that of an
	// Uplink whose state was deleted.
	InactiveGrace, DeletionGrace time.Duration
	// EndpointSource says which EndpointSlices have the endpoints of a network.
	EndpointSource service.Source
	// VRF is for the VRFs that interfaces are put into.
	VRF vrf.Config
	// ImportGrace is how long routes that BGP taught stay when all of them went at once.
	ImportGrace time.Duration
	// Resync is how often everything is looked at although no event came.
	Resync    time.Duration
	Component string
}

// Flags are the flags of a Config, as text until they are parsed.
type Flags struct {
	config                     Config
	transit, link, serviceSNAT []string
	serviceCIDRs, bypass       []string
	zones, endpoints, tables   string
}

// AddFlags binds the fields to flags.
func (f *Flags) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&f.config.Northbound, "ovn-nb-db", defaultNorthbound(), "`endpoint` of the northbound database of OVN: unix:PATH or tcp:HOST:PORT")
	flags.StringSliceVar(&f.transit, "transit-subnets", []string{"100.91.0.0/16", "fd91::/64"}, "`subnets` between the edge router and the networks' gateway routers, one per family; they never leave the node")
	flags.StringSliceVar(&f.link, "link-subnets", []string{"100.92.0.0/30", "fd92::/126"}, "`subnets` between a network's router and its gateway router, one per family, the same in every network")
	flags.StringSliceVar(&f.serviceSNAT, "service-snat-subnets", []string{"100.93.0.0/16", "fd93::/64"}, "`subnets` of the addresses that service traffic has towards pods, one per family; each node has one address")
	flags.StringSliceVar(&f.serviceCIDRs, "service-cidrs", nil, "`subnets` of the cluster's services; default: what the API server has as ServiceCIDR")
	flags.StringSliceVar(&f.bypass, "bypass-cidrs", nil, "`subnets` that pods reach by the CNI and not by the Uplink, for example that of the nodes")
	flags.StringVar(&f.config.OVSRunDir, "ovs-run-dir", defaultRunDir(), "`directory` with the sockets of Open vSwitch")
	flags.StringVar(&f.zones, "ct-zones", "64200-64299", "conntrack `zones` for the bridges, one each: FIRST-LAST")
	flags.BoolVar(&f.config.Dynamic, "dynamic-udn", false, "a network is active only on nodes with a pod of its namespaces (Dynamic UDN), not on all")
	flags.DurationVar(&f.config.InactiveGrace, "inactive-grace", 2*time.Minute, "how long a network's gateway stays on a node after its last pod is gone, with --dynamic-udn")
	flags.DurationVar(&f.config.DeletionGrace, "deletion-grace", 30*time.Second, "how long an Uplink's gateway stays after its UplinkState was deleted by accident")
	flags.StringVar(&f.config.VRF.Journal, "state-dir", "/var/lib/ovn-uplink", "`directory` that remembers, over restarts, what was moved into VRFs")
	flags.StringVar(&f.config.VRF.Sysctls, "sysctl-root", "/proc/sys/net", "`directory` of the kernel's settings for the network, which must be writable for VRFs; in a container another one than the default")
	flags.StringVar(&f.tables, "vrf-table-range", "500-899", "routing `tables` for the VRFs that the agent makes: FIRST-LAST. OVN-Kubernetes deletes VRFs that it does not know with tables from 1000 on")
	flags.DurationVar(&f.config.ImportGrace, "import-grace", 10*time.Second, "how long routes that BGP taught stay when all of them went at once, as when the routing daemon is restarted")
	flags.StringVar(&f.endpoints, "endpoint-source", mirrored, "which EndpointSlices have the pods' addresses in their network: mirrored (OVN-Kubernetes copies them) or plain")
}

// Config parses the flags. An error is a usage error.
func (f *Flags) Config() (Config, error) {
	c := f.config
	var err error
	for _, field := range []struct {
		flag   string
		texts  []string
		to     *[]netip.Prefix
		single bool
	}{
		{"transit-subnets", f.transit, &c.Ranges.Transit, true},
		{"link-subnets", f.link, &c.Ranges.Link, true},
		{"service-snat-subnets", f.serviceSNAT, &c.Ranges.ServiceSNAT, true},
		{"service-cidrs", f.serviceCIDRs, &c.Ranges.ServiceCIDRs, false},
		{"bypass-cidrs", f.bypass, &c.Ranges.Bypass, false},
	} {
		if *field.to, err = parsePrefixes(field.texts, field.single); err != nil {
			return c, agent.Usagef("--%s: %v", field.flag, err)
		}
	}
	if c.Zones, err = parseZones(f.zones); err != nil {
		return c, agent.Usagef("--ct-zones: %v", err)
	}
	if c.VRF.Tables, err = parseTables(f.tables); err != nil {
		return c, agent.Usagef("--vrf-table-range: %v", err)
	}
	switch f.endpoints {
	case mirrored:
		c.EndpointSource = service.Mirrored
	case plain:
		c.EndpointSource = service.Plain
	default:
		return c, agent.Usagef("--endpoint-source %q: must be %s or %s", f.endpoints, mirrored, plain)
	}
	if err := c.Ranges.Validate(); err != nil {
		return c, &agent.UsageError{Err: err}
	}
	return c, nil
}

func parsePrefixes(texts []string, single bool) ([]netip.Prefix, error) {
	var prefixes []netip.Prefix
	families := map[bool]bool{}
	for _, text := range texts {
		p, err := netip.ParsePrefix(strings.TrimSpace(text))
		if err != nil {
			return nil, fmt.Errorf("%q is no subnet", text)
		}
		if p != p.Masked() {
			return nil, fmt.Errorf("%s has host bits; expected %s", p, p.Masked())
		}
		if single && families[p.Addr().Is6()] {
			return nil, fmt.Errorf("%s is the second of its family", p)
		}
		families[p.Addr().Is6()] = true
		prefixes = append(prefixes, p)
	}
	return prefixes, nil
}

func parseZones(text string) (zones [2]uint16, err error) {
	first, last, err := parseRange(text, math.MaxUint16)
	if err == nil && last <= first {
		err = fmt.Errorf("%q: has to have room for two zones at least", text)
	}
	return [2]uint16{uint16(first), uint16(last)}, err
}

// parseTables reads a range of routing tables without those that have a meaning, 253 to 255 (ip-route(8)).
func parseTables(text string) (vrf.TableRange, error) {
	first, last, err := parseRange(text, math.MaxUint32)
	if err == nil && (last < first || first <= 255 && last >= 253) {
		err = fmt.Errorf("%q: has to be a range of tables without 253 to 255", text)
	}
	return vrf.TableRange{First: uint32(first), Last: uint32(last)}, err
}

// parseRange reads FIRST-LAST.
func parseRange(text string, limit uint64) (first, last uint64, err error) {
	before, after, found := strings.Cut(text, "-")
	first, errFirst := strconv.ParseUint(before, 10, 64)
	last, errLast := strconv.ParseUint(after, 10, 64)
	if !found || errFirst != nil || errLast != nil || min(first, last) == 0 || max(first, last) > limit {
		return 0, 0, fmt.Errorf("%q: must be FIRST-LAST, each from 1 to %d", text, limit)
	}
	return first, last, nil
}

// defaultNorthbound is where the tools of OVN look (ovn-nbctl(8), "--db").
func defaultNorthbound() string {
	return cmp.Or(os.Getenv("OVN_NB_DB"), "unix:"+filepath.Join(cmp.Or(os.Getenv("OVN_RUNDIR"), "/var/run/ovn"), "ovnnb_db.sock"))
}

func defaultRunDir() string { return cmp.Or(os.Getenv("OVS_RUNDIR"), "/var/run/openvswitch") }
