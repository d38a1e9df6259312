// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

const nvkeValues = root + "/deploy/nvke/values.yaml"

// everything switches on what the chart has.
var everything = []string{"--set", "metrics.enabled=true,metrics.serviceMonitor.enabled=true,metrics.prometheusRule.enabled=true," +
	"metrics.dashboard.enabled=true,dynamicUDN.enabled=true"}

func TestLint(t *testing.T) {
	h := newHelm(t, nil)
	for name, flags := range map[string][]string{
		"as it is in the repository": nil,
		"everything":                 append(everything, tagged...),
		"NVKE":                       append([]string{"-f", nvkeValues}, tagged...),
	} {
		t.Run(name, func(t *testing.T) {
			out := h.must(append([]string{"lint", "--strict", chartDir}, flags...)...)
			if !strings.Contains(out, "1 chart(s) linted, 0 chart(s) failed") {
				t.Error(out)
			}
		})
	}
}

func TestVersionIsThatOfTheProduct(t *testing.T) {
	version, err := os.ReadFile(root + "/VERSION")
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(chartDir + "/Chart.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var chart struct{ Version, AppVersion string }
	if err := yaml.Unmarshal(raw, &chart); err != nil {
		t.Fatal(err)
	}
	if want := strings.TrimSpace(string(version)); chart.Version != want || chart.AppVersion != want {
		t.Errorf("Chart.yaml has version %s and appVersion %s, VERSION has %s", chart.Version, chart.AppVersion, want)
	}
}

// The plain manifests are what the admission tests test, so the chart has to have them unchanged.
func TestManifestsAreTheChartsOwn(t *testing.T) {
	h := newHelm(t, nil)
	rendered := h.render("--set", "dynamicUDN.enabled=true")
	want := slices.Concat(readAll(t, chartDir+"/manifests"), readAll(t, chartDir+"/manifests/dpus"), readAll(t, chartDir+"/manifests/dynamic-udn"))
	for _, o := range want {
		if diff := cmp.Diff(o.Object, rendered.find(t, key(o)).Object); diff != "" {
			t.Errorf("%s (-manifest +chart):\n%s", key(o), diff)
		}
	}
	for _, o := range rendered {
		if !slices.Contains(want.keys(), key(o)) && !slices.Contains([]string{"DaemonSet", "Deployment", "PodDisruptionBudget"}, o.GetKind()) {
			t.Errorf("%s is in no manifest", key(o))
		}
	}
	less := h.render("--set", "dpus.enabled=false").keys()
	for _, unwanted := range []string{"ClusterRoleBinding ovn-uplink-dpu", "RoleBinding default/ovn-uplink-events-dpus", "ClusterRole ovn-uplink-cluster-dynamic-udn"} {
		if slices.Contains(less, unwanted) {
			t.Errorf("%s without DPUs and Dynamic UDN", unwanted)
		}
	}
}

// A namespace that the release is in is there already.
func TestReleaseInItsOwnNamespace(t *testing.T) {
	h := newHelm(t, nil)
	for flags, want := range map[string]bool{"": true, "--namespace=ovn-uplink": false, "--namespace=other": true} {
		rendered := h.render(strings.Fields(flags)...)
		if got := slices.Contains(rendered.keys(), "Namespace ovn-uplink"); got != want {
			t.Errorf("%q: Namespace is rendered: %v, want %v", flags, got, want)
		}
		for _, o := range rendered {
			if ns := o.GetNamespace(); ns != "" && ns != "ovn-uplink" && ns != "default" {
				t.Errorf("%q: %s", flags, key(o))
			}
		}
	}
}

func TestImages(t *testing.T) {
	h := newHelm(t, nil)
	digest := "sha256:" + strings.Repeat("0123456789abcdef", 4)
	for name, c := range map[string]struct {
		set       string
		host, dpu string
	}{
		"default":     {"", "nvke/ovn-uplink-host-agent:" + tag, "nvke/ovn-uplink-dpu-agent:" + tag},
		"registry":    {"global.imageRegistry=registry.example.com", "registry.example.com/nvke/ovn-uplink-host-agent:" + tag, "registry.example.com/nvke/ovn-uplink-dpu-agent:" + tag},
		"no registry": {"global.imageRegistry=a b", "", ""},
		"and a path":  {"global.imageRegistry=registry.example.com:5000/mirror", "registry.example.com:5000/mirror/nvke/ovn-uplink-host-agent:" + tag, "registry.example.com:5000/mirror/nvke/ovn-uplink-dpu-agent:" + tag},
		"one that is named already": {"global.imageRegistry=registry.example.com,hostAgent.image.repository=localhost/a/b,nodeAgent.image.repository=ghcr.io/c",
			"registry.example.com/a/b:" + tag, "registry.example.com/c:" + tag},
		"digest": {"nodeAgent.image.digest=" + digest, "nvke/ovn-uplink-host-agent:" + tag, "nvke/ovn-uplink-dpu-agent:" + tag + "@" + digest},
		"digest, no tag": {"image.tag=,nodeAgent.image.digest=" + digest + ",hostAgent.image.digest=" + digest,
			"nvke/ovn-uplink-host-agent@" + digest, "nvke/ovn-uplink-dpu-agent@" + digest},
	} {
		t.Run(name, func(t *testing.T) {
			if c.host == "" { // refused by the schema
				if _, err := h.try("template", chartDir, "--set", c.set); err == nil || !strings.Contains(err.Error(), "/global/imageRegistry") {
					t.Errorf("got %v", err)
				}
				return
			}
			rendered := h.render("--set", c.set)
			for object, want := range map[string]string{
				"DaemonSet ovn-uplink/ovn-uplink-host":     c.host,
				"DaemonSet ovn-uplink/ovn-uplink-node":     c.dpu,
				"Deployment ovn-uplink/ovn-uplink-cluster": c.host,
			} {
				if got := podOf(t, rendered.find(t, object)).Spec.Containers[0].Image; got != want {
					t.Errorf("%s: image %s, want %s", object, got, want)
				}
			}
		})
	}
}

// podOf is the pod template of a workload.
func podOf(t *testing.T, o *unstructured.Unstructured) corev1.PodTemplateSpec {
	t.Helper()
	var pod corev1.PodTemplateSpec
	template, found, err := unstructured.NestedMap(o.Object, "spec", "template")
	if err != nil || !found {
		t.Fatalf("%s has no pod template: %v", key(o), err)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(template, &pod); err != nil {
		t.Fatal(err)
	}
	return pod
}

// Every value has a place in the schema, so that a wrong one is refused with its path.
func TestWrongValuesAreRefused(t *testing.T) {
	h := newHelm(t, nil)
	for set, want := range map[string]string{
		"imag.tag=x":                             "additional properties 'imag' not allowed",
		"hostAgent.replicas=2":                   "at '/hostAgent': additional properties 'replicas' not allowed",
		"image.tag=a b":                          "at '/image/tag'",
		"image.pullPolicy=Sometimes":             "at '/image/pullPolicy': value must be one of 'Always', 'IfNotPresent', 'Never'",
		"global.imageRegistry=https://a.example": "at '/global/imageRegistry'",
		"hostAgent.image.digest=sha256:12":       "at '/hostAgent/image/digest'",
		"hostAgent.image.repository=nvke/x:y":    "at '/hostAgent/image/repository'",
		"k8sAPIServer=http://10.0.0.1:6443":      "at '/k8sAPIServer'",
		"k8sAPIServer=10.0.0.1:6443":             "at '/k8sAPIServer'",
		"podNetwork=10.244.0.0":                  "at '/podNetwork': '10.244.0.0' does not match pattern",
		"serviceNetwork=10.96.0.0/16/24":         "at '/serviceNetwork'",
		"gateway.transitSubnets={a}":             "at '/gateway/transitSubnets/0'",
		"gateway.endpointSource=x":               "value must be one of 'mirrored', 'plain'",
		"gatewayMode=none":                       "value must be one of 'shared', 'local'",
		"logging.level=trace":                    "value must be one of 'debug', 'info', 'warn', 'error'",
		"settle=soon":                            "at '/settle'",
		"dpuHostLabel=a b":                       "at '/dpuHostLabel'",
		"cluster.replicas=0":                     "at '/cluster/replicas': minimum: got 0, want 1",
		"nodeAgent.capabilities={SYS_ADMIN}":     "at '/nodeAgent/capabilities/0': value must be one of 'NET_ADMIN', 'DAC_OVERRIDE'",
		"nodeAgent.enabled=perhaps":              "at '/nodeAgent/enabled': got string, want boolean",
		"openvswitch.runDir=run/ovs":             "at '/openvswitch/runDir'",
		"image.tag=":                             "set image.tag to the first 12 characters of the commit",
		"metrics.serviceMonitor.enabled=true":    "set metrics.enabled=true too",
	} {
		t.Run(set, func(t *testing.T) {
			_, err := h.try(append([]string{"template", chartDir}, append(tagged, "--set", set)...)...)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %q in it", err, want)
			}
		})
	}
}

// A default that the schema does not have could never be refused.
func TestSchemaHasEveryValue(t *testing.T) {
	var schema, values map[string]any
	for file, into := range map[string]*map[string]any{"values.schema.json": &schema, "values.yaml": &values} {
		raw, err := os.ReadFile(chartDir + "/" + file)
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.Unmarshal(raw, into); err != nil {
			t.Fatal(err)
		}
	}
	var walk func(path string, schema, values map[string]any)
	walk = func(path string, schema, values map[string]any) {
		properties, ok := schema["properties"].(map[string]any)
		if !ok { // free ones, such as labels
			return
		}
		if schema["additionalProperties"] != false {
			t.Errorf("%s: others are not refused", path)
		}
		for name := range properties {
			if _, ok := values[name]; !ok && !optional(path+"/"+name) {
				t.Errorf("%s/%s is in the schema, not in values.yaml", path, name)
			}
		}
		for name, value := range values {
			sub, ok := properties[name].(map[string]any)
			if !ok {
				t.Errorf("%s/%s is in values.yaml, not in the schema", path, name)
				continue
			}
			if values, ok := value.(map[string]any); ok {
				walk(path+"/"+name, sub, values)
			}
		}
	}
	walk("", schema, values)
	if _, err := json.Marshal(schema); err != nil {
		t.Fatal(err)
	}
}

// optional are those that have no default.
func optional(path string) bool { return strings.HasSuffix(path, "/rollingUpdate/maxSurge") }
