// SPDX-License-Identifier: Apache-2.0

package packages

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ovn-uplink/ovn-uplink/test/lab"
	"github.com/ovn-uplink/ovn-uplink/test/manifests"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// enrolment is a cluster and a card's directory.
type enrolment struct {
	*lab.Lab
	t   *testing.T
	dir string
	env []string // with kubectl in PATH
	out strings.Builder
}

func newEnrolment(t *testing.T) *enrolment {
	t.Helper()
	e := &enrolment{Lab: lab.ForTest(t, lab.Options{}), t: t, dir: filepath.Join(t.TempDir(), "card")}
	must(t, manifests.Install(t.Context(), e.Lab, repository))
	must(t, e.ApplyFile(t.Context(), filepath.Join(repository, "deploy/dpu/rbac-renewal.yaml")))
	kubectl, err := lab.KubectlBinary(t.Context(), t.Logf)
	must(t, err)
	e.env = []string{"PATH=" + filepath.Dir(kubectl) + ":" + os.Getenv("PATH")}
	return e
}

// run runs the script and returns what it printed and its exit code.
func (e *enrolment) run(args ...string) (string, int) {
	e.t.Helper()
	out, err := scriptWith(e.env, "hack/bluefield/enroll-dpu.sh", append(args, "--dir", e.dir)...)
	e.out.WriteString(out)
	if err == nil {
		return out, 0
	}
	exit, ok := err.(*exec.ExitError) //nolint:errorlint // as exec returns it
	if !ok {
		e.t.Fatal(err)
	}
	return out, exit.ExitCode()
}

// expect runs the script and checks its exit code and what it says.
func (e *enrolment) expect(code int, says string, args ...string) string {
	e.t.Helper()
	out, got := e.run(args...)
	if got != code || !strings.Contains(out, says) {
		e.t.Fatalf("enroll-dpu.sh %s: exit code %d, want %d and %q: %s", strings.Join(args, " "), got, code, says, out)
	}
	return out
}

func (e *enrolment) requests() []certificatesv1.CertificateSigningRequest {
	e.t.Helper()
	client, err := e.Client()
	must(e.t, err)
	list, err := client.CertificatesV1().CertificateSigningRequests().List(context.Background(), metav1.ListOptions{})
	must(e.t, err)
	return list.Items
}

// approve does what an administrator and the cluster's signer do, for every request that waits. The certificate began that
// long ago.
func (e *enrolment) approve(ago time.Duration) {
	e.t.Helper()
	client, err := e.Client()
	must(e.t, err)
	for _, request := range e.requests() {
		if len(request.Status.Conditions) > 0 {
			continue
		}
		request.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{
			Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Test",
		}}
		requests := client.CertificatesV1().CertificateSigningRequests()
		approved, err := requests.UpdateApproval(context.Background(), request.Name, &request, metav1.UpdateOptions{})
		must(e.t, err)
		approved.Status.Certificate = e.sign(approved, ago)
		_, err = requests.UpdateStatus(context.Background(), approved, metav1.UpdateOptions{})
		must(e.t, err)
	}
}

// sign signs a request with the lab's CA, as kube-controller-manager would.
func (e *enrolment) sign(request *certificatesv1.CertificateSigningRequest, ago time.Duration) []byte {
	e.t.Helper()
	api := filepath.Dir(e.caFile())
	ca, err := tls.LoadX509KeyPair(filepath.Join(api, "ca.crt"), filepath.Join(api, "ca.key"))
	must(e.t, err)
	block, _ := pem.Decode(request.Spec.Request)
	csr, err := x509.ParseCertificateRequest(block.Bytes)
	must(e.t, err)
	begin := time.Now().Add(-ago)
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()),
		Subject:      csr.Subject,
		NotBefore:    begin,
		NotAfter:     begin.Add(time.Duration(*request.Spec.ExpirationSeconds) * time.Second),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, ca.Leaf, csr.PublicKey, ca.PrivateKey)
	must(e.t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// caFile is the CA's certificate in the lab's directory.
func (e *enrolment) caFile() string {
	e.t.Helper()
	found, err := filepath.Glob(filepath.Join(filepath.Dir(e.Kubeconfig()), "*", "ca.crt"))
	must(e.t, err)
	if len(found) != 1 {
		e.t.Fatalf("CAs of the lab: %v", found)
	}
	return found[0]
}

// works uses the card's kubeconfig.
func (e *enrolment) works(node string) {
	e.t.Helper()
	cmd := exec.CommandContext(e.t.Context(), "kubectl", "--kubeconfig", filepath.Join(e.dir, "kubeconfig"), "auth", "whoami", "-o", "jsonpath={.status.userInfo.username} {.status.userInfo.groups[0]}")
	cmd.Env = append(os.Environ(), e.env...)
	out, err := cmd.CombinedOutput()
	if want := manifests.DPUUser + node + " " + manifests.DPUGroup; err != nil || string(out) != want {
		e.t.Errorf("the card is %s (%v), want %s", out, err, want)
	}
}

// secrets checks that only root can read what is there, that nothing else is left, and that no key was printed.
func (e *enrolment) secrets() {
	e.t.Helper()
	out := strings.Split(strings.TrimSpace(command(e.t, "find", e.dir, "-printf", "%m %P\\n")), "\n")
	slices.Sort(out)
	if want := []string{"600 client.pem", "600 kubeconfig", "700 "}; !slices.Equal(out, want) {
		e.t.Errorf("the card's directory has %q", out)
	}
	raw, err := os.ReadFile(filepath.Join(e.dir, "client.pem"))
	must(e.t, err)
	at := bytes.Index(raw, []byte("-----BEGIN EC PRIVATE KEY-----\n"))
	if at < 0 {
		e.t.Fatalf("no key in client.pem")
	}
	key := strings.Split(string(raw[at:]), "\n")[1]
	if strings.Contains(e.out.String(), key) || strings.Contains(e.out.String(), "PRIVATE KEY") {
		e.t.Error("the key was printed")
	}
}

// A card asks, an administrator approves, the card has a kubeconfig that works; later it renews its certificate.
func TestEnroll(t *testing.T) {
	t.Parallel()
	e := newEnrolment(t)
	ask := []string{"--node", "worker-b", "--bootstrap", e.Kubeconfig(), "--wait", "0"}
	e.expect(0, "would make a key", append(ask, "--dry-run")...)
	if _, err := os.Stat(e.dir); err == nil || len(e.requests()) != 0 {
		t.Fatal("--dry-run did something")
	}
	out := e.expect(3, "is not approved yet", ask...)
	for _, want := range []string{"kubectl certificate approve ovn-uplink-dpu-worker-b-", "sha256sum"} {
		if !strings.Contains(out, want) {
			t.Errorf("the administrator is not told %q: %s", want, out)
		}
	}
	// Again: the same request.
	e.expect(3, "taking up the request", ask...)
	requests := e.requests()
	if len(requests) != 1 {
		t.Fatalf("%d requests", len(requests))
	}
	if s := requests[0].Spec; s.SignerName != certificatesv1.KubeAPIServerClientSignerName || *s.ExpirationSeconds != 30*86400 {
		t.Errorf("asked %s for %d seconds", s.SignerName, *s.ExpirationSeconds)
	}
	e.approve(0)
	e.expect(0, "certificate of worker-b, valid until", ask...)
	e.works("worker-b")
	e.secrets()
	e.expect(0, "nothing to do", ask...)
	e.expect(0, "more than a third of its life; nothing to do", "--rotate", "--wait", "0")
	e.expect(0, "certificate of worker-b", "--status")
	if len(e.requests()) != 1 {
		t.Error("there are more requests than were needed")
	}
}

// When a third of its life is left the certificate is renewed, with a new key, in one step.
func TestRotate(t *testing.T) {
	t.Parallel()
	e := newEnrolment(t)
	ask := []string{"--node", "worker-b", "--bootstrap", e.Kubeconfig(), "--wait", "0"}
	e.expect(3, "is not approved yet", ask...)
	e.approve(25 * 24 * time.Hour)
	e.expect(0, "valid until", ask...)
	before, err := os.ReadFile(filepath.Join(e.dir, "client.pem"))
	must(t, err)
	config, err := os.ReadFile(filepath.Join(e.dir, "kubeconfig"))
	must(t, err)
	e.expect(0, "would ask for a new certificate for worker-b", "--rotate", "--dry-run")
	e.expect(3, "is not approved yet", "--rotate", "--lifetime", "7", "--wait", "0")
	if now, _ := os.ReadFile(filepath.Join(e.dir, "client.pem")); !bytes.Equal(now, before) {
		t.Error("the certificate in use changed before there was a new one")
	}
	// By its own right, which is that of a card and no more.
	last := e.requests()
	for _, r := range last {
		if *r.Spec.ExpirationSeconds == 7*86400 && r.Spec.Username != manifests.DPUUser+"worker-b" {
			t.Errorf("the renewal was asked for by %s", r.Spec.Username)
		}
	}
	e.approve(0)
	e.expect(0, "valid until", "--rotate", "--wait", "0")
	after, err := os.ReadFile(filepath.Join(e.dir, "client.pem"))
	must(t, err)
	if _, err := tls.X509KeyPair(after, after); err != nil || bytes.Equal(after, before) {
		t.Errorf("the new certificate: %v", err)
	}
	if now, _ := os.ReadFile(filepath.Join(e.dir, "kubeconfig")); !bytes.Equal(now, config) {
		t.Error("the kubeconfig changed")
	}
	e.works("worker-b")
	e.secrets()
}

// Without kubectl and credentials on the card.
func TestEnrollByHand(t *testing.T) {
	t.Parallel()
	e := newEnrolment(t)
	server := command(t, "sh", "-c", `sed -n 's/^ *server: *//p' "$1"`, "sh", e.Kubeconfig())
	e.env = nil
	e.expect(2, "is no https URL", "--node", "worker-b", "--server", "10.0.0.1", "--ca", e.caFile())
	e.expect(2, "is no name of a node", "--node", "$(reboot)", "--server", "https://a", "--ca", e.caFile())
	e.expect(0, "kubectl apply -f request.yaml", "--node", "worker-b", "--server", strings.TrimSpace(server), "--ca", e.caFile())
	must(t, e.ApplyFile(t.Context(), filepath.Join(e.dir, "pending", "request.yaml")))
	e.approve(0)
	requests := e.requests()
	if len(requests) != 1 {
		t.Fatalf("%d requests", len(requests))
	}
	// Somebody else's certificate is not taken.
	other := filepath.Join(t.TempDir(), "other.crt")
	command(t, "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=x", "-keyout", "/dev/null", "-out", other)
	e.expect(1, "for another key", "--certificate", other)
	signed := filepath.Join(t.TempDir(), "client.crt")
	must(t, os.WriteFile(signed, requests[0].Status.Certificate, 0o644))
	e.expect(0, "valid until", "--certificate", signed)
	kubectl, err := lab.KubectlBinary(t.Context(), t.Logf)
	must(t, err)
	e.env = []string{"PATH=" + filepath.Dir(kubectl) + ":" + os.Getenv("PATH")}
	e.works("worker-b")
	e.secrets()
}

// A request that is denied is over; the next attempt is another one.
func TestEnrollDenied(t *testing.T) {
	t.Parallel()
	e := newEnrolment(t)
	ask := []string{"--node", "worker-b", "--bootstrap", e.Kubeconfig(), "--wait", "0"}
	e.expect(3, "is not approved yet", ask...)
	client, err := e.Client()
	must(t, err)
	request := e.requests()[0]
	request.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateDenied, Status: corev1.ConditionTrue, Reason: "No"}}
	_, err = client.CertificatesV1().CertificateSigningRequests().UpdateApproval(t.Context(), request.Name, &request, metav1.UpdateOptions{})
	must(t, err)
	e.expect(1, fmt.Sprintf("the request %s was Denied", request.Name), ask...)
	e.expect(3, "is not approved yet", ask...)
	if n := len(e.requests()); n != 2 {
		t.Errorf("%d requests", n)
	}
}
