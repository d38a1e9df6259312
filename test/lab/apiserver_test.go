// SPDX-License-Identifier: Apache-2.0

package lab_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/ovn-uplink/ovn-uplink/test/lab"
)

var widgets = schema.GroupVersionResource{Group: "lab.ovn-uplink.dev", Version: "v1", Resource: "widgets"}

func TestAPIServer(t *testing.T) {
	begin := time.Now()
	l := lab.ForTest(t, lab.Options{Users: []lab.User{{Name: "reader", Groups: []string{"readers", "others"}}}})
	t.Logf("up after %s", time.Since(begin))

	t.Run("server-side apply of a kind and an object", func(t *testing.T) { testApply(t, l) })
	t.Run("users", func(t *testing.T) { testUsers(t, l) })
	t.Run("tokens", func(t *testing.T) { testTokens(t, l) })
	t.Run("pods and certificates", func(t *testing.T) { testCredentials(t, l) })
	t.Run("node labels", func(t *testing.T) { testNodeLabels(t, l) })
	t.Run("access from a node", func(t *testing.T) { testNodeAccess(t, l) })
	t.Run("restart", func(t *testing.T) { testRestart(t, l) })
}

func testApply(t *testing.T, l *lab.Lab) {
	for range 2 { // the second time changes nothing
		if err := l.ApplyFile(t.Context(), "testdata"); err != nil {
			t.Fatal(err)
		}
	}
	client, err := l.Dynamic()
	if err != nil {
		t.Fatal(err)
	}
	found, err := client.Resource(widgets).List(t.Context(), metav1.ListOptions{FieldSelector: "spec.node=worker-a"})
	if err != nil || len(found.Items) != 1 {
		t.Fatalf("list by field: %v, %v", found, err)
	}
	if got := found.Items[0].GetManagedFields(); len(got) != 1 || got[0].Manager != lab.FieldManager {
		t.Errorf("managed fields: %+v", got)
	}
	err = l.Apply(t.Context(), "apiVersion: lab.ovn-uplink.dev/v1\nkind: Widget\nmetadata: {name: two}\nspec: {node: nowhere}\n")
	if err == nil || !strings.Contains(err.Error(), "nowhere is no node") {
		t.Errorf("object against the rule: %v", err)
	}
	if err := l.Apply(t.Context(), "apiVersion: v9\nkind: Nothing\nmetadata: {name: x}\n"); err == nil {
		t.Error("an unknown kind was applied")
	}
}

func testUsers(t *testing.T, l *lab.Lab) {
	cfg, err := l.UserRESTConfig("reader")
	if err != nil {
		t.Fatal(err)
	}
	client := newClient(t, cfg)
	if _, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("without a role: %v, want forbidden", err)
	}
	err = l.Apply(t.Context(), `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: read-nodes}
rules: [{apiGroups: [""], resources: [nodes], verbs: [list]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: read-nodes}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: read-nodes}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: readers}]
`)
	if err != nil {
		t.Fatal(err)
	}
	err = lab.Eventually(t.Context(), 5*time.Second, func(ctx context.Context) error {
		_, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		return err
	})
	if err != nil {
		t.Errorf("with a role of its group: %v", err)
	}
	if _, err := l.UserRESTConfig("nobody"); err == nil {
		t.Error("an unknown user has access")
	}
}

func testTokens(t *testing.T, l *lab.Lab) {
	admin, err := l.Client()
	if err != nil {
		t.Fatal(err)
	}
	got, err := admin.CoreV1().ServiceAccounts("default").CreateToken(t.Context(), "agent",
		&authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	path, err := l.TokenKubeconfig("system:serviceaccount:default:agent", got.Status.Token)
	if err != nil {
		t.Fatal(err)
	}
	if got := whoIs(t, l, path).Username; got != "system:serviceaccount:default:agent" {
		t.Errorf("token is of %s", got)
	}
}

func testCredentials(t *testing.T, l *lab.Lab) {
	pod, err := l.PodKubeconfig(t.Context(), "default", "agent", "worker-a")
	if err != nil {
		t.Fatal(err)
	}
	who := whoIs(t, l, pod)
	if node := who.Extra["authentication.kubernetes.io/node-name"]; who.Username != "system:serviceaccount:default:agent" || len(node) != 1 || node[0] != "worker-a" {
		t.Errorf("pod is %+v", who)
	}
	certificate, err := l.CertificateKubeconfig("card", "cards", "others")
	if err != nil {
		t.Fatal(err)
	}
	who = whoIs(t, l, certificate)
	if who.Username != "card" || strings.Join(who.Groups, " ") != "cards others system:authenticated" {
		t.Errorf("certificate is of %+v", who)
	}
}

// whoIs asks the API server who comes with a kubeconfig.
func whoIs(t *testing.T, l *lab.Lab, kubeconfig string) authenticationv1.UserInfo {
	t.Helper()
	cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Host = l.RESTConfig().Host // the same, from outside
	review, err := newClient(t, cfg).AuthenticationV1().SelfSubjectReviews().Create(t.Context(),
		&authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return review.Status.UserInfo
}

func testNodeLabels(t *testing.T, l *lab.Lab) {
	ctx := t.Context()
	client, err := l.Client()
	if err != nil {
		t.Fatal(err)
	}
	labels := func() map[string]string {
		n, err := client.CoreV1().Nodes().Get(ctx, "worker-a", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return n.Labels
	}
	if err := l.CreateNode(ctx, "worker-a", map[string]string{"a": "1", "b": "1"}); err != nil {
		t.Fatal(err)
	}
	if err := l.SetNodeLabels(ctx, "worker-a", map[string]string{"b": "2"}); err != nil {
		t.Fatal(err)
	}
	if got := labels(); got["b"] != "2" || got["kubernetes.io/hostname"] != "worker-a" || len(got) != 2 {
		t.Errorf("labels are %v", got)
	}
	for range 2 {
		if err := l.DeleteNode(ctx, "worker-a"); err != nil {
			t.Error(err)
		}
	}
}

// testNodeAccess uses a node's kubeconfig where an agent would.
func testNodeAccess(t *testing.T, l *lab.Lab) {
	n, err := l.AddNode(t.Context(), "access")
	if err != nil {
		t.Fatal(err)
	}
	path, err := l.NodeKubeconfig(lab.AdminUser)
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(cfg.CAData)
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots},
		DialContext: func(ctx context.Context, network, addr string) (conn net.Conn, err error) {
			err = n.Do(func() error {
				conn, err = (&net.Dialer{}).DialContext(ctx, network, addr)
				return err
			})
			return conn, err
		},
	}
	defer transport.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, cfg.Host+"/readyz", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+cfg.BearerToken)
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if body, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("%s: %s, %v", resp.Status, body, err)
	}
}

func testRestart(t *testing.T, l *lab.Lab) {
	ctx := t.Context()
	client, err := l.Dynamic()
	if err != nil {
		t.Fatal(err)
	}
	get := func() error {
		// Short: client-go tries a refused connection again and again.
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		_, err := client.Resource(widgets).Get(ctx, "one", metav1.GetOptions{})
		return err
	}
	for range 2 {
		if err := l.StopAPIServer(ctx); err != nil {
			t.Fatal(err)
		}
		if get() == nil {
			t.Fatal("a stopped API server answers")
		}
	}
	begin := time.Now()
	if err := l.StartAPIServer(ctx); err != nil {
		t.Fatal(err)
	}
	t.Logf("restart took %s", time.Since(begin))
	if err := get(); err != nil {
		t.Errorf("what was stored before: %v", err)
	}
	if err := l.StartAPIServer(ctx); err == nil {
		t.Error("started twice")
	}
}

func newClient(t *testing.T, cfg *rest.Config) kubernetes.Interface {
	t.Helper()
	httpClient, err := rest.HTTPClientFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(httpClient.CloseIdleConnections)
	client, err := kubernetes.NewForConfigAndClient(cfg, httpClient)
	if err != nil {
		t.Fatal(fmt.Errorf("make client: %w", err))
	}
	return client
}
