// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// PodKubeconfig is NodeKubeconfig for a pod of a ServiceAccount on a node: it
// makes the Pod object, which nothing runs, and uses a token that is bound to
// it, as a kubelet projects one. Such a token names the node.
func (l *Lab) PodKubeconfig(ctx context.Context, namespace, account, node string) (string, error) {
	client, err := l.Client()
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, commandDeadline)
	defer cancel()
	spec := corev1ac.PodSpec().WithServiceAccountName(account).WithNodeName(node).
		WithContainers(corev1ac.Container().WithName("agent").WithImage("none"))
	pod, err := client.CoreV1().Pods(namespace).Apply(ctx, corev1ac.Pod(account+"-"+node, namespace).WithSpec(spec),
		metav1.ApplyOptions{FieldManager: FieldManager, Force: true})
	if err != nil {
		return "", fmt.Errorf("make a pod of %s on %s: %w", account, node, err)
	}
	token, err := client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, account, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{BoundObjectRef: &authenticationv1.BoundObjectReference{
			APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID,
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("make a token for pod %s: %w", pod.Name, err)
	}
	return l.TokenKubeconfig(pod.Name, token.Status.Token)
}

// CertificateKubeconfig is NodeKubeconfig for a user that the API server knows
// by a client certificate: the common name is the user's, the organizations
// are the groups.
func (l *Lab) CertificateKubeconfig(user string, groups ...string) (string, error) {
	ca, err := tls.LoadX509KeyPair(l.state.apiFile("ca.crt"), l.state.apiFile("ca.key"))
	if err != nil {
		return "", fmt.Errorf("read lab CA: %w", err)
	}
	key, err := newKey()
	if err != nil {
		return "", err
	}
	now := time.Now()
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()),
		Subject:      pkix.Name{CommonName: user, Organization: groups},
		NotBefore:    now.Add(-time.Hour),
		NotAfter:     now.Add(certLife),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, ca.Leaf, key.Public(), ca.PrivateKey)
	if err != nil {
		return "", fmt.Errorf("make certificate of %s: %w", user, err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return "", fmt.Errorf("encode key of %s: %w", user, err)
	}
	path := l.state.userConfig(user)
	return path, l.writeKubeconfig(path, nodeURL(), user, &clientcmdapi.AuthInfo{
		ClientCertificateData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		ClientKeyData:         pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}),
	})
}
