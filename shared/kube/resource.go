// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/ovn-uplink/ovn-uplink/shared/api/core"
	"github.com/ovn-uplink/ovn-uplink/shared/api/discovery"
	"github.com/ovn-uplink/ovn-uplink/shared/api/networking"
	ovnk "github.com/ovn-uplink/ovn-uplink/shared/api/ovnk/v1"
	"github.com/ovn-uplink/ovn-uplink/shared/api/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// Object is an API object with metadata.
type Object interface {
	runtime.Object
	metav1.Object
}

// Resource is one kind of object at the API server. Objects of a namespaced kind can only be listed and watched,
// over all namespaces.
type Resource[T Object] struct {
	client rest.Interface
	plural string
	codec  runtime.ParameterCodec
	empty  func() T
	// labels is what a watch brings; nil is all.
	labels labels.Selector
	// annotations are those that readers of the kind need of a Feed.
	annotations []string
}

// Uplinks gives access to Uplinks.
func Uplinks(config *rest.Config) (Resource[*v1alpha1.Uplink], error) {
	return newResource(config, v1alpha1.SchemeGroupVersion, v1alpha1.AddToScheme, "uplinks",
		func() *v1alpha1.Uplink { return &v1alpha1.Uplink{} })
}

// UplinkStates gives access to UplinkStates.
func UplinkStates(config *rest.Config) (Resource[*v1alpha1.UplinkState], error) {
	return newResource(config, v1alpha1.SchemeGroupVersion, v1alpha1.AddToScheme, "uplinkstates",
		func() *v1alpha1.UplinkState { return &v1alpha1.UplinkState{} })
}

// ClusterUserDefinedNetworks gives access to the CUDNs of OVN-Kubernetes.
func ClusterUserDefinedNetworks(config *rest.Config) (Resource[*ovnk.ClusterUserDefinedNetwork], error) {
	return newResource(config, ovnk.SchemeGroupVersion, ovnk.AddToScheme, "clusteruserdefinednetworks",
		func() *ovnk.ClusterUserDefinedNetwork { return &ovnk.ClusterUserDefinedNetwork{} })
}

// Pods gives access to the pods of all namespaces.
func Pods(config *rest.Config) (Resource[*core.Pod], error) {
	return newResource(config, core.SchemeGroupVersion, core.AddToScheme, "pods", func() *core.Pod { return &core.Pod{} })
}

// RouteAdvertisements gives access to what OVN-Kubernetes is asked to advertise by BGP.
func RouteAdvertisements(config *rest.Config) (Resource[*ovnk.RouteAdvertisements], error) {
	return newResource(config, ovnk.SchemeGroupVersion, ovnk.AddToScheme, "routeadvertisements",
		func() *ovnk.RouteAdvertisements { return &ovnk.RouteAdvertisements{} })
}

// Services gives access to the services of all namespaces.
func Services(config *rest.Config) (Resource[*core.Service], error) {
	return newResource(config, core.SchemeGroupVersion, core.AddToScheme, "services",
		func() *core.Service { return &core.Service{} })
}

// EndpointSlices gives access to those slices of all namespaces that the selector lets through.
func EndpointSlices(config *rest.Config, selector labels.Selector) (Resource[*discovery.EndpointSlice], error) {
	r, err := newResource(config, discovery.SchemeGroupVersion, discovery.AddToScheme, "endpointslices",
		func() *discovery.EndpointSlice { return &discovery.EndpointSlice{} })
	r.labels, r.annotations = selector, []string{discovery.MirroredNetwork}
	return r, err
}

// ServiceCIDRs gives access to the ranges of the cluster's Services.
func ServiceCIDRs(config *rest.Config) (Resource[*networking.ServiceCIDR], error) {
	return newResource(config, networking.SchemeGroupVersion, networking.AddToScheme, "servicecidrs",
		func() *networking.ServiceCIDR { return &networking.ServiceCIDR{} })
}

func newResource[T Object](config *rest.Config, gv schema.GroupVersion, add func(*runtime.Scheme) error, plural string, empty func() T) (Resource[T], error) {
	scheme := runtime.NewScheme()
	utilruntime.Must(add(scheme))
	config = rest.CopyConfig(config)
	config.GroupVersion = &gv
	config.APIPath = "/apis"
	if gv.Group == "" {
		config.APIPath = "/api"
	}
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return Resource[T]{}, fmt.Errorf("make a client for %s: %w", plural, err)
	}
	return Resource[T]{client: client, plural: plural, codec: runtime.NewParameterCodec(scheme), empty: empty}, nil
}

// Get reads one object from the API server, past every cache.
func (r Resource[T]) Get(ctx context.Context, name string) (T, error) {
	object := r.empty()
	err := r.client.Get().Resource(r.plural).Name(name).Timeout(requestTimeout).Do(ctx).Into(object)
	return object, err
}

// Apply sends a server-side apply, forced: a manager applies only fields that are its own, so that a conflict
// means that somebody else wrote them.
func (r Resource[T]) Apply(ctx context.Context, name, manager string, patch any) (T, error) {
	force := true
	return r.patch(ctx, types.ApplyPatchType, name, metav1.PatchOptions{FieldManager: manager, Force: &force}, patch)
}

// ApplyStatus is Apply to the status subresource.
func (r Resource[T]) ApplyStatus(ctx context.Context, name, manager string, patch any) (T, error) {
	force := true
	return r.patch(ctx, types.ApplyPatchType, name, metav1.PatchOptions{FieldManager: manager, Force: &force}, patch, "status")
}

// Merge sends a JSON merge patch (RFC 7386). One that names a resourceVersion is refused as a conflict where the
// object has another one.
func (r Resource[T]) Merge(ctx context.Context, name, manager string, patch any) (T, error) {
	return r.patch(ctx, types.MergePatchType, name, metav1.PatchOptions{FieldManager: manager}, patch)
}

func (r Resource[T]) patch(ctx context.Context, kind types.PatchType, name string, options metav1.PatchOptions, patch any, subresource ...string) (T, error) {
	object := r.empty()
	body, err := json.Marshal(patch)
	if err != nil {
		return object, fmt.Errorf("encode %s %s: %w", r.plural, name, err)
	}
	err = r.client.Patch(kind).Resource(r.plural).Name(name).SubResource(subresource...).
		VersionedParams(&options, r.codec).
		Body(body).Timeout(requestTimeout).Do(ctx).Into(object)
	return object, err
}

// Delete removes the object if it is still the one with that UID.
func (r Resource[T]) Delete(ctx context.Context, name string, uid types.UID) error {
	return r.client.Delete().Resource(r.plural).Name(name).
		Body(&metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}).
		Timeout(requestTimeout).Do(ctx).Error()
}

// DeleteAll removes every object that the selector lets through.
func (r Resource[T]) DeleteAll(ctx context.Context, selector fields.Selector) error {
	return r.client.Delete().Resource(r.plural).
		VersionedParams(&metav1.ListOptions{FieldSelector: selector.String()}, r.codec).
		Timeout(requestTimeout).Do(ctx).Error()
}

// List reads all objects from the API server, past every cache.
func (r Resource[T]) List(ctx context.Context) ([]T, error) {
	list, err := r.client.Get().Resource(r.plural).Timeout(requestTimeout).Do(ctx).Get()
	if err != nil {
		return nil, err
	}
	var objects []T
	err = meta.EachListItem(list, func(item runtime.Object) error {
		object, ok := item.(T)
		if !ok {
			return fmt.Errorf("unexpected %T in the list of %s", item, r.plural)
		}
		objects = append(objects, object)
		return nil
	})
	return objects, err
}

// Any tells whether the API server has an object that the selector lets through, past every cache.
func (r Resource[T]) Any(ctx context.Context, selector fields.Selector) (bool, error) {
	list, err := r.client.Get().Resource(r.plural).
		VersionedParams(&metav1.ListOptions{FieldSelector: selector.String(), Limit: 1}, r.codec).
		Timeout(requestTimeout).Do(ctx).Get()
	if err != nil {
		return false, err
	}
	return meta.LenList(list) > 0, nil
}

// IsGone tells whether a write that was meant for one incarnation of an object came too late: the object is
// deleted, or has a successor of the same name. An apply that names another UID is refused as a conflict where
// there is no object, and as an attempt to change the UID where there is a successor.
func IsGone(err error) bool {
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return true
	}
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	return slices.ContainsFunc(status.Status().Details.Causes, func(c metav1.StatusCause) bool { return c.Field == "metadata.uid" })
}

// Probe asks for the list of the kind, one object long: an error says that the API server is not reachable,
// the kind not installed, or the caller not allowed.
func (r Resource[T]) Probe(ctx context.Context) error {
	return r.client.Get().Resource(r.plural).
		VersionedParams(&metav1.ListOptions{Limit: 1}, r.codec).
		Timeout(requestTimeout).Do(ctx).Error()
}

func (r Resource[T]) listWatch(selector fields.Selector) cache.ListerWatcher {
	return cache.NewFilteredListWatchFromClient(r.client, r.plural, metav1.NamespaceAll, func(o *metav1.ListOptions) {
		o.FieldSelector = selector.String()
		if r.labels != nil {
			o.LabelSelector = r.labels.String()
		}
	})
}
