// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// Metadata is a kind of object of which the agents read the metadata alone, in all namespaces.
type Metadata struct {
	client   metadata.Getter
	plural   string
	optional bool
}

// NewMetadata gives access to the metadata of a kind of the core group.
func NewMetadata(config *rest.Config, plural string) (Metadata, error) {
	return newMetadata(config, schema.GroupVersionResource{Version: "v1", Resource: plural})
}

// NetworkAttachments gives access to the metadata of NetworkAttachmentDefinitions, in whose annotations OVN-Kubernetes
// says of each network what it has given it.
func NetworkAttachments(config *rest.Config) (Metadata, error) {
	return newMetadata(config, schema.GroupVersionResource{
		Group: "k8s.cni.cncf.io", Version: "v1", Resource: "network-attachment-definitions",
	})
}

func newMetadata(config *rest.Config, kind schema.GroupVersionResource) (Metadata, error) {
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return Metadata{}, fmt.Errorf("make a metadata client: %w", err)
	}
	return Metadata{client: client.Resource(kind), plural: kind.Resource, optional: kind.Group != ""}, nil
}

// Exists asks the API server, past every cache.
func (m Metadata) Exists(ctx context.Context, name string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	_, err := m.client.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

// probe is as Resource.Probe.
func (m Metadata) probe(ctx context.Context, selector fields.Selector) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	_, err := m.client.List(ctx, metav1.ListOptions{FieldSelector: selector.String(), Limit: 1})
	return err
}

func (m Metadata) listWatch(selector fields.Selector) cache.ListerWatcher {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector = selector.String()
			return m.client.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector = selector.String()
			return m.client.Watch(ctx, o)
		},
	}
}
