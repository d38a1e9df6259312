// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
)

// assetsVariable is where envtest and setup-envtest keep prebuilt binaries.
const assetsVariable = "KUBEBUILDER_ASSETS"

// source is a program, or several, that are built from a module of their own below test, which pins the version.
type source struct {
	dir      string // below test
	module   string // whose version it is
	commands string // the package path that a command's name follows
	stamps   func(p pin) [][2]string
}

var (
	kubernetesSource = source{"apiserver", "k8s.io/kubernetes", "k8s.io/kubernetes/cmd/", kubernetesStamps}
	helmSource       = source{"helm", "helm.sh/helm/v3", "helm.sh/helm/v3/cmd/", helmStamps}
)

// pin is a source with the version that its module says.
type pin struct {
	source
	dir     string
	version string // such as "v1.37.2"
	hash    string // of go.mod and go.sum
}

// find looks for the source's module in the current directory and above, which
// is where tests and make run, then beside this source file.
func (s source) find() (pin, error) {
	var starts []string
	if wd, err := os.Getwd(); err == nil {
		starts = append(starts, wd)
	}
	if _, file, _, ok := runtime.Caller(0); ok && filepath.IsAbs(file) {
		starts = append(starts, filepath.Dir(file))
	}
	for _, dir := range starts {
		for {
			if p, err := s.read(filepath.Join(dir, "test", s.dir)); err == nil {
				return p, nil
			}
			parent := filepath.Dir(dir)
			if parent == dir {
				break
			}
			dir = parent
		}
	}
	return pin{}, fmt.Errorf("find test/%s, which pins the version of %s: not above %v; run inside the repository, or set %s to a directory with the program",
		s.dir, s.module, starts, assetsVariable)
}

func (s source) read(dir string) (pin, error) {
	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return pin{}, err
	}
	sum, err := os.ReadFile(filepath.Join(dir, "go.sum"))
	if err != nil {
		return pin{}, err
	}
	hash := sha256.Sum256(append(mod, sum...))
	p := pin{source: s, dir: dir, hash: hex.EncodeToString(hash[:4])}
	if p.version, err = p.requires(s.module); err != nil {
		return pin{}, err
	}
	return p, nil
}

// requires reads the version of a module from the pin's go.mod.
func (p pin) requires(module string) (string, error) {
	mod, err := os.ReadFile(filepath.Join(p.dir, "go.mod"))
	if err != nil {
		return "", err
	}
	found := regexp.MustCompile(`(?m)^\s*(?:require\s+)?` + regexp.QuoteMeta(module) + ` (v\d+\.\d+\.\d+\S*)`).FindSubmatch(mod)
	if found == nil {
		return "", fmt.Errorf("%s names no version of %s", p.dir, module)
	}
	return string(found[1]), nil
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
	p, err := kubernetesSource.find()
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
	p, err := kubernetesSource.find()
	if err != nil {
		return "", err
	}
	return p.build(ctx, log, "kubectl", "1-4 minutes on 2 cores")
}

// HelmBinary returns the path of helm: the one in KUBEBUILDER_ASSETS, else built once and cached. What PATH has is not
// asked: the releases of Helm differ in what they accept.
func HelmBinary(ctx context.Context, log func(string, ...any)) (string, error) {
	if path, err := asset("helm"); err == nil && path != "" {
		return path, nil
	}
	p, err := helmSource.find()
	if err != nil {
		return "", err
	}
	return p.build(ctx, log, "helm", "2-4 minutes on 2 cores")
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
