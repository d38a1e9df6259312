// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/yaml"
)

// FieldManager is what the lab's own writes are made as.
const FieldManager = "ovn-uplink-lab"

// establishDeadline bounds the wait for a CRD to be served.
const establishDeadline = 15 * time.Second

// Client is the administrator's client for built-in objects. It shares its
// connections with the lab and Close closes them.
func (l *Lab) Client() (kubernetes.Interface, error) {
	c, err := kubernetes.NewForConfigAndClient(l.RESTConfig(), l.http)
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	return c, nil
}

// Dynamic is the administrator's client for objects of any kind, see Client.
func (l *Lab) Dynamic() (dynamic.Interface, error) {
	c, err := dynamic.NewForConfigAndClient(l.RESTConfig(), l.http)
	if err != nil {
		return nil, fmt.Errorf("make dynamic client: %w", err)
	}
	return c, nil
}

// Apply makes or changes the objects of a YAML text of one or several
// documents by server-side apply, in their order, as FieldManager and with
// force. After a CustomResourceDefinition it waits until the kind is served,
// so that its objects may follow in the same text. Objects without a namespace
// go to "default" if they need one.
func (l *Lab) Apply(ctx context.Context, text string) error {
	objects, err := decode(strings.NewReader(text))
	if err != nil {
		return err
	}
	a, err := l.newApplier()
	if err != nil {
		return err
	}
	for _, o := range objects {
		if err := a.apply(ctx, o); err != nil {
			return fmt.Errorf("apply %s %s: %w", o.GetKind(), o.GetName(), err)
		}
	}
	return nil
}

// ApplyFile is Apply for a file, or for all .yaml files of a directory in the
// order of their names.
func (l *Lab) ApplyFile(ctx context.Context, path string) error {
	files := []string{path}
	if st, err := os.Stat(path); err == nil && st.IsDir() {
		if files, err = filepath.Glob(filepath.Join(path, "*.yaml")); err != nil {
			return fmt.Errorf("list %s: %w", path, err)
		}
		slices.Sort(files)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			return fmt.Errorf("apply %s: %w", f, err)
		}
		if err := l.Apply(ctx, string(text)); err != nil {
			return fmt.Errorf("%s: %w", f, err)
		}
	}
	return nil
}

// decode splits a text into its documents, without the empty ones.
func decode(text io.Reader) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	docs := utilyaml.NewYAMLReader(bufio.NewReader(text))
	for {
		doc, err := docs.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("split YAML: %w", err)
		}
		var fields map[string]any
		if err := yaml.Unmarshal(doc, &fields); err != nil {
			return nil, fmt.Errorf("decode YAML: %w", err)
		}
		if len(fields) == 0 {
			continue
		}
		o := &unstructured.Unstructured{Object: fields}
		if o.GetKind() == "" || o.GetName() == "" {
			return nil, fmt.Errorf("document without kind or name: %s", bytes.TrimSpace(doc))
		}
		objects = append(objects, o)
	}
}

// applier applies objects of any kind.
type applier struct {
	client dynamic.Interface
	mapper *restmapper.DeferredDiscoveryRESTMapper
}

func (l *Lab) newApplier() (*applier, error) {
	client, err := l.Dynamic()
	if err != nil {
		return nil, err
	}
	disco, err := discovery.NewDiscoveryClientForConfigAndClient(l.RESTConfig(), l.http)
	if err != nil {
		return nil, fmt.Errorf("make discovery client: %w", err)
	}
	return &applier{client, restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(disco))}, nil
}

func (a *applier) apply(ctx context.Context, o *unstructured.Unstructured) error {
	ctx, cancel := context.WithTimeout(ctx, establishDeadline)
	defer cancel()
	mapping, err := a.mapping(o.GroupVersionKind())
	if err != nil {
		return err
	}
	resource := a.client.Resource(mapping.Resource)
	var target dynamic.ResourceInterface = resource
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		ns := o.GetNamespace()
		if ns == "" {
			ns = metav1.NamespaceDefault
		}
		target = resource.Namespace(ns)
	}
	if _, err := target.Apply(ctx, o.GetName(), o, metav1.ApplyOptions{FieldManager: FieldManager, Force: true}); err != nil {
		return err
	}
	if o.GroupVersionKind().GroupKind() != (schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}) {
		return nil
	}
	return a.waitServed(ctx, target, o.GetName())
}

// mapping finds the resource of a kind. Discovery is asked again for a kind
// that it did not know: a definition may have been applied since.
func (a *applier) mapping(kind schema.GroupVersionKind) (*meta.RESTMapping, error) {
	m, err := a.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		a.mapper.Reset()
		m, err = a.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	}
	return m, err
}

// waitServed waits until a CRD is established and discovery shows all its
// served versions.
func (a *applier) waitServed(ctx context.Context, crds dynamic.ResourceInterface, name string) error {
	return Eventually(ctx, establishDeadline, func(ctx context.Context) error {
		crd, err := crds.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if !established(crd) {
			return errors.New("not established")
		}
		group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
		versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
		a.mapper.Reset()
		for _, v := range versions {
			version, ok := v.(map[string]any)
			if !ok || version["served"] != true {
				continue
			}
			v, _, _ := unstructured.NestedString(version, "name")
			if _, err := a.mapping(schema.GroupVersionKind{Group: group, Version: v, Kind: kind}); err != nil {
				return err
			}
		}
		return nil
	})
}

func established(crd *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
	for _, c := range conditions {
		if m, ok := c.(map[string]any); ok && m["type"] == "Established" {
			return m["status"] == "True"
		}
	}
	return false
}
