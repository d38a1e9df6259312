// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// ErrNoLab is returned by ReadStatus when there is none in the directory.
var ErrNoLab = errors.New("no lab here")

// Status is what is recorded of a lab, and whether it is still there.
type Status struct {
	Dir string `json:"dir"`
	// Kubeconfig is the administrator's, valid outside the namespaces.
	Kubeconfig string            `json:"kubeconfig"`
	Server     string            `json:"server"`
	Processes  []ProcessStatus   `json:"processes"`  // by name
	Namespaces []NamespaceStatus `json:"namespaces"` // by name
	Zones      []ZoneStatus      `json:"zones"`      // by node
}

// ProcessStatus is one recorded process.
type ProcessStatus struct {
	Name  string `json:"name"`
	Pid   int    `json:"pid"`
	Alive bool   `json:"alive"`
	RSS   int64  `json:"rssBytes"` // 0 when dead
	Log   string `json:"log"`
}

// NamespaceStatus is one recorded namespace.
type NamespaceStatus struct {
	Name    string `json:"name"`
	NetNS   string `json:"netns"`
	Role    string `json:"role"` // "api", "node", "external" or "pod"
	Address string `json:"address,omitempty"`
	Alive   bool   `json:"alive"`

	// Env is what commands run there need besides the namespace.
	Env []string `json:"-"`
}

// ReadStatus reads the state of the lab in dir, the default directory when
// empty, whichever process made it.
func ReadStatus(dir string) (Status, error) {
	state, err := absDir(dir)
	if err != nil {
		return Status{}, err
	}
	mark, err := state.readMarker()
	if errors.Is(err, fs.ErrNotExist) {
		return Status{}, fmt.Errorf("%s: %w", state.dir, ErrNoLab)
	}
	if err != nil {
		return Status{}, err
	}
	s := Status{
		Dir:        state.dir,
		Kubeconfig: state.kubeconfig(),
		Server:     rootURL(mark.Port),
		Processes:  []ProcessStatus{},
		Namespaces: []NamespaceStatus{},
		Zones:      []ZoneStatus{},
	}
	records, err := state.listProcesses()
	if err != nil {
		return Status{}, err
	}
	for _, r := range records {
		p := ProcessStatus{Name: r.Name, Pid: r.ID.Pid, Alive: r.ID.alive(), Log: r.Log}
		if p.Alive {
			// It may end right now; then the memory is not known.
			p.RSS, _ = residentBytes(p.Pid)
		}
		s.Processes = append(s.Processes, p)
	}
	s.Zones = append(s.Zones, zones(state, s.Processes)...)
	spaces, err := state.listNamespaces()
	if err != nil {
		return Status{}, err
	}
	for _, ns := range spaces {
		s.Namespaces = append(s.Namespaces, NamespaceStatus{
			Name: ns.Name, NetNS: ns.NetNS, Role: ns.Role, Address: ns.Address,
			Alive: ns.exists(), Env: ns.Env,
		})
	}
	return s, nil
}

// Healthy says whether everything recorded is alive, and returns an error
// that names what is not.
func (s Status) Healthy() error {
	var errs []error
	for _, p := range s.Processes {
		if !p.Alive {
			errs = append(errs, fmt.Errorf("process %s (pid %d) is dead, its log is %s", p.Name, p.Pid, p.Log))
		}
	}
	for _, ns := range s.Namespaces {
		if !ns.Alive {
			errs = append(errs, fmt.Errorf("namespace %s is gone", ns.NetNS))
		}
	}
	if _, err := os.Stat(s.Kubeconfig); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
