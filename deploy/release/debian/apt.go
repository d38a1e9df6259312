// SPDX-License-Identifier: Apache-2.0

package debian

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const (
	suite   = "bookworm"
	keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"
	// helper is APT's own program for fetching one file.
	helper = "/usr/lib/apt/apt-helper"
)

// apt is a configuration of APT's that has nothing to do with the machine's: own directory, own architecture, nothing
// installed. See apt.conf(5) and sources.list(5).
type apt struct {
	dir  string
	arch string
}

func newAPT(ctx context.Context, dir, arch string) (apt, error) {
	a := apt{dir, arch}
	for _, sub := range []string{"etc/preferences.d", "etc/apt.conf.d", "state/lists/partial", "cache/archives/partial"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			return a, fmt.Errorf("set up APT for %s: %w", arch, err)
		}
	}
	proxies, err := proxies(ctx)
	if err != nil {
		return a, err
	}
	conf := fmt.Sprintf(`Dir "%[1]s";
Dir::Etc "%[1]s/etc";
Dir::State "%[1]s/state";
Dir::State::status "%[1]s/state/status";
Dir::Cache "%[1]s/cache";
APT::Architecture "%[2]s";
APT::Architectures { "%[2]s"; };
APT::Sandbox::User "root";
Acquire::Languages "none";
Acquire::Retries "2";
Acquire::http::Timeout "30";
`, dir, arch) + proxies
	sources := fmt.Sprintf(`Types: deb
URIs: http://deb.debian.org/debian
Suites: %[1]s %[1]s-updates
Components: main
Signed-By: %[2]s

Types: deb
URIs: http://deb.debian.org/debian-security
Suites: %[1]s-security
Components: main
Signed-By: %[2]s
`, suite, keyring)
	for name, text := range map[string]string{"apt.conf": conf, "state/status": "", "etc/sources.list": "", "etc/sources.list.d/debian.sources": sources} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return a, fmt.Errorf("set up APT for %s: %w", arch, err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return a, fmt.Errorf("set up APT for %s: %w", arch, err)
		}
	}
	return a, nil
}

// proxies is what the machine's own configuration says of proxies.
func proxies(ctx context.Context) (string, error) {
	out, err := run(ctx, nil, "apt-config", "dump")
	if err != nil {
		return "", fmt.Errorf("read the machine's proxies for packages: %w", err)
	}
	var text strings.Builder
	for line := range strings.Lines(out) {
		key, _, _ := strings.Cut(line, " ")
		if strings.HasPrefix(key, "Acquire::http") && strings.Contains(strings.ToLower(key), "proxy") {
			text.WriteString(line)
		}
	}
	return text.String(), nil
}

// update fetches the lists of packages, which is only needed to find new ones.
func (a apt) update(ctx context.Context) error {
	if _, err := os.Stat(keyring); err != nil {
		return fmt.Errorf("check the lists of Debian's packages: %w (it is in the package debian-archive-keyring)", err)
	}
	if _, err := a.get(ctx, "update"); err != nil {
		return fmt.Errorf("fetch the list of Debian's packages for %s: %w", a.arch, err)
	}
	return nil
}

// newest says where the newest version of a package is, and its digest, as the signed lists do.
func (a apt) newest(ctx context.Context, name string) (Pin, error) {
	out, err := a.get(ctx, "download", "--print-uris", name)
	if err != nil {
		return Pin{}, fmt.Errorf("look for package %s for %s: %w", name, a.arch, err)
	}
	// 'http://deb.debian.org/…/name_version_arch.deb' name_version_arch.deb 12345 SHA256:…
	fields := strings.Fields(out)
	if len(fields) != 4 || !strings.HasPrefix(fields[3], "SHA256:") {
		return Pin{}, fmt.Errorf("look for package %s for %s: apt-get says %q", name, a.arch, out)
	}
	return Pin{Name: name, URI: strings.Trim(fields[0], "'"), SHA256: strings.TrimPrefix(fields[3], "SHA256:")}, nil
}

// download fetches a package's .deb to a path. It has the pinned digest, or there is an error.
func (a apt) download(ctx context.Context, pin Pin, path string) error {
	_, err := run(ctx, a.environment(), helper, "-qq", "download-file", pin.URI, path, "SHA256:"+pin.SHA256)
	return err
}

func (a apt) get(ctx context.Context, args ...string) (string, error) {
	return run(ctx, a.environment(), "apt-get", append([]string{"-qq"}, args...)...)
}

func (a apt) environment() []string {
	return []string{"APT_CONFIG=" + filepath.Join(a.dir, "apt.conf")}
}

// run runs one of APT's and dpkg's programs and returns its output.
func run(ctx context.Context, env []string, program string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), append(env, "LC_ALL=C")...)
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", program, strings.Join(args, " "), err, strings.TrimSpace(complaint.String()))
	}
	return string(out), nil
}
