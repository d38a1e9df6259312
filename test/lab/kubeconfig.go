// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// AdminUser is the user that every lab has, in group system:masters.
const AdminUser = "admin"

// ErrNoUser is returned for a user that was not in Options.Users.
var ErrNoUser = errors.New("no such user in the lab")

// User is somebody whom the API server knows by a bearer token. What the user
// may do is for RBAC objects to say.
type User struct {
	Name   string
	Groups []string
	// Token is made up when empty.
	Token string
}

// Kubeconfig is the path of the administrator's kubeconfig, for use outside
// the lab's namespaces.
func (l *Lab) Kubeconfig() string { return l.state.kubeconfig() }

// NodeKubeconfig writes a kubeconfig of a user for use inside the lab's
// namespaces, where the API server has its management address, and returns
// its path.
func (l *Lab) NodeKubeconfig(user string) (string, error) {
	u, err := l.user(user)
	if err != nil {
		return "", err
	}
	return l.TokenKubeconfig(u.Name, u.Token)
}

// TokenKubeconfig is NodeKubeconfig for any bearer token, such as one of a
// ServiceAccount. name only names the file and the context.
func (l *Lab) TokenKubeconfig(name, token string) (string, error) {
	path := l.state.userConfig(name)
	return path, l.writeKubeconfig(path, nodeURL(), name, &clientcmdapi.AuthInfo{Token: token})
}

// RESTConfig is the administrator's access from outside the namespaces,
// without client-side rate limit.
func (l *Lab) RESTConfig() *rest.Config { return l.restConfig(l.users[0].Token) }

// UserRESTConfig is RESTConfig for another user.
func (l *Lab) UserRESTConfig(user string) (*rest.Config, error) {
	u, err := l.user(user)
	if err != nil {
		return nil, err
	}
	return l.restConfig(u.Token), nil
}

func (l *Lab) restConfig(token string) *rest.Config {
	return &rest.Config{
		Host:            l.rootURL(),
		BearerToken:     token,
		TLSClientConfig: rest.TLSClientConfig{CAData: l.ca},
		QPS:             -1,
	}
}

func (l *Lab) user(name string) (User, error) {
	for _, u := range l.users {
		if u.Name == name {
			return u, nil
		}
	}
	return User{}, fmt.Errorf("user %q: %w", name, ErrNoUser)
}

func nodeURL() string { return "https://" + apiHostPort() }

func (l *Lab) rootURL() string { return rootURL(l.port) }

func rootURL(port int) string { return fmt.Sprintf("https://127.0.0.1:%d", port) }

// writeUsers writes the token file, see "Static token file" in the Kubernetes
// documentation on authentication, and the administrator's kubeconfig.
func (l *Lab) writeUsers() error {
	rows := make([][]string, 0, len(l.users))
	for _, u := range l.users {
		rows = append(rows, []string{u.Token, u.Name, u.Name, strings.Join(u.Groups, ",")})
	}
	var tokens bytes.Buffer
	if err := csv.NewWriter(&tokens).WriteAll(rows); err != nil {
		return fmt.Errorf("encode users: %w", err)
	}
	if err := writeFile(l.state.apiFile("tokens.csv"), tokens.Bytes(), 0o600); err != nil {
		return err
	}
	ca, err := os.ReadFile(l.state.apiFile("ca.crt"))
	if err != nil {
		return fmt.Errorf("read lab CA: %w", err)
	}
	l.ca = ca
	return l.writeKubeconfig(l.Kubeconfig(), l.rootURL(), AdminUser, &clientcmdapi.AuthInfo{Token: l.users[0].Token})
}

func (l *Lab) writeKubeconfig(path, server, user string, auth *clientcmdapi.AuthInfo) error {
	cfg := clientcmdapi.NewConfig()
	cfg.Clusters["lab"] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: l.ca}
	cfg.AuthInfos[user] = auth
	cfg.Contexts["lab"] = &clientcmdapi.Context{Cluster: "lab", AuthInfo: user}
	cfg.CurrentContext = "lab"
	raw, err := clientcmd.Write(*cfg)
	if err != nil {
		return fmt.Errorf("encode kubeconfig of %s: %w", user, err)
	}
	return writeFile(path, raw, 0o600)
}
