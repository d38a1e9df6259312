// SPDX-License-Identifier: Apache-2.0

package representor

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
	"sigs.k8s.io/yaml"
)

// Map is an administrator's word on which representor belongs to which function of the host, for cards that do
// not say it themselves.
type Map struct {
	entries []mapEntry
}

// mapEntry is one entry of the file: a representor and either the MAC address or the function behind it.
type mapEntry struct {
	Representor string       `json:"representor"`
	MAC         string       `json:"mac"`
	Function    *mapFunction `json:"function"`

	where string // of the entry in the file, for messages
	mac   net.HardwareAddr
}

// mapFunction is as v1alpha1.HostFunction, with pfMAC and controllerNumber for those who need them.
type mapFunction struct {
	PFMAC            string  `json:"pfMAC"`
	ControllerNumber *uint32 `json:"controllerNumber"`
	PFID             *uint32 `json:"pfID"`
	VFID             *uint32 `json:"vfID"`
	SFID             *uint32 `json:"sfID"`

	function function
}

// LoadMap reads a representor map from a file.
func LoadMap(path string) (*Map, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("representor map: %w", err)
	}
	m, err := ParseMap(text)
	if err != nil {
		return nil, fmt.Errorf("representor map %s: %w", path, err)
	}
	return m, nil
}

// ParseMap reads a representor map: a YAML or JSON list of
//
//	representor: pf0vf3
//	mac: 00:00:5e:00:53:07
//
// or
//
//	representor: pf0vf3
//	function: {pfMAC: 00:00:5e:00:53:01, controllerNumber: 1, pfID: 0, vfID: 3}
//
// It is strict, because a mistake would lead a tenant's traffic elsewhere: all errors name the entry, counted from 1.
func ParseMap(text []byte) (*Map, error) {
	if strings.TrimSpace(string(text)) == "" {
		return nil, errors.New("it is empty; write [] for a map without entries")
	}
	list, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return nil, err
	}
	var raw []json.RawMessage
	if err := json.Unmarshal(list, &raw); err != nil {
		return nil, fmt.Errorf("it is no list of entries: %w", err)
	}
	entries := make([]mapEntry, len(raw))
	seen := map[string]string{}
	for i := range entries {
		e := &entries[i]
		e.where = fmt.Sprintf("entry %d", i+1)
		strict := json.NewDecoder(bytes.NewReader(raw[i]))
		strict.DisallowUnknownFields()
		if err := strict.Decode(e); err != nil {
			return nil, fmt.Errorf("%s: %w", e.where, err)
		}
		if e.Representor != "" {
			e.where = fmt.Sprintf("entry %d (%s)", i+1, e.Representor)
		}
		keys, err := e.check()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", e.where, err)
		}
		for _, key := range keys {
			if first, taken := seen[key]; taken {
				return nil, fmt.Errorf("%s: %s is named by %s too", e.where, key, first)
			}
			seen[key] = e.where
		}
	}
	return &Map{entries}, nil
}

// check completes an entry and gives the keys that no other entry may have.
func (e *mapEntry) check() (keys []string, err error) {
	switch {
	case e.Representor == "" || strings.ContainsAny(e.Representor, "/ \t\n"):
		return nil, fmt.Errorf("representor %q is no name of a network interface", e.Representor)
	case (e.MAC == "") == (e.Function == nil):
		return nil, errors.New("expected either mac or function")
	case e.MAC != "":
		if e.mac, err = parseMAC("mac", e.MAC); err != nil {
			return nil, err
		}
		return []string{"mac " + e.mac.String(), "the MAC address behind " + e.Representor}, nil
	}
	f, err := e.Function.check()
	if err != nil {
		return nil, err
	}
	e.Function.function = f
	return []string{f.String(), "the function behind " + e.Representor}, nil
}

func (m *mapFunction) check() (function, error) {
	f := function{controller: m.ControllerNumber}
	if m.PFMAC != "" {
		var err error
		if f.pfMAC, err = parseMAC("pfMAC", m.PFMAC); err != nil {
			return f, err
		}
	}
	switch {
	case m.PFID == nil:
		return f, errors.New("pfID is missing")
	case m.VFID != nil && m.SFID != nil:
		return f, errors.New("vfID and sfID exclude each other")
	}
	f.key = functionKey{kind: kindPF, pf: *m.PFID}
	if m.VFID != nil {
		f.key.kind, f.key.number = kindVF, *m.VFID
	}
	if m.SFID != nil {
		f.key.kind, f.key.number = kindSF, *m.SFID
	}
	return f, nil
}

func parseMAC(field, text string) (net.HardwareAddr, error) {
	mac, err := net.ParseMAC(text)
	if err != nil || !uplinkstate.UsableMAC(mac) {
		return nil, fmt.Errorf("%s %q is no MAC address of one Ethernet station", field, text)
	}
	return mac, nil
}
