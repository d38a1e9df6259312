// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	uplinkclient "github.com/ovn-uplink/ovn-uplink/shared/api/client"
	"github.com/ovn-uplink/ovn-uplink/shared/api/v1alpha1"
	"github.com/ovn-uplink/ovn-uplink/test/lab"
	"github.com/ovn-uplink/ovn-uplink/test/manifests"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

var crdResource = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// A release is installed as NVKE's node agent does it, upgraded, rolled back and uninstalled; in the end there is nothing but
// the CRDs, and what the administrator made of them.
func TestRelease(t *testing.T) {
	l := lab.ForTest(t, lab.Options{})
	h := newHelm(t, l)
	client, err := l.Client()
	if err != nil {
		t.Fatal(err)
	}
	before := connect(t, l).inventory(t)
	image := func(want string) {
		t.Helper()
		d, err := client.AppsV1().DaemonSets("ovn-uplink").Get(t.Context(), "ovn-uplink-node", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got := d.Spec.Template.Spec.Containers[0].Image; got != want {
			t.Errorf("image %s, want %s", got, want)
		}
	}
	services := func(want int) {
		t.Helper()
		list, err := client.CoreV1().Services("ovn-uplink").List(t.Context(), metav1.ListOptions{})
		if err != nil || len(list.Items) != want {
			t.Errorf("%d Services, want %d: %v", len(list.Items), want, err)
		}
	}

	upgrade := []string{"upgrade", "--install", "ovn-uplink", chartDir, "-f", nvkeValues}
	out := h.must(append(upgrade, "--set", "image.tag=aaaaaaaaaaaa")...)
	for _, want := range []string{"STATUS: deployed", "kubectl -n ovn-uplink get daemonsets", "kubectl label node NODE k8s.ovn.org/dpu-host="} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in what Helm says:\n%s", want, out)
		}
	}
	image("nvke/ovn-uplink-dpu-agent:aaaaaaaaaaaa")
	if err := manifests.Await(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	uplinks, err := uplinkclient.NewForConfig(l.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	_, err = uplinks.K8sV1alpha1().Uplinks().Create(t.Context(), &v1alpha1.Uplink{
		ObjectMeta: metav1.ObjectMeta{Name: "tenant-blue"},
		Spec:       v1alpha1.UplinkSpec{NodeConfigs: []v1alpha1.UplinkNodeConfig{{Type: v1alpha1.OVSBridge, HostInterfaceName: "ovsbr1"}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}

	h.must(append(upgrade, "--set", "image.tag=bbbbbbbbbbbb,global.imageRegistry=registry.example.com,metrics.enabled=true")...)
	image("registry.example.com/nvke/ovn-uplink-dpu-agent:bbbbbbbbbbbb")
	services(3)
	h.must("rollback", "ovn-uplink", "1")
	image("nvke/ovn-uplink-dpu-agent:aaaaaaaaaaaa")
	services(0)

	h.must("uninstall", "ovn-uplink")
	finishNamespace(t, client)
	left := connect(t, l).inventory(t)
	maps.DeleteFunc(left, func(name string, _ *unstructured.Unstructured) bool { return before[name] != nil })
	got := slices.DeleteFunc(slices.Sorted(maps.Keys(left)), ofTheLab)
	want := []string{
		"apiservices.apiregistration.k8s.io v1alpha1.k8s.ovn.org", // the API server's own, for the CRDs
		"customresourcedefinitions.apiextensions.k8s.io uplinks.k8s.ovn.org",
		"customresourcedefinitions.apiextensions.k8s.io uplinkstates.k8s.ovn.org",
		"uplinks.k8s.ovn.org tenant-blue",
	}
	if !slices.Equal(got, want) {
		t.Errorf("uninstall leaves %q, want %q", got, want)
	}
}

// ofTheLab tells what is there without the chart's doing: Events of the API server, and what manifests.Await needs.
func ofTheLab(name string) bool {
	return regexp.MustCompile(`^events[ .]| lab-strangers$|^leases\.\S+ kube-system/`).MatchString(name)
}

// finishNamespace does what the namespace controller does once a namespace that is deleted is empty.
func finishNamespace(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	ns, err := client.CoreV1().Namespaces().Get(t.Context(), "ovn-uplink", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if ns.DeletionTimestamp == nil {
		t.Fatal("the namespace is not deleted")
	}
	ns.Spec.Finalizers = nil
	if _, err := client.CoreV1().Namespaces().Finalize(t.Context(), ns, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// Helm leaves CRDs as they are in an upgrade. What docs/install-host.md says for that does it, and needs --force-conflicts.
func TestCRDsAreUpgradedByHand(t *testing.T) {
	l := lab.ForTest(t, lab.Options{})
	h := newHelm(t, l)
	h.must(append([]string{"install", "ovn-uplink", olderChart(t)}, tagged...)...)
	h.must(append([]string{"upgrade", "ovn-uplink", chartDir}, tagged...)...)
	c := connect(t, l)
	const name = "uplinks.k8s.ovn.org"
	columns := func() int {
		t.Helper()
		crd, err := c.dynamic.Resource(crdResource).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return len(columnsOf(t, crd))
	}
	wanted := readAll(t, chartDir+"/crds").find(t, "CustomResourceDefinition "+name)
	if got := columns(); got != 1 {
		t.Errorf("after helm upgrade the CRD has %d columns, it had 1", got)
	}
	apply := func(force bool) error {
		raw, err := json.Marshal(wanted)
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.dynamic.Resource(crdResource).Patch(t.Context(), name, types.ApplyPatchType, raw, metav1.PatchOptions{FieldManager: "kubectl", Force: &force})
		return err
	}
	if err := apply(false); !apierrors.IsConflict(err) {
		t.Errorf("without --force-conflicts: %v, want a conflict with Helm", err)
	}
	if err := apply(true); err != nil {
		t.Fatal(err)
	}
	if got, want := columns(), len(columnsOf(t, wanted)); got != want {
		t.Errorf("the CRD has %d columns, want %d", got, want)
	}
}

func columnsOf(t *testing.T, crd *unstructured.Unstructured) []any {
	t.Helper()
	versions, _, err := unstructured.NestedSlice(crd.Object, "spec", "versions")
	if err != nil || len(versions) != 1 {
		t.Fatalf("versions: %v %v", versions, err)
	}
	columns, _ := versions[0].(map[string]any)["additionalPrinterColumns"].([]any)
	return columns
}

// olderChart is the chart with an older version and a CRD that has one column only.
func olderChart(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "ovn-uplink")
	if err := os.CopyFS(dir, os.DirFS(chartDir)); err != nil {
		t.Fatal(err)
	}
	edit(t, filepath.Join(dir, "Chart.yaml"), func(chart map[string]any) { chart["version"] = "0.0.9" })
	edit(t, filepath.Join(dir, "crds", "k8s.ovn.org_uplinks.yaml"), func(crd map[string]any) {
		version := crd["spec"].(map[string]any)["versions"].([]any)[0].(map[string]any)
		version["additionalPrinterColumns"] = version["additionalPrinterColumns"].([]any)[:1]
	})
	return dir
}

func edit(t *testing.T, path string, change func(map[string]any)) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	list, err := decode(string(raw))
	if err != nil || len(list) != 1 {
		t.Fatalf("%s: %v", path, err)
	}
	change(list[0].Object)
	if raw, err = json.Marshal(list[0].Object); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, raw, 0o644); err != nil {
		t.Fatal(err)
	}
}

// Who has applied the plain manifests before gives them to the release. Without --take-ownership Helm refuses, and says why.
func TestManifestsAppliedBefore(t *testing.T) {
	l := lab.ForTest(t, lab.Options{})
	h := newHelm(t, l)
	if err := manifests.Install(t.Context(), l, root); err != nil {
		t.Fatal(err)
	}
	install := append([]string{"upgrade", "--install", "ovn-uplink", chartDir}, tagged...)
	if _, err := h.try(install...); err == nil || !strings.Contains(err.Error(), "invalid ownership metadata") {
		t.Errorf("got %v", err)
	}
	h.must(append(install, "--take-ownership")...)
}

// In a namespace that was made for it the release works as well, and leaves it alone.
func TestReleaseInANamespaceThatIsThere(t *testing.T) {
	l := lab.ForTest(t, lab.Options{})
	h := newHelm(t, l)
	out := h.must(append([]string{"upgrade", "--install", "ovn-uplink", chartDir, "--namespace", "ovn-uplink", "--create-namespace"}, tagged...)...)
	if !strings.Contains(out, "kubectl label namespace ovn-uplink pod-security.kubernetes.io/enforce=privileged") {
		t.Errorf("no word of Pod Security:\n%s", out)
	}
	h.must("uninstall", "ovn-uplink", "--namespace", "ovn-uplink")
	client, err := l.Client()
	if err != nil {
		t.Fatal(err)
	}
	ns, err := client.CoreV1().Namespaces().Get(t.Context(), "ovn-uplink", metav1.GetOptions{})
	if err != nil || ns.DeletionTimestamp != nil {
		t.Errorf("the namespace is gone: %v %v", ns.DeletionTimestamp, err)
	}
}
