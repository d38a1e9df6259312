// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ovn-uplink/ovn-uplink/test/lab"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

const (
	root     = "../.."
	chartDir = root + "/deploy/host/chart"
	tag      = "8af51273d52d"
	// helmDeadline bounds one call of Helm, which asks the API server some hundred times at most.
	helmDeadline = 2 * time.Minute
)

// tagged is what every rendering needs.
var tagged = []string{"--set", "image.tag=" + tag}

// helmCLI is Helm with directories of its own, and a cluster if it has one.
type helmCLI struct {
	t   *testing.T
	bin string
	env []string
}

// newHelm returns Helm; without a lab there is no cluster. The tests need root only for a lab.
func newHelm(t *testing.T, l *lab.Lab) *helmCLI {
	t.Helper()
	if testing.Short() {
		t.Skip("Helm is built from source, which takes minutes")
	}
	bin, err := lab.HelmBinary(t.Context(), t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig := "/nonexistent"
	if l != nil {
		kubeconfig = l.Kubeconfig()
	}
	return &helmCLI{t: t, bin: bin, env: []string{"HOME=" + t.TempDir(), "PATH=/usr/bin:/bin", "KUBECONFIG=" + kubeconfig}}
}

// try runs Helm and returns its standard output; the error has what it said.
func (h *helmCLI) try(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(h.t.Context(), helmDeadline)
	defer cancel()
	cmd := exec.CommandContext(ctx, h.bin, args...)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.Env = &out, &said, h.env
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("helm %s: %w: %s%s", strings.Join(args, " "), err, out.String(), said.String())
	}
	return out.String(), nil
}

func (h *helmCLI) must(args ...string) string {
	h.t.Helper()
	out, err := h.try(args...)
	if err != nil {
		h.t.Fatal(err)
	}
	return out
}

// render returns the objects that the chart makes of values, given as Helm's own flags.
func (h *helmCLI) render(flags ...string) objects {
	h.t.Helper()
	out := h.must(append([]string{"template", "ovn-uplink", chartDir, "--include-crds=false"}, append(tagged, flags...)...)...)
	list, err := decode(out)
	if err != nil {
		h.t.Fatal(err)
	}
	return list
}

type objects []*unstructured.Unstructured

// decode reads the objects of a YAML text.
func decode(text string) (objects, error) {
	var list objects
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return list, nil
		}
		if err != nil {
			return nil, err
		}
		if len(object.Object) > 0 {
			list = append(list, object)
		}
	}
}

// key tells objects apart.
func key(o *unstructured.Unstructured) string {
	return o.GetKind() + " " + strings.TrimPrefix(o.GetNamespace()+"/"+o.GetName(), "/")
}

// find returns the object with a key.
func (list objects) find(t *testing.T, want string) *unstructured.Unstructured {
	t.Helper()
	for _, o := range list {
		if key(o) == want {
			return o
		}
	}
	t.Fatalf("%s is not rendered", want)
	return nil
}

func (list objects) keys() []string {
	keys := make([]string, 0, len(list))
	for _, o := range list {
		keys = append(keys, key(o))
	}
	return keys
}

// readAll decodes the YAML files of a folder.
func readAll(t *testing.T, dir string) objects {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no files in %s: %v", dir, err)
	}
	var all objects
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		list, err := decode(string(raw))
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all = append(all, list...)
	}
	return all
}
