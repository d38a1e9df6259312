// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// fakeGo puts a go command into PATH that notes how it was called, and
// isolates the cache.
func fakeGo(t *testing.T, body string) (calls string) {
	t.Helper()
	dir := t.TempDir()
	calls = filepath.Join(dir, "calls")
	script := "#!/bin/sh\nprintf '%s|' \"$CGO_ENABLED\" \"$@\" >>" + calls + "\necho >>" + calls + "\n" + body
	if err := os.WriteFile(filepath.Join(dir, "go"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	t.Setenv("XDG_CACHE_HOME", filepath.Join(dir, "cache"))
	t.Setenv(assetsVariable, "")
	return calls
}

func TestBuildOnce(t *testing.T) {
	calls := fakeGo(t, "while [ \"$1\" != -o ]; do shift; done\nsleep 0.2\necho binary >\"$2\"\n")
	p := pin{source: kubernetesSource, dir: t.TempDir(), version: "v1.37.2", hash: "00000000"}
	var packages sync.WaitGroup
	paths := make([]string, 4)
	for i := range paths {
		packages.Go(func() {
			var err error
			if paths[i], err = p.build(t.Context(), nil, "kube-apiserver", "a moment"); err != nil {
				t.Error(err)
			}
		})
	}
	packages.Wait()
	for _, path := range paths {
		if content, err := os.ReadFile(path); err != nil || string(content) != "binary\n" {
			t.Errorf("%s holds %q, %v", path, content, err)
		}
	}
	raw, err := os.ReadFile(calls)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(string(raw), "\n"); got != 1 {
		t.Fatalf("built %d times, want once:\n%s", got, raw)
	}
	for _, want := range []string{"0|build|-trimpath|", "gitVersion=v1.37.2 ", "gitMajor=1 ", "gitMinor=37 ", "|k8s.io/kubernetes/cmd/kube-apiserver|"} {
		if !strings.Contains(string(raw), want) {
			t.Errorf("build command has no %q: %s", want, raw)
		}
	}
}

func TestFailedBuildLeavesNothing(t *testing.T) {
	fakeGo(t, "while [ \"$1\" != -o ]; do shift; done\necho half >\"$2\"\necho 'x.go:1: no such thing' >&2\nexit 1\n")
	p := pin{source: kubernetesSource, dir: t.TempDir(), version: "v1.37.2", hash: "00000000"}
	_, err := p.build(t.Context(), nil, "kubectl", "a moment")
	if err == nil || !strings.Contains(err.Error(), "no such thing") {
		t.Errorf("got %v, want what the compiler said", err)
	}
	left, err := os.ReadDir(filepath.Dir(p.cached("kubectl")))
	if err != nil || len(left) != 0 {
		t.Errorf("left in the cache: %v, %v", left, err)
	}
}

func TestAssetsComeFirst(t *testing.T) {
	calls := fakeGo(t, "exit 1\n")
	dir := t.TempDir()
	t.Setenv(assetsVariable, dir)
	if _, err := APIServerBinary(t.Context(), nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without the file: %v, want %v", err, os.ErrNotExist)
	}
	want := filepath.Join(dir, "kube-apiserver")
	if err := os.WriteFile(want, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	if got, err := APIServerBinary(t.Context(), nil); err != nil || got != want {
		t.Errorf("got %s, %v", got, err)
	}
	if _, err := os.Stat(calls); err == nil {
		t.Error("something was built")
	}
}

func TestFindPin(t *testing.T) {
	p, err := kubernetesSource.find()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(p.version, "v1.") || len(p.hash) != 8 {
		t.Errorf("got %+v", p)
	}
	if want := fmt.Sprintf("ovn-uplink/kube-apiserver-%s-%s/kube-apiserver", p.version, p.hash); !strings.HasSuffix(p.cached("kube-apiserver"), want) {
		t.Errorf("cache path %s, want it to end in %s", p.cached("kube-apiserver"), want)
	}
}

func TestFindHelm(t *testing.T) {
	p, err := helmSource.find()
	if err != nil {
		t.Fatal(err)
	}
	want := [2]string{"helm.sh/helm/v3/pkg/chartutil.k8sVersionMinor", "37"}
	if !strings.HasPrefix(p.version, "v3.") || !slices.Contains(p.stamps(p), want) {
		t.Errorf("version %s, stamps %v, want one to be %v", p.version, p.stamps(p), want)
	}
}

func TestDecode(t *testing.T) {
	const text = "---\n# nothing\n---\nkind: A\nmetadata: {name: a}\n---\n\n---\nkind: B\nmetadata:\n  name: b\n"
	objects, err := decode(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, o := range objects {
		got = append(got, o.GetKind()+"/"+o.GetName())
	}
	if strings.Join(got, " ") != "A/a B/b" {
		t.Errorf("got %v", got)
	}
	for _, bad := range []string{"kind: A\n", "metadata: {name: a}\n", "a: [\n", "- 1\n"} {
		if _, err := decode(strings.NewReader(bad)); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}
