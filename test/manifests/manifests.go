// SPDX-License-Identifier: Apache-2.0

// Package manifests installs deploy/host in a lab: what a cluster has of the product before any agent runs.
package manifests

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	uplinkclient "github.com/ovn-uplink/ovn-uplink/shared/api/client"
	"github.com/ovn-uplink/ovn-uplink/shared/api/v1alpha1"
	"github.com/ovn-uplink/ovn-uplink/test/lab"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// The names that deploy/host/chart/manifests fixes.
const (
	Namespace      = "ovn-uplink"
	HostAccount    = "ovn-uplink-host"
	NodeAccount    = "ovn-uplink-node"
	ClusterAccount = "ovn-uplink-cluster"
	DPUGroup       = "system:ovn-uplink:dpus"
	// DPUUser is followed by the name of the node of the DPU's host.
	DPUUser = "system:ovn-uplink:dpu:"
)

// Strangers is a group that RBAC lets write UplinkStates as if by accident; only a lab has it.
const Strangers = "lab:strangers"

const strangers = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: lab-strangers}
rules:
- apiGroups: [k8s.ovn.org]
  resources: [uplinks, uplinks/status, uplinkstates, clusteruserdefinednetworks, clusteruserdefinednetworks/status]
  verbs: [get, list, watch, create, update, patch, delete, deletecollection]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: lab-strangers}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: lab-strangers}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: "lab:strangers"}]
`

// activeDeadline bounds the wait for roles and policies: the API server learns of them by watches of its own.
const activeDeadline = 30 * time.Second

// Install applies the CRDs, roles and policies in deploy/host below root, the top of the repository, and returns
// once the API server acts on them.
func Install(ctx context.Context, l *lab.Lab, root string) error {
	host := filepath.Join(root, "deploy", "host")
	for _, dir := range []string{"chart/crds", "chart/manifests", "chart/manifests/dpus"} {
		if err := l.ApplyFile(ctx, filepath.Join(host, dir)); err != nil {
			return err
		}
	}
	return Await(ctx, l)
}

// Await returns once the API server acts on the policies, however they came into the lab.
func Await(ctx context.Context, l *lab.Lab) error {
	if err := l.Apply(ctx, strangers); err != nil {
		return err
	}
	for policy, never := range map[string]struct {
		user  rest.ImpersonationConfig
		write func(context.Context, uplinkclient.Interface) error
	}{
		"ovn-uplink-agents":  {rest.ImpersonationConfig{UserName: ServiceAccount(HostAccount)}, makeState},
		"ovn-uplink-others":  {rest.ImpersonationConfig{UserName: "lab:stranger", Groups: []string{Strangers}}, makeState},
		"ovn-uplink-cluster": {rest.ImpersonationConfig{UserName: ServiceAccount(ClusterAccount), Groups: []string{Strangers}}, makeUplink},
	} {
		if err := refuses(ctx, l, policy, never.user, never.write); err != nil {
			return fmt.Errorf("wait until policy %s is active: %w", policy, err)
		}
	}
	return nil
}

// ServiceAccount is the user name of an account in Namespace.
func ServiceAccount(name string) string { return "system:serviceaccount:" + Namespace + ":" + name }

var dryRun = metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}

func makeState(ctx context.Context, client uplinkclient.Interface) error {
	_, err := client.K8sV1alpha1().UplinkStates().Create(ctx, &v1alpha1.UplinkState{
		ObjectMeta: metav1.ObjectMeta{Name: "probe.probe"},
		Spec:       v1alpha1.UplinkStateSpec{UplinkName: "probe", NodeName: "probe"},
	}, dryRun)
	return err
}

func makeUplink(ctx context.Context, client uplinkclient.Interface) error {
	_, err := client.K8sV1alpha1().Uplinks().Create(ctx, &v1alpha1.Uplink{
		ObjectMeta: metav1.ObjectMeta{Name: "probe"},
		Spec:       v1alpha1.UplinkSpec{NodeConfigs: []v1alpha1.UplinkNodeConfig{{Type: v1alpha1.OVSBridge, HostInterfaceName: "probe"}}},
	}, dryRun)
	return err
}

// refuses waits until a policy refuses what the user may never do. Nothing else tells that it is active.
func refuses(ctx context.Context, l *lab.Lab, policy string, user rest.ImpersonationConfig, never func(context.Context, uplinkclient.Interface) error) error {
	config := l.RESTConfig()
	config.Impersonate = user
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	defer httpClient.CloseIdleConnections()
	client, err := uplinkclient.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return err
	}
	return lab.Eventually(ctx, activeDeadline, func(ctx context.Context) error {
		err := never(ctx, client)
		switch {
		case err == nil:
			return errors.New("not refused")
		case !strings.Contains(err.Error(), "ValidatingAdmissionPolicy '"+policy+"'"):
			return err
		}
		return nil
	})
}
