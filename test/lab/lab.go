// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// ErrNotRoot is returned by New: namespaces need root.
var ErrNotRoot = errors.New("the lab needs root, for network namespaces")

// Options say what New makes. The zero value is a lab with a running API
// server in the default directory.
type Options struct {
	// Dir is the state directory, made if needed. A lab that is in there
	// is ended first. Unix sockets live below it, so it must be short:
	// some 50 bytes are fine.
	Dir string
	// Log gets one line per step that takes a while. It must be safe for
	// concurrent use, as testing.T.Logf is.
	Log func(format string, args ...any)
	// Users are known to the API server besides AdminUser.
	Users []User
	// NoAPIServer leaves the API server to a later StartAPIServer. The
	// kubeconfigs are valid from the beginning.
	NoAPIServer bool
	// OVS is the Open vSwitch that nodes run, the installed one when nil.
	OVS *OVSBuild
	// KernelDatapath has bridges use the kernel's Open vSwitch instead of the one in user space.
	KernelDatapath bool

	// ephemeral labs may be removed by anybody once this process is gone.
	ephemeral bool
}

// Lab is a running lab. Its methods may be called from several goroutines.
type Lab struct {
	state layout
	opts  Options
	log   func(string, ...any)
	users []User // AdminUser first
	ca    []byte
	port  int // the forwarder's, on 127.0.0.1
	api   namespace
	http  *http.Client // the administrator's

	// waiters owns one goroutine per started process.
	waiters sync.WaitGroup

	mu        sync.Mutex
	processes []*Process
	nodes     map[string]*Node
	addresses int // management addresses handed out
	zones     int // node ids handed out
	networks  int // network ids handed out
	wires     int // interface names handed out, see nextInterface

	apiMu     sync.Mutex // held while the API server is started or stopped
	etcd      *Process
	apiserver *Process

	closers []io.Closer // what runs inside this process, see own

	externalMu sync.Mutex // held while the shared external network is made
}

// New ends what an earlier lab left in the directory and makes a new one. It
// returns once the API server is ready; the context bounds all of it,
// including building kube-apiserver on a machine that has none yet. When New
// fails, nothing is left behind. The lab goes on until Close or Down: a
// process that ends without either leaves it up.
func New(ctx context.Context, opts Options) (*Lab, error) {
	if os.Geteuid() != 0 {
		return nil, ErrNotRoot
	}
	state, err := absDir(opts.Dir)
	if err != nil {
		return nil, err
	}
	l := &Lab{state: state, opts: opts, log: opts.Log, nodes: map[string]*Node{}}
	if l.log == nil {
		l.log = func(string, ...any) {}
	}
	if l.users, err = allUsers(opts.Users); err != nil {
		return nil, err
	}
	if err := checkTools(); err != nil {
		return nil, err
	}
	if err := Down(ctx, state.dir); err != nil {
		return nil, fmt.Errorf("clean up before a new lab: %w", err)
	}
	lk, err := lockDir(ctx, state.dir)
	if err != nil {
		return nil, err
	}
	defer lk.release()
	if left, err := os.ReadDir(state.dir); err != nil || len(left) > 0 {
		return nil, errors.Join(fmt.Errorf("make lab in %s: another one was made there just now", state.dir), err)
	}
	if err := l.setUp(ctx); err != nil {
		err = fmt.Errorf("make lab in %s: %w", state.dir, err)
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		return nil, errors.Join(err, state.clean(clean), l.settle(clean))
	}
	return l, nil
}

func (l *Lab) setUp(ctx context.Context) error {
	owner, err := identify(os.Getpid())
	if err != nil {
		return err
	}
	mark := marker{Prefix: l.state.prefix(), Owner: owner, Ephemeral: l.opts.ephemeral}
	if err := writeJSON(l.state.marker(), mark); err != nil {
		return err
	}
	if err := l.state.writeCerts(); err != nil {
		return err
	}
	if err := l.addAPINamespace(ctx); err != nil {
		return err
	}
	if err := l.startForwarder(ctx); err != nil {
		return err
	}
	mark.Port = l.port
	if err := writeJSON(l.state.marker(), mark); err != nil {
		return err
	}
	if err := l.writeUsers(); err != nil {
		return err
	}
	if l.http, err = rest.HTTPClientFor(l.RESTConfig()); err != nil {
		return fmt.Errorf("make API client: %w", err)
	}
	if l.opts.NoAPIServer {
		return nil
	}
	return l.StartAPIServer(ctx)
}

// Close ends the lab and everything in it, and removes its directory.
func (l *Lab) Close(ctx context.Context) error {
	l.http.CloseIdleConnections()
	return errors.Join(l.closeOwned(), Down(ctx, l.state.dir), l.settle(ctx))
}

// settle waits until the goroutines of all processes, which must have been
// ended, are done.
func (l *Lab) settle(ctx context.Context) error {
	l.mu.Lock()
	processes := slices.Clone(l.processes)
	l.mu.Unlock()
	for _, p := range processes {
		select {
		case <-p.ended:
		case <-ctx.Done():
			return fmt.Errorf("wait for %s to end: %w", p.Name, ctx.Err())
		}
	}
	l.waiters.Wait()
	return nil
}

// Dir is the lab's state directory.
func (l *Lab) Dir() string { return l.state.dir }

func allUsers(named []User) ([]User, error) {
	users := []User{{Name: AdminUser, Groups: []string{"system:masters"}}}
	for _, u := range named {
		if u.Name == "" || slices.ContainsFunc(users, func(o User) bool { return o.Name == u.Name }) {
			return nil, fmt.Errorf("user name %q is empty or taken", u.Name)
		}
		users = append(users, u)
	}
	for i := range users {
		if users[i].Token == "" {
			users[i].Token = newToken()
		}
	}
	return users, nil
}

// checkTools finds out early, and with all names, what is not installed.
func checkTools() error {
	var errs []error
	for _, tool := range []string{"ip", "ethtool", "etcd"} {
		if tool == "etcd" && os.Getenv(assetsVariable) != "" {
			continue
		}
		if _, err := lookPath(tool, baseEnv()); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
