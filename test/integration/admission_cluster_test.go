// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"testing"

	uplinkclient "github.com/ovn-uplink/ovn-uplink/shared/api/client"
	"github.com/ovn-uplink/ovn-uplink/test/lab"
	"github.com/ovn-uplink/ovn-uplink/test/manifests"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// newGuardedCluster is newCluster with the roles and policies of deploy/host.
func newGuardedCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{Lab: lab.ForTest(t, lab.Options{}), t: t}
	c.connect()
	c.must(manifests.Install(t.Context(), c.Lab, "../.."))
	return c
}

// podOf is the kubeconfig of a pod of an account on a node.
func (c *cluster) podOf(account, node string) string {
	c.t.Helper()
	path, err := c.PodKubeconfig(c.t.Context(), manifests.Namespace, account, node)
	c.must(err)
	return path
}

// dpuOf is the kubeconfig of the DPU in a node.
func (c *cluster) dpuOf(node string) string {
	c.t.Helper()
	path, err := c.CertificateKubeconfig(manifests.DPUUser+node, manifests.DPUGroup)
	c.must(err)
	return path
}

// caller is somebody at the API server.
type caller struct {
	uplinkclient.Interface
	core kubernetes.Interface
}

// caller makes the clients of a kubeconfig for use outside the lab's namespaces.
func (c *cluster) caller(kubeconfig string) caller {
	c.t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	c.must(err)
	config.Host = c.RESTConfig().Host
	return c.callerOf(config)
}

// impersonated is the administrator in the guise of somebody else.
func (c *cluster) impersonated(user string, groups ...string) caller {
	c.t.Helper()
	config := c.RESTConfig()
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups}
	return c.callerOf(config)
}

func (c *cluster) callerOf(config *rest.Config) caller {
	c.t.Helper()
	config.QPS = -1
	httpClient, err := rest.HTTPClientFor(config)
	c.must(err)
	c.t.Cleanup(httpClient.CloseIdleConnections)
	uplinks, err := uplinkclient.NewForConfigAndClient(config, httpClient)
	c.must(err)
	core, err := kubernetes.NewForConfigAndClient(config, httpClient)
	c.must(err)
	return caller{uplinks, core}
}
