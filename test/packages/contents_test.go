// SPDX-License-Identifier: Apache-2.0

package packages

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The same input gives the same bytes, whoever builds.
func TestPackagesAreReproducible(t *testing.T) {
	t.Parallel()
	sums := func(env string) string {
		out := filepath.Join(t.TempDir(), "debs")
		args := append(first.inputs(t), "--out", out)
		command(t, append([]string{"env", env, "sh", "-c", `umask 077; exec "$@"`, "sh", filepath.Join(repository, "deploy/deb/build.sh")}, args...)...)
		found, err := filepath.Glob(filepath.Join(out, "*.deb"))
		must(t, err)
		if len(found) != 5 {
			t.Fatalf("%d packages", len(found))
		}
		var all strings.Builder
		for _, path := range found {
			raw, err := os.ReadFile(path)
			must(t, err)
			fmt.Fprintf(&all, "%s %x\n", filepath.Base(path), sha256.Sum256(raw))
		}
		return all.String()
	}
	if one, two := sums("TZ=UTC"), sums("TZ=Asia/Tokyo"); one != two {
		t.Errorf("two builds differ:\n%s\n%s", one, two)
	}
}

func TestPackageContents(t *testing.T) {
	t.Parallel()
	debs := first.build(t)
	at := time.Unix(first.epoch, 0).UTC().Format("2006-01-02 15:04")
	for name, archs := range map[string][]string{
		first.charts():         {"all"},
		first.images():         {"amd64", "arm64"},
		"ovn-uplink-dpu-agent": {"amd64", "arm64"},
	} {
		for _, arch := range archs {
			path := deb(t, debs, name, arch)
			fields := command(t, "dpkg-deb", "-f", path)
			for _, want := range []string{
				"Package: " + name, "Version: " + first.debVersion(), "Architecture: " + arch,
				"X-OVN-Uplink-Commit: " + first.commit, "Section: net", "Priority: optional",
			} {
				if !strings.Contains(fields, want+"\n") {
					t.Errorf("%s has no %q:\n%s", filepath.Base(path), want, fields)
				}
			}
			list := command(t, "env", "TZ=UTC", "dpkg-deb", "-c", path)
			for line := range strings.Lines(list) {
				f := strings.Fields(line)
				if f[1] != "root/root" || f[3]+" "+f[4] != at {
					t.Errorf("%s: %s", filepath.Base(path), line)
				}
			}
			if !strings.Contains(list, "/usr/share/doc/"+name+"/copyright") || !strings.Contains(list, "/usr/share/doc/"+name+"/changelog.gz") {
				t.Errorf("%s has no copyright or changelog:\n%s", filepath.Base(path), list)
			}
			scripts := t.TempDir()
			command(t, "dpkg-deb", "-e", path, scripts)
			for _, script := range []string{"postinst", "prerm", "postrm"} {
				if _, err := os.Stat(filepath.Join(scripts, script)); err == nil {
					command(t, "shellcheck", filepath.Join(scripts, script))
				}
			}
			if raw, _ := os.ReadFile(filepath.Join(scripts, "conffiles")); name == "ovn-uplink-dpu-agent" != (string(raw) == "/etc/default/ovn-uplink-dpu-agent\n") {
				t.Errorf("%s has the conffiles %q", filepath.Base(path), raw)
			}
		}
	}
	unpacked := t.TempDir()
	command(t, "dpkg-deb", "-x", deb(t, debs, first.images(), "amd64"), unpacked)
	tool := filepath.Join(unpacked, "usr/sbin/ovn-uplink-images")
	command(t, "shellcheck", tool)
	help := command(t, tool, "--help")
	if strings.Contains(help, "@") || !strings.Contains(help, first.images()) || !strings.Contains(help, "import") {
		t.Errorf("help: %s", help)
	}
}

// What does not belong together makes no package, and leaves what was made before.
func TestBuildRefuses(t *testing.T) {
	t.Parallel()
	other := second
	for name, test := range map[string]struct {
		change func(args []string) []string
		says   string
	}{
		"images of another commit": {func(args []string) []string {
			return replace(args, "--images", value(other.inputs(t), "--images"))
		}, "it was built from another commit"},
		"an image of another architecture": {func(args []string) []string {
			dir := value(args, "--images")
			must(t, os.WriteFile(filepath.Join(dir, "ovn-uplink-dpu-agent-linux-arm64.tar"), []byte(dockerArchive(first.image("dpu-agent"), "amd64", "x")), 0o644))
			return args
		}, "has an image for amd64, not arm64"},
		"chart of another commit": {func(args []string) []string {
			return replace(args, "--chart", value(other.inputs(t), "--chart"))
		}, `tag: "2b2b2b2b2b2b", want tag: "1a1a1a1a1a1a"`},
		"no images":     {func(args []string) []string { return replace(args, "--images", t.TempDir()) }, "make images"},
		"no binary":     {func(args []string) []string { return replace(args, "--bin", t.TempDir()) }, "dpu-agent; make images"},
		"no chart":      {func(args []string) []string { return replace(args, "--chart", t.TempDir()) }, "there is no chart"},
		"short commit":  {func(args []string) []string { return replace(args, "--commit", "abc") }, "is not 40 hex digits"},
		"strange arch":  {func(args []string) []string { return replace(args, "--archs", "riscv64") }, "neither amd64 nor arm64"},
		"strange words": {func(args []string) []string { return append(args, "everything") }, "neither an option nor a package"},
	} {
		t.Run(name, func(t *testing.T) {
			out := t.TempDir()
			must(t, os.WriteFile(filepath.Join(out, "before.deb"), nil, 0o644))
			text, err := script("deploy/deb/build.sh", append(test.change(first.inputs(t)), "--out", out)...)
			if err == nil || !strings.Contains(text, test.says) {
				t.Errorf("got %v: %s", err, text)
			}
			if left, _ := os.ReadDir(out); len(left) != 1 {
				t.Errorf("left %v", left)
			}
		})
	}
}

func value(args []string, option string) string {
	for i, a := range args {
		if a == option {
			return args[i+1]
		}
	}
	return ""
}

func replace(args []string, option, with string) []string {
	out := append([]string(nil), args...)
	for i, a := range out {
		if a == option {
			out[i+1] = with
		}
	}
	return out
}
