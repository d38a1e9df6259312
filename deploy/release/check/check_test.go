// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ovn-uplink/ovn-uplink/deploy/release/check"
	"github.com/ovn-uplink/ovn-uplink/deploy/release/source"
)

func TestOneSource(t *testing.T) {
	f := newFixture(t)
	report := f.check(t)
	if len(report.Problems) > 0 {
		t.Errorf("problems: %v", errors.Join(report.Problems...))
	}
	// Two locks, two images, the chart in the source, exported and in its package, five packages.
	if len(report.Items) != 12 {
		t.Errorf("%d items: %+v", len(report.Items), report.Items)
	}
}

func TestNotOneSource(t *testing.T) {
	other := strings.Repeat("0123456789", 4)
	for _, test := range []struct {
		name   string
		change func(*testing.T, *fixture)
		words  []string
	}{
		{"no locks", func(_ *testing.T, f *fixture) { f.remove(source.LockDir) },
			[]string{"no lock of 1.2.3 for amd64", "make lock"}},
		{"no images", func(_ *testing.T, f *fixture) { f.remove("dist/images") },
			[]string{"dist/images", "make images"}},
		{"no chart", func(_ *testing.T, f *fixture) { f.remove("deploy/host/chart"); f.commit() },
			[]string{"chart deploy/host/chart is missing"}},
		{"no exported chart", func(_ *testing.T, f *fixture) { f.remove("dist/chart") },
			[]string{"chart dist/chart is missing"}},
		{"no packages", func(_ *testing.T, f *fixture) { f.remove("dist/debs") },
			[]string{
				"package nvke-cni-ovn-uplink-charts-1.2.3_all is missing", "package nvke-cni-ovn-uplink-images-1.2.3_amd64 is missing",
				"package nvke-cni-ovn-uplink-images-1.2.3_arm64 is missing", "package ovn-uplink-dpu-agent_amd64 is missing",
				"package ovn-uplink-dpu-agent_arm64 is missing",
			}},
		{"one package is missing", func(_ *testing.T, f *fixture) { f.remove("dist/debs/ovn-uplink-dpu-agent_1.2.3_arm64.deb") },
			[]string{"package ovn-uplink-dpu-agent_arm64 is missing"}},
		{"a package of another commit", func(_ *testing.T, f *fixture) {
			f.deb("ovn-uplink-dpu-agent", "1.2.3", "arm64", other, map[string]string{"usr/bin/dpu-agent": "dpu-agent for arm64"})
		}, []string{"package ovn-uplink-dpu-agent_arm64 is of commit " + other, "the lock of commit COMMIT"}},
		{"a package without a commit", func(_ *testing.T, f *fixture) {
			f.deb("ovn-uplink-dpu-agent", "1.2.3", "arm64", "", map[string]string{"usr/bin/dpu-agent": "dpu-agent for arm64"})
		}, []string{"package ovn-uplink-dpu-agent_arm64 has no field X-OVN-Uplink-Commit"}},
		{"a package of another version", func(_ *testing.T, f *fixture) {
			f.remove("dist/debs/ovn-uplink-dpu-agent_1.2.3_arm64.deb")
			f.deb("ovn-uplink-dpu-agent", "9.9.9", "arm64", f.source.Commit, map[string]string{"usr/bin/dpu-agent": "dpu-agent for arm64"})
		}, []string{"package ovn-uplink-dpu-agent_arm64 is of version 9.9.9", "the lock of version 1.2.3"}},
		{"an old package beside the new one", func(_ *testing.T, f *fixture) {
			f.deb("nvke-cni-ovn-uplink-images-1.0.0", "1.0.0", "arm64", other, nil)
		}, []string{"package nvke-cni-ovn-uplink-images-1.0.0_arm64 (", ") is none of release 1.2.3"}},
		{"a package with another program", func(_ *testing.T, f *fixture) {
			f.deb("ovn-uplink-dpu-agent", "1.2.3", "arm64", f.source.Commit, map[string]string{"usr/bin/dpu-agent": "other"})
		}, []string{"usr/bin/dpu-agent in package ovn-uplink-dpu-agent_arm64 is sha256:d9298a10d1b0735837dc4bd85dac641b0f3cef27a47e5d53a54f2f3f5b2fcffa"}},
		{"a package with another image", func(_ *testing.T, f *fixture) {
			f.deb("nvke-cni-ovn-uplink-images-1.2.3", "1.2.3", "amd64", f.source.Commit,
				map[string]string{"usr/share/images/ovn-uplink-host-agent-linux-amd64.tar": "other"})
		}, []string{"ovn-uplink-host-agent-linux-amd64.tar in package nvke-cni-ovn-uplink-images-1.2.3_amd64 is sha256:"}},
		{"a packaged chart of another commit", func(_ *testing.T, f *fixture) { f.chartDeb("feedfeedfeed") },
			[]string{"chart in package nvke-cni-ovn-uplink-charts-1.2.3_all is of commit feedfeedfeed", "commit COMMIT"}},
		{"an exported chart of another commit", func(_ *testing.T, f *fixture) { f.chart("dist/chart", "1.2.3", "feedfeedfeed") },
			[]string{"chart dist/chart is of commit feedfeedfeed", "commit COMMIT"}},
		{"an exported chart without a tag", func(_ *testing.T, f *fixture) { f.chart("dist/chart", "1.2.3", "") },
			[]string{"chart dist/chart names no tag"}},
		{"an exported chart of another version", func(_ *testing.T, f *fixture) { f.chart("dist/chart", "9.9.9", f.source.Tag()) },
			[]string{"chart dist/chart is of version 9.9.9, the lock of version 1.2.3"}},
		{"images of another commit", func(t *testing.T, f *fixture) { f.images(t, other) },
			[]string{"image nvke/ovn-uplink-host-agent is of commit 012345678901", "commit COMMIT"}},
		{"a damaged archive", func(_ *testing.T, f *fixture) {
			f.repository.Write("dist/images/ovn-uplink-dpu-agent-linux-arm64.tar", "damaged")
		}, []string{"ovn-uplink-dpu-agent-linux-arm64.tar is sha256:", "manifest.json says sha256:"}},
		{"the source changed", func(_ *testing.T, f *fixture) { f.repository.Write("main.go", "package other\n"); f.commit() },
			[]string{"the lock is of commit COMMIT", "checked out is commit HEAD"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFixture(t)
			test.change(t, f)
			report := f.check(t)
			problems := errors.Join(report.Problems...)
			if problems == nil {
				t.Fatalf("no problems, want some that name %q", test.words)
			}
			replace := strings.NewReplacer("COMMIT", f.source.Commit, "HEAD", f.repository.Git("rev-parse", "HEAD"))
			for _, word := range test.words {
				if want := replace.Replace(word); !strings.Contains(problems.Error(), want) {
					t.Errorf("problems do not name %q:\n%v", want, problems)
				}
			}
		})
	}
}

func TestUnreadable(t *testing.T) {
	f := newFixture(t)
	path := filepath.Join(f.repository.Root, "dist/debs/broken.deb")
	if err := os.WriteFile(path, []byte("no package"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := check.Check(t.Context(), source.Checkout{Root: f.repository.Root}); err == nil || !strings.Contains(err.Error(), "broken.deb") {
		t.Errorf("error is %v", err)
	}
}
