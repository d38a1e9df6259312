// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"time"
)

// certLife is how long the lab's certificates are valid.
const certLife = 365 * 24 * time.Hour

// writeCerts makes the files that the API server needs: ca.crt, tls.crt,
// tls.key, and sa.key with which ServiceAccount tokens are signed; and ca.key,
// with which the lab signs client certificates.
func (d layout) writeCerts() error {
	caKey, err := newKey()
	if err != nil {
		return err
	}
	now := time.Now()
	ca := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "ovn-uplink lab"},
		NotBefore:             now.Add(-time.Hour),
		NotAfter:              now.Add(certLife),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	caDER, err := x509.CreateCertificate(rand.Reader, ca, ca, caKey.Public(), caKey)
	if err != nil {
		return fmt.Errorf("make lab CA: %w", err)
	}
	key, err := newKey()
	if err != nil {
		return err
	}
	serving := &x509.Certificate{
		SerialNumber: big.NewInt(2),
		Subject:      pkix.Name{CommonName: "kube-apiserver"},
		DNSNames:     []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"},
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1), apiAddr.AsSlice(), net.IPv4(10, 96, 0, 1)},
		NotBefore:    ca.NotBefore,
		NotAfter:     ca.NotAfter,
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, serving, ca, key.Public(), caKey)
	if err != nil {
		return fmt.Errorf("make serving certificate: %w", err)
	}
	saKey, err := newKey()
	if err != nil {
		return err
	}
	if err := d.writePEM("ca.crt", "CERTIFICATE", caDER); err != nil {
		return err
	}
	if err := d.writeKey("ca.key", caKey); err != nil {
		return err
	}
	if err := d.writePEM("tls.crt", "CERTIFICATE", der); err != nil {
		return err
	}
	if err := d.writeKey("tls.key", key); err != nil {
		return err
	}
	return d.writeKey("sa.key", saKey)
}

func (d layout) writeKey(name string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return fmt.Errorf("encode %s: %w", name, err)
	}
	return d.writePEM(name, "EC PRIVATE KEY", der)
}

func (d layout) writePEM(name, kind string, der []byte) error {
	return writeFile(d.apiFile(name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
}

func newKey() (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make key: %w", err)
	}
	return key, nil
}

// newToken returns a bearer token of 128 random bits.
func newToken() string {
	raw := make([]byte, 16)
	_, _ = rand.Read(raw) // never fails, see crypto/rand
	return hex.EncodeToString(raw)
}
