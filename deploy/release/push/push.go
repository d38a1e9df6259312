// SPDX-License-Identifier: Apache-2.0

// Package push brings images that were built into a registry.
package push

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/ovn-uplink/ovn-uplink/deploy/release/dist"
)

// every is how often progress is told.
const every = 5 * time.Second

// Pusher pushes to one registry.
type Pusher struct {
	// Registry is host[:port], with a path below which repositories are if need be.
	Registry string
	// Insecure allows HTTP without TLS.
	Insecure bool
	// Progress is told in words what is being pushed.
	Progress io.Writer
}

// Reference is the name of an image in the registry: repository and tag stay, the registry goes before them.
func (p Pusher) Reference(image dist.Image) (name.Tag, error) {
	var options []name.Option
	if p.Insecure {
		options = append(options, name.Insecure)
	}
	if strings.Contains(p.Registry, "://") {
		return name.Tag{}, fmt.Errorf("registry %q: want host[:port], without https://", p.Registry)
	}
	tag, err := name.NewTag(p.Registry+"/"+image.Reference(), options...)
	if err != nil {
		return tag, fmt.Errorf("name the image of %s in registry %q (want host[:port]): %w", image.Agent, p.Registry, err)
	}
	// Without a dot or a port it would be a repository of Docker Hub's.
	host, _, _ := strings.Cut(p.Registry, "/")
	registry, err := name.NewRegistry(host, options...)
	if err != nil || registry.RegistryStr() != tag.RegistryStr() {
		return tag, fmt.Errorf("%q is no registry: want a host with a dot or a port, such as registry.example.com or registry:5000", p.Registry)
	}
	return tag, nil
}

// Push pushes the images of all platforms that were built into a directory, with the credentials that `docker login` or
// `skopeo login` left. The tag is written last: who pulls gets all of an image or nothing.
func (p Pusher) Push(ctx context.Context, dir string) error {
	manifest, err := dist.ReadManifest(dir)
	if err != nil {
		return err
	}
	for _, image := range manifest.Images {
		if err := p.push(ctx, dir, image); err != nil {
			return err
		}
	}
	return nil
}

func (p Pusher) push(ctx context.Context, dir string, image dist.Image) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Minute)
	defer cancel()
	tag, err := p.Reference(image)
	if err != nil {
		return err
	}
	index, err := dist.OpenIndex(dir, image)
	if err != nil {
		return err
	}
	fmt.Fprintf(p.Progress, "pushing %s\n", tag)
	updates, told := make(chan v1.Update, 16), make(chan struct{})
	go func() {
		defer close(told)
		p.tell(tag, updates)
	}()
	options := []remote.Option{
		remote.WithContext(ctx),
		remote.WithAuthFromKeychain(authn.DefaultKeychain),
		remote.WithTransport(transport{p.Insecure}),
		remote.WithUserAgent("ovn-uplink-release"),
	}
	err = remote.WriteIndex(tag, index, append(options, remote.WithProgress(updates))...)
	<-told // WriteIndex closes the channel
	if err != nil {
		return fmt.Errorf("push %s: %w", tag, err)
	}
	there, err := remote.Head(tag, options...)
	if err != nil {
		return fmt.Errorf("look for %s after pushing it: %w", tag, err)
	}
	if there.Digest.String() != image.Index.Digest {
		return fmt.Errorf("the registry has %s as %s, pushed was %s", tag, there.Digest, image.Index.Digest)
	}
	fmt.Fprintf(p.Progress, "pushed %s@%s\n", tag, there.Digest)
	return nil
}

func (p Pusher) tell(tag name.Tag, updates <-chan v1.Update) {
	last := time.Now()
	for update := range updates {
		if update.Error == nil && update.Total > 0 && time.Since(last) >= every {
			last = time.Now()
			fmt.Fprintf(p.Progress, "%s: %.1f of %.1f MB\n", tag, float64(update.Complete)/1e6, float64(update.Total)/1e6)
		}
	}
}

var errPlain = errors.New("the registry has no TLS; --insecure pushes without, credentials too")

// transport refuses to talk without TLS unless that is wanted. The library would do it by itself with private addresses.
type transport struct{ insecure bool }

// RoundTrip does one request.
func (t transport) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Scheme != "https" && !t.insecure {
		return nil, errPlain
	}
	return remote.DefaultTransport.RoundTrip(request)
}
