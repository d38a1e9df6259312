// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/ovn-uplink/ovn-uplink/test/lab"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
)

// valueSets are what people install with, and what touches every value once.
var valueSets = map[string][]string{
	"default":            nil,
	"everything":         everything,
	"NVKE":               {"-f", nvkeValues, "--set", "k8sAPIServer=https://172.25.0.2:6443,podNetwork=10.244.0.0/16/24,serviceNetwork=10.96.0.0/16"},
	"dual stack":         {"--set", `k8sAPIServer=https://[fd00::1]:6443,podNetwork=10.244.0.0/16/24\,fd00:10::/48/64,serviceNetwork=10.96.0.0/16\,fd00:20::/112`},
	"a private registry": {"--set", "global.imageRegistry=registry.example.com,imagePullSecrets[0].name=regcred,image.pullPolicy=Always"},
	"gateways": {"--set", "gateway.bypassCIDRs={192.0.2.0/24},gateway.transitSubnets={100.71.0.0/16},gateway.linkSubnets={100.72.0.0/30}," +
		"gateway.serviceSNATSubnets={100.73.0.0/16},gateway.ctZones=1000-1009,gateway.vrfTableRange=600-699,gateway.importGrace=5s,gateway.defaultGatewayBridge=br-ex,gateway.endpointSource=plain"},
	"no gateways":       {"--set", "gateway.enabled=false"},
	"no hosts with DPU": {"--set", "hostAgent.enabled=false,dpus.enabled=false,cluster.replicas=1"},
	"scheduling": {"--set", "dpuHostLabel=node-restriction.kubernetes.io/dpu=yes,hostAgent.nodeSelector.zone=a,nodeAgent.tolerations[0].key=x,nodeAgent.tolerations[0].operator=Exists," +
		"nodeAgent.updateStrategy.type=OnDelete,nodeAgent.updateStrategy.rollingUpdate=null,cluster.priorityClassName=,hostAgent.podAnnotations.a=b,nodeAgent.capabilities=null," +
		"cluster.resources.limits.cpu=1,hostAgent.resources.limits.memory=64Mi"},
}

// The API server takes every object of every rendering as it is, with not one field that it does not know.
func TestAPIServerTakesEveryRendering(t *testing.T) {
	l := lab.ForTest(t, lab.Options{})
	h := newHelm(t, l)
	if err := l.ApplyFile(t.Context(), chartDir+"/manifests/00-namespace.yaml"); err != nil {
		t.Fatal(err)
	}
	c := connect(t, l)
	for name, flags := range valueSets {
		t.Run(name, func(t *testing.T) {
			for _, o := range h.render(flags...) {
				if strings.HasPrefix(o.GetAPIVersion(), "monitoring.coreos.com/") {
					continue // see TestMonitoring
				}
				if key(o) == "Namespace ovn-uplink" {
					continue
				}
				if err := c.dryRun(t.Context(), o); err != nil {
					t.Errorf("%s: %v", key(o), err)
				}
			}
		})
	}
}

// cluster is the API server, for objects of any kind.
type cluster struct {
	*lab.Lab
	discovery discovery.DiscoveryInterface
	dynamic   dynamic.Interface
	mapper    meta.RESTMapper
}

func connect(t *testing.T, l *lab.Lab) *cluster {
	t.Helper()
	c := &cluster{Lab: l}
	client, err := l.Client()
	if err != nil {
		t.Fatal(err)
	}
	c.discovery = client.Discovery()
	if c.dynamic, err = l.Dynamic(); err != nil {
		t.Fatal(err)
	}
	groups, err := restmapper.GetAPIGroupResources(c.discovery)
	if err != nil {
		t.Fatal(err)
	}
	c.mapper = restmapper.NewDiscoveryRESTMapper(groups)
	return c
}

// resource is where objects of a kind are.
func (c *cluster) resource(o *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	gvk := o.GroupVersionKind()
	mapping, err := c.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return nil, err
	}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		return c.dynamic.Resource(mapping.Resource).Namespace(o.GetNamespace()), nil
	}
	return c.dynamic.Resource(mapping.Resource), nil
}

func (c *cluster) dryRun(ctx context.Context, o *unstructured.Unstructured) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	resource, err := c.resource(o)
	if err != nil {
		return err
	}
	_, err = resource.Create(ctx, o, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict})
	return err
}

// inventory is all that there is, of all kinds, as "resource namespace/name".
func (c *cluster) inventory(t *testing.T) map[string]*unstructured.Unstructured {
	t.Helper()
	_, lists, err := c.discovery.ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*unstructured.Unstructured{}
	able := discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "delete"}}, lists)
	resources, err := discovery.GroupVersionResources(able)
	if err != nil {
		t.Fatal(err)
	}
	for gvr := range resources {
		list, err := c.dynamic.Resource(gvr).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatalf("list %s: %v", gvr, err)
		}
		for _, o := range list.Items {
			all[gvr.GroupResource().String()+" "+strings.TrimPrefix(o.GetNamespace()+"/"+o.GetName(), "/")] = &o
		}
	}
	return all
}
