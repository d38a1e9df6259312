// SPDX-License-Identifier: Apache-2.0

package ovsdb

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ovn-uplink/ovn-uplink/dpu-agent/ovsdb/ovsdbtest"
)

// No reader ever sees half of a transaction.
func TestContentIsConsistent(t *testing.T) {
	server := ovsdbtest.Start(t)
	cfg := config(server.Endpoint())
	cfg.ProbeInterval = time.Minute // a busy machine may answer late
	c := run(t, cfg)
	eventually(t, "connected", c.Connected)
	c.mu.Lock()
	s := c.session
	c.mu.Unlock()

	stop := make(chan struct{})
	var reading sync.WaitGroup
	for range 2 {
		reading.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				content, err := s.content()
				if err != nil {
					t.Error(err)
					return
				}
				ports := Rows[portRow](content, "Port")
				for _, bridge := range Rows[bridgeRow](content, "Bridge") {
					for _, uuid := range bridge.Ports {
						if ports[uuid] == nil {
							t.Errorf("bridge %s has a port that is not in the same content", bridge.Name)
						}
					}
				}
			}
		})
	}
	for range 30 {
		server.Vsctl("add-br", "br-blue", "--", "add-port", "br-blue", "p0", "--", "add-port", "br-blue", "p1")
		server.Vsctl("del-br", "br-blue")
	}
	close(stop)
	reading.Wait()
}

// Columns that hold at most one value are told as a whole, others as what changed; all must come out right.
func TestUpdatesOfEveryKind(t *testing.T) {
	server := ovsdbtest.Start(t)
	server.Vsctl("add-br", "br-blue")
	c := run(t, config(server.Endpoint()))
	eventually(t, "br-blue", sees(c, "br-blue"))
	shown := func() string {
		content, _ := c.Content()
		var parts []string
		for _, port := range Rows[portRow](content, "Port") {
			parts = append(parts, fmt.Sprintf("%s tag=%v", port.Name, deref(port.Tag)))
		}
		for _, bridge := range Rows[bridgeRow](content, "Bridge") {
			parts = append(parts, fmt.Sprintf("ports=%d", len(bridge.Ports)))
		}
		for _, iface := range Rows[interfaceRow](content, "Interface") {
			parts = append(parts, fmt.Sprintf("error=%v", deref(iface.Error)))
		}
		for _, root := range Rows[rootRow](content, "Open_vSwitch") {
			parts = append(parts, fmt.Sprint(root.ExternalIDs))
		}
		slices.Sort(parts)
		return strings.Join(parts, " ")
	}
	for _, step := range []struct{ command, want string }{
		{"set Port br-blue tag=7", "br-blue tag=7 error=<nil> map[] ports=1"},
		{"set Port br-blue tag=8", "br-blue tag=8 error=<nil> map[] ports=1"},
		{"set Interface br-blue error=x", "br-blue tag=8 error=x map[] ports=1"},
		{"clear Port br-blue tag -- clear Interface br-blue error", "br-blue tag=<nil> error=<nil> map[] ports=1"},
		{"set Open_vSwitch . external_ids:a=1 external_ids:b=2", "br-blue tag=<nil> error=<nil> map[a:1 b:2] ports=1"},
		{"set Open_vSwitch . external_ids:a=3 -- remove Open_vSwitch . external_ids b", "br-blue tag=<nil> error=<nil> map[a:3] ports=1"},
		{"add-port br-blue p0 -- add-port br-blue p1", "br-blue tag=<nil> error=<nil> error=<nil> error=<nil> map[a:3] p0 tag=<nil> p1 tag=<nil> ports=3"},
		{"del-port br-blue p0", "br-blue tag=<nil> error=<nil> error=<nil> map[a:3] p1 tag=<nil> ports=2"},
		{"add-port br-blue p0 -- del-port br-blue p1", "br-blue tag=<nil> error=<nil> error=<nil> map[a:3] p0 tag=<nil> ports=2"},
	} {
		server.Vsctl(strings.Fields(step.command)...)
		eventually(t, step.command+": "+step.want, func() bool { return shown() == step.want })
	}
}

func deref[T any](p *T) any {
	if p == nil {
		return nil
	}
	return *p
}
