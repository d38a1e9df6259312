// SPDX-License-Identifier: Apache-2.0

package ovsdb

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/ovn-uplink/ovn-uplink/dpu-agent/ovsdb/ovsdbtest"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// isolate moves the test to a network namespace of its own that has only lo, and in it what the test starts and
// dials. The thread ends with the test.
func isolate(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root, for a network namespace")
	}
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Fatal(err)
	}
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		t.Fatal(err)
	}
	if err := netlink.LinkSetUp(lo); err != nil {
		t.Fatal(err)
	}
}

func TestEndpoints(t *testing.T) {
	for name, endpoint := range map[string]string{
		"tcp":                 "tcp:127.0.0.1:6640",
		"tcp over IPv6":       "tcp:[::1]:6641",
		"ssl":                 "ssl:127.0.0.1:6642",
		"the second of two":   "unix:/none,ssl:127.0.0.1:6642",
		"nobody at the first": "tcp:127.0.0.1:1,tcp:127.0.0.1:6640",
	} {
		t.Run(name, func(t *testing.T) {
			isolate(t)
			server := ovsdbtest.Start(t)
			client, args := pki(t)
			server.Kill()
			server.Args = append(args, "--remote=ptcp:6640:127.0.0.1", "--remote=ptcp:6641:[::1]", "--remote=pssl:6642:127.0.0.1")
			server.Restart()

			cfg := config(endpoint)
			cfg.TLS = client
			c, err := New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			// Not in a goroutine: only this thread is in the namespace.
			var s *session
			eventually(t, "a connection", func() bool {
				s, err = open(t.Context(), c.cfg)
				return err == nil
			})
			defer s.close()
			if err := c.update(s); err != nil || len(c.content.tables["Open_vSwitch"]) != 1 {
				t.Errorf("content %v, error %v", c.content, err)
			}
		})
	}
}

func TestTCPServerThatNeverAnswers(t *testing.T) {
	isolate(t)
	listener, err := net.Listen("tcp", "127.0.0.1:6640")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	cfg := config("tcp:127.0.0.1:6640")
	cfg.Timeout = 300 * time.Millisecond
	started := time.Now()
	if s, err := open(t.Context(), cfg); err == nil || time.Since(started) > 3*time.Second {
		t.Errorf("after %s: session %v, error %v", time.Since(started), s, err)
	}
}

// pki makes a CA and a certificate that both ends use, as the client's configuration and the server's arguments.
func pki(t *testing.T) (client *tls.Config, serverArgs []string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	private := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
	dir := t.TempDir()
	for name, text := range map[string][]byte{"cert.pem": certificate, "key.pem": private} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pair, err := tls.X509KeyPair(certificate, private)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(certificate)
	return &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: roots, MinVersion: tls.VersionTLS12},
		[]string{"--certificate=" + filepath.Join(dir, "cert.pem"), "--private-key=" + filepath.Join(dir, "key.pem"), "--ca-cert=" + filepath.Join(dir, "cert.pem")}
}
