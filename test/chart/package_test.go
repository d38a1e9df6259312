// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// What make chart writes of a commit is the same every time, has the tag of the images of that commit, and installs as NVKE's
// node agent does it.
func TestPackage(t *testing.T) {
	h := newHelm(t, nil)
	raw, err := exec.CommandContext(t.Context(), "git", "rev-parse", "HEAD").Output()
	if err != nil {
		t.Fatal(err)
	}
	commit := strings.TrimSpace(string(raw))
	var archives [2]string
	var dirs [2]string
	for i := range archives {
		dirs[i] = t.TempDir()
		out, err := exec.CommandContext(t.Context(), root+"/deploy/host/package.sh", "--commit", commit, "--out", dirs[i]).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		files, err := filepath.Glob(filepath.Join(dirs[i], "ovn-uplink-*.tgz"))
		if err != nil || len(files) != 1 {
			t.Fatalf("archives %v: %v", files, err)
		}
		content, err := os.ReadFile(files[0])
		if err != nil {
			t.Fatal(err)
		}
		archives[i] = string(content)
		if i > 0 {
			continue
		}
		image := "image: \"nvke/ovn-uplink-dpu-agent:" + commit[:12] + "\"\n"
		for _, chart := range []string{files[0], filepath.Join(dirs[i], "ovn-uplink")} {
			if out := h.must("template", "ovn-uplink", chart); !strings.Contains(out, image) {
				t.Errorf("%s does not have %s", chart, image)
			}
			h.must("lint", "--strict", chart)
		}
	}
	if archives[0] != archives[1] {
		t.Error("the same commit gives two archives")
	}

	values, err := os.ReadFile(nvkeValues)
	if err != nil {
		t.Fatal(err)
	}
	installed := filepath.Join(dirs[0], "ovn-uplink") // /etc/dgx/ovn-uplink
	if err := os.WriteFile(filepath.Join(installed, "nvke-values.yaml"), values, 0o644); err != nil {
		t.Fatal(err)
	}
	h.must("template", "ovn-uplink", installed, "-f", filepath.Join(installed, "nvke-values.yaml"),
		"--set", "k8sAPIServer=https://172.25.0.2:6443,podNetwork=10.244.0.0/16/24,serviceNetwork=10.96.0.0/16")
}

func TestPackageRefuses(t *testing.T) {
	for want, args := range map[string][]string{
		"there is no commit nothing": {"--commit", "nothing"},
		"unknown argument --tag":     {"--tag", "x"},
		"--out needs a value":        {"--out"},
	} {
		out, err := exec.CommandContext(t.Context(), root+"/deploy/host/package.sh", args...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), want) {
			t.Errorf("%q: %v, %s", args, err, out)
		}
	}
}
