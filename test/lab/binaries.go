// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
)

// assetsVariable is where envtest and setup-envtest keep prebuilt binaries.
const assetsVariable = "KUBEBUILDER_ASSETS"

// pin is the module in test/apiserver that says which Kubernetes is run.
type pin struct {
	dir     string
	version string // such as "v1.37.2"
	hash    string // of go.mod and go.sum
}

var kubernetesVersion = regexp.MustCompile(`(?m)^\s*(?:require\s+)?k8s\.io/kubernetes (v\d+\.\d+\.\d+\S*)`)

// findPin looks for test/apiserver in the current directory and above, which
// is where tests and make run, then beside this source file.
func findPin() (pin, error) {
	var starts []string
	if wd, err := os.Getwd(); err == nil {
		starts = append(starts, wd)
	}
	if _, file, _, ok := runtime.Caller(0); ok && filepath.IsAbs(file) {
		starts = append(starts, filepath.Dir(file))
	}
	for _, dir := range starts {
		for {
			if p, err := readPin(filepath.Join(dir, "test", "apiserver")); err == nil {
				return p, nil
			}
			parent := filepath.Dir(dir)
			if parent == dir {
				break
			}
			dir = parent
		}
	}
	return pin{}, fmt.Errorf("find test/apiserver, which pins the Kubernetes version: not above %v; run inside the repository or set %s", starts, assetsVariable)
}

func readPin(dir string) (pin, error) {
	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return pin{}, err
	}
	sum, err := os.ReadFile(filepath.Join(dir, "go.sum"))
	if err != nil {
		return pin{}, err
	}
	found := kubernetesVersion.FindSubmatch(mod)
	if found == nil {
		return pin{}, errors.New("go.mod names no version of k8s.io/kubernetes")
	}
	hash := sha256.Sum256(append(mod, sum...))
	return pin{dir: dir, version: string(found[1]), hash: hex.EncodeToString(hash[:4])}, nil
}

// cached is where a binary built from the pin is kept.
func (p pin) cached(name string) string {
	return filepath.Join(cacheDir(), fmt.Sprintf("%s-%s-%s", name, p.version, p.hash), name)
}

// cacheDir is where the lab keeps what it builds and fetches.
func cacheDir() string {
	base, err := os.UserCacheDir()
	if err != nil { // no HOME
		base = "/var/cache"
	}
	return filepath.Join(base, "ovn-uplink")
}

// APIServerBinary returns the path of kube-apiserver: from KUBEBUILDER_ASSETS
// when that is set, else built once and cached.
func APIServerBinary(ctx context.Context, log func(string, ...any)) (string, error) {
	if path, err := asset("kube-apiserver"); path != "" || err != nil {
		return path, err
	}
	p, err := findPin()
	if err != nil {
		return "", err
	}
	return p.build(ctx, log, "kube-apiserver", "9-15 minutes on 2 cores")
}

// KubectlBinary returns the path of kubectl: the one in KUBEBUILDER_ASSETS or
// PATH, else built once and cached.
func KubectlBinary(ctx context.Context, log func(string, ...any)) (string, error) {
	if path, err := asset("kubectl"); err == nil && path != "" {
		return path, nil
	}
	if path, err := lookPath("kubectl", baseEnv()); err == nil {
		return path, nil
	}
	p, err := findPin()
	if err != nil {
		return "", err
	}
	return p.build(ctx, log, "kubectl", "1-4 minutes on 2 cores")
}

// AgentsVariable names the environment variable with the directory of the agents, for tests that must not build them.
const AgentsVariable = "OVN_UPLINK_AGENTS"

// CacheDir is where the lab keeps what it builds and fetches, once Prepare is done.
func CacheDir() string { return cacheDir() }

func etcdBinary() (string, error) {
	if path, err := asset("etcd"); path != "" || err != nil {
		return path, err
	}
	return lookPath("etcd", baseEnv())
}

// asset returns a binary of KUBEBUILDER_ASSETS, or nothing when that is unset.
func asset(name string) (string, error) {
	dir := os.Getenv(assetsVariable)
	if dir == "" {
		return "", nil
	}
	path := filepath.Join(dir, name)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("%s is set: %w", assetsVariable, err)
	}
	return path, nil
}
