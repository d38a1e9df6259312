// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"time"
)

// The API server's place on the management network, 198.18.0.0/24 of the
// range that RFC 2544 sets aside for benchmarks.
var (
	managementNet = netip.MustParsePrefix("198.18.0.0/24")
	apiAddr       = netip.MustParseAddr("198.18.0.1")
)

const (
	apiPort = 6443
	// managementBridge joins the nodes' management interfaces.
	managementBridge = "mgmt0"
	// bridgeMAC is the address of the lab's bridges, each the only one in its network. Without one of its own a bridge takes
	// the lowest of its ports', so that a port more could change it, and nobody would reach it until neighbours ask again.
	bridgeMAC   = "02:62:72:00:00:01"
	etcdClients = "http://127.0.0.1:2379"
	etcdPeers   = "http://127.0.0.1:2380"
	// readyDeadline bounds the wait for /readyz. Four seconds are usual, in a virtual machine without KVM a minute.
	readyDeadline = 5 * time.Minute
)

func apiHostPort() string { return netip.AddrPortFrom(apiAddr, apiPort).String() }

// addAPINamespace makes the namespace of etcd and the API server, with the
// bridge that all management interfaces join.
func (l *Lab) addAPINamespace(ctx context.Context) error {
	l.api = namespace{
		Name:    "api",
		NetNS:   l.state.prefix() + "-api",
		Address: apiAddr.String(),
		Role:    "api",
	}
	if err := l.addNamespace(ctx, l.api); err != nil {
		return err
	}
	return ipAll(ctx, l.api.NetNS,
		"link add "+managementBridge+" address "+bridgeMAC+" type bridge",
		fmt.Sprintf("addr add %s/%d dev %s", apiAddr, managementNet.Bits(), managementBridge),
		"link set "+managementBridge+" up")
}

// StartAPIServer starts the API server, and etcd unless it runs already, and
// waits until the server says that it is ready. It fails when the server is
// running.
func (l *Lab) StartAPIServer(ctx context.Context) error {
	bin, err := APIServerBinary(ctx, l.log)
	if err != nil {
		return err
	}
	l.apiMu.Lock()
	defer l.apiMu.Unlock()
	begin := time.Now()
	if l.etcd == nil || !l.etcd.Running() {
		etcd, err := etcdBinary()
		if err != nil {
			return err
		}
		if l.etcd, err = l.startInfra(ctx, "api.etcd", etcdArgs(etcd, l.state)); err != nil {
			return err
		}
	}
	server, err := l.startInfra(ctx, "api.kube-apiserver", apiServerArgs(bin, l.state))
	if err != nil {
		return err
	}
	l.apiserver = server
	if err := l.waitReady(ctx, l.etcd, server); err != nil {
		return err
	}
	l.log("API server is ready after %s", time.Since(begin).Round(100*time.Millisecond))
	return nil
}

// StopAPIServer ends the API server at once. etcd goes on, so that what is
// stored is there again after StartAPIServer.
func (l *Lab) StopAPIServer(ctx context.Context) error {
	l.apiMu.Lock()
	defer l.apiMu.Unlock()
	if l.apiserver == nil {
		return nil
	}
	// Open watches would hold up an orderly end for as long as they last.
	// Everything that was accepted is in etcd already.
	if err := l.apiserver.Kill(ctx); err != nil {
		return err
	}
	l.http.CloseIdleConnections()
	return nil
}

func (l *Lab) startInfra(ctx context.Context, name string, argv []string) (*Process, error) {
	return l.start(ctx, processSpec{name: name, netns: l.api.NetNS, argv: argv, env: baseEnv(), infra: true})
}

func (l *Lab) waitReady(ctx context.Context, needed ...*Process) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	return Eventually(ctx, readyDeadline, func(ctx context.Context) error {
		for _, p := range needed {
			if !p.Running() {
				err := fmt.Errorf("%s ended (%w); the end of its log:\n%s", p.Name, p.Wait(ctx), p.Log(2000))
				cancel(errors.New("it cannot become ready"))
				return err
			}
		}
		if err := l.ready(ctx); err != nil {
			return fmt.Errorf("API server is not ready: %w", err)
		}
		return nil
	})
}

// ready asks the API server once, through the forwarder.
func (l *Lab) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, l.rootURL()+"/readyz", nil)
	if err != nil {
		return err
	}
	resp, err := l.http.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 4096))
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", resp.Status, strings.TrimSpace(string(body)))
	}
	return nil
}

func etcdArgs(bin string, d layout) []string {
	return []string{
		bin,
		"--data-dir=" + d.apiFile("etcd"),
		"--listen-client-urls=" + etcdClients,
		"--advertise-client-urls=" + etcdClients,
		"--listen-peer-urls=" + etcdPeers,
		"--initial-advertise-peer-urls=" + etcdPeers,
		"--initial-cluster=default=" + etcdPeers,
		// The data need not survive the machine.
		"--unsafe-no-fsync",
	}
}

func apiServerArgs(bin string, d layout) []string {
	return []string{
		bin,
		"--etcd-servers=" + etcdClients,
		"--bind-address=" + apiAddr.String(),
		"--advertise-address=" + apiAddr.String(),
		fmt.Sprintf("--secure-port=%d", apiPort),
		"--cert-dir=" + d.api(),
		"--tls-cert-file=" + d.apiFile("tls.crt"),
		"--tls-private-key-file=" + d.apiFile("tls.key"),
		"--token-auth-file=" + d.apiFile("tokens.csv"),
		"--client-ca-file=" + d.apiFile("ca.crt"),
		"--authorization-mode=RBAC",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + d.apiFile("sa.key"),
		"--service-account-signing-key-file=" + d.apiFile("sa.key"),
		"--service-cluster-ip-range=10.96.0.0/16,fd00:10:96::/112",
		// Without a controller manager no namespace has the account that
		// this plugin gives to every pod.
		"--disable-admission-plugins=ServiceAccount",
		"--allow-privileged=true",
		"--endpoint-reconciler-type=none",
	}
}
