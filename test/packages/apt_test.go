// SPDX-License-Identifier: Apache-2.0

package packages

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// keyring is a gpg home with keys of its own.
type keyring struct {
	t    *testing.T
	home string
}

func newKeyring(t *testing.T) keyring {
	t.Helper()
	notShort(t)
	// gpg-agent's socket is in it, and paths of sockets are short.
	home, err := os.MkdirTemp("", "gpg-")
	must(t, err)
	k := keyring{t, home}
	t.Cleanup(func() {
		cmd := exec.Command("gpgconf", "--homedir", home, "--kill", "all")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("end gpg-agent: %v: %s", err, out)
		}
		_ = os.RemoveAll(home)
	})
	return k
}

func (k keyring) env() []string { return []string{"GNUPGHOME=" + k.home} }

func (k keyring) gpg(args ...string) []byte {
	k.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "gpg", append([]string{"--homedir", k.home, "--batch", "--pinentry-mode", "loopback", "--passphrase", ""}, args...)...)
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Run(); err != nil {
		k.t.Fatalf("gpg %s: %v: %s", strings.Join(args, " "), err, &problems)
	}
	return out.Bytes()
}

// key makes a signing key.
func (k keyring) key(user string, options ...string) {
	k.t.Helper()
	k.gpg(append(options, "--quick-gen-key", user, "ed25519", "sign", "1y")...)
}

const signer = "release@example.com"

// repository signs packages into a repository below the root's /srv, and makes its key the one that the root trusts.
func (k keyring) repository(r *root, name, debs string, options ...string) {
	k.t.Helper()
	out, err := scriptWith(k.env(), "deploy/deb/apt.sh", append([]string{"--key", signer, "--debs", debs, "--out", filepath.Join(r.share, name)}, options...)...)
	if err != nil {
		k.t.Fatalf("make repository: %v: %s", err, out)
	}
	r.file("key.gpg", string(k.gpg("--export", signer)))
}

func newSigner(t *testing.T) keyring {
	t.Helper()
	k := newKeyring(t)
	k.key(signer)
	return k
}

// A key that cannot be used is said to be so before anything is written.
func TestAptKey(t *testing.T) {
	t.Parallel()
	k := newSigner(t)
	k.key("old@example.com", "--faked-system-time", "20200101T000000")
	k.key("twin@example.com")
	k.key("twin@example.com", "--yes", "--allow-freeform-uid")
	file := filepath.Join(t.TempDir(), "key.asc")
	must(t, os.WriteFile(file, k.gpg("--armor", "--export-secret-keys", signer), 0o600))
	public := file + ".public"
	must(t, os.WriteFile(public, k.gpg("--armor", "--export", signer), 0o600))
	junk := file + ".junk"
	must(t, os.WriteFile(junk, []byte("no key"), 0o600))
	debs := first.build(t, "charts")
	for name, test := range map[string]struct{ key, says string }{
		"expired":    {"old@example.com", "expired on 2020-12-31"},
		"unknown":    {"nobody@example.com", "gpg has no secret key nobody@example.com"},
		"several":    {"twin@example.com", "is the name of several keys"},
		"none":       {"", "make apt APT_KEY="},
		"publicfile": {public, "only a public one"},
		"junkfile":   {junk, "is no OpenPGP key"},
	} {
		t.Run(name, func(t *testing.T) {
			parent := t.TempDir()
			out := filepath.Join(parent, "apt")
			text, err := scriptWith(k.env(), "deploy/deb/apt.sh", "--key", test.key, "--debs", debs, "--out", out)
			if err == nil || !strings.Contains(text, test.says) {
				t.Errorf("got %v: %s", err, text)
			}
			if left, _ := os.ReadDir(parent); len(left) > 0 {
				t.Errorf("left %v", left)
			}
		})
	}
	out := filepath.Join(t.TempDir(), "apt")
	if text, err := script("deploy/deb/apt.sh", "--key", file, "--debs", debs, "--out", out); err != nil {
		t.Fatalf("sign with a key file: %v: %s", err, text)
	}
	for _, name := range []string{"Packages", "Packages.gz", "Release", "Release.gpg", "InRelease", "ovn-uplink.gpg"} {
		if info, err := os.Stat(filepath.Join(out, name)); err != nil || info.Mode().Perm() != 0o644 {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A failure leaves the repository that is there.
	before, err := os.ReadFile(filepath.Join(out, "InRelease"))
	must(t, err)
	if _, err := scriptWith(k.env(), "deploy/deb/apt.sh", "--key", "old@example.com", "--debs", debs, "--out", out); err == nil {
		t.Error("signed with an expired key")
	}
	after, err := os.ReadFile(filepath.Join(out, "InRelease"))
	must(t, err)
	if !bytes.Equal(before, after) {
		t.Error("the repository changed")
	}
}

// apt-get takes what is signed by the key, and nothing else.
func TestAptRefuses(t *testing.T) {
	t.Parallel()
	r := idleRoot(t, amd64Base)
	k := newSigner(t)
	debs := first.build(t, "charts")
	change := func(name string, edit func(dir string)) {
		dir := filepath.Join(r.share, name)
		edit(dir)
	}
	edit := func(path, old, replacement string) {
		raw, err := os.ReadFile(path)
		must(t, err)
		changed := strings.Replace(string(raw), old, replacement, 1)
		if changed == string(raw) {
			t.Fatalf("%s has no %q", path, old)
		}
		must(t, os.WriteFile(path, []byte(changed), 0o644))
	}
	for _, name := range []string{"good", "unsigned", "tampered", "release", "package"} {
		k.repository(r, name, debs)
	}
	k.repository(r, "old", debs, "--epoch", "1500000000", "--valid", "30")
	other := newSigner(t)
	other.repository(r, "stranger", debs)
	r.file("key.gpg", string(k.gpg("--export", signer)))

	change("unsigned", func(dir string) {
		must(t, os.Remove(filepath.Join(dir, "InRelease")))
		must(t, os.Remove(filepath.Join(dir, "Release.gpg")))
	})
	change("tampered", func(dir string) {
		must(t, os.Remove(filepath.Join(dir, "Packages.gz")))
		edit(filepath.Join(dir, "Packages"), "Priority: optional", "Priority: required")
	})
	change("release", func(dir string) { edit(filepath.Join(dir, "InRelease"), "Suite: stable", "Suite: stabla") })
	change("package", func(dir string) {
		path := deb(t, dir, first.charts(), "all")
		raw, err := os.ReadFile(path)
		must(t, err)
		raw[len(raw)-10] ^= 1
		must(t, os.WriteFile(path, raw, 0o644))
	})
	for name, says := range map[string]string{
		"unsigned": "is not signed",
		"tampered": "Hash Sum mismatch",
		"release":  "The following signatures were invalid",
		"old":      "is expired",
		"stranger": "NO_PUBKEY",
	} {
		out, err := r.source(name)
		if err == nil {
			t.Errorf("%s: apt-get took it", name)
		}
		if !strings.Contains(out, says) {
			t.Errorf("%s: apt-get does not say %q: %s", name, says, tail(out))
		}
	}
	// A key that was good when it signed, and has expired since.
	const was = "old@example.com"
	k.key(was, "--faked-system-time", "20200101T000000")
	k.repository(r, "expired", debs)
	expired := filepath.Join(r.share, "expired")
	must(t, os.Remove(filepath.Join(expired, "InRelease")))
	must(t, os.Remove(filepath.Join(expired, "Release.gpg")))
	k.gpg("--faked-system-time", "20200201T000000", "--local-user", was, "--output", filepath.Join(expired, "InRelease"), "--clearsign", filepath.Join(expired, "Release"))
	r.file("key.gpg", string(k.gpg("--export", was)))
	if out, err := r.source("expired"); err == nil || !strings.Contains(out, "EXPKEYSIG") {
		t.Errorf("an expired key: %v, apt-get does not say so: %s", err, tail(out))
	}
	r.file("key.gpg", string(k.gpg("--export", signer)))

	_, err := r.source("package")
	must(t, err)
	r.fails([]string{"Hash Sum mismatch"}, "apt-get", "install", "-y", first.charts())
	_, err = r.source("good")
	must(t, err)
	r.must("apt-get", "install", "-y", first.charts())
	if got := r.must("sh", "-c", "cd /etc/dgx/ovn-uplink && cat Chart.yaml values.yaml nvke-values.yaml"); !strings.Contains(got, first.tag()) || !strings.Contains(got, "gatewayMode") {
		t.Errorf("values: %s", got)
	}
}

// Chart and images of different releases are not installed together, and the message names both.
func TestMixedVersions(t *testing.T) {
	t.Parallel()
	r := idleRoot(t, amd64Base)
	k := newSigner(t)
	all := filepath.Join(t.TempDir(), "all")
	must(t, os.Mkdir(all, 0o755))
	for _, release := range []release{first, third} {
		release.archs = "amd64"
		found, err := filepath.Glob(filepath.Join(release.build(t, "charts", "images"), "*.deb"))
		must(t, err)
		for _, path := range found {
			must(t, os.Rename(path, filepath.Join(all, filepath.Base(path))))
		}
	}
	k.repository(r, "apt", all)
	_, err := r.source("apt")
	must(t, err)
	out := r.fails([]string{"unmet dependencies"}, "apt-get", "install", "-y", first.charts(), third.images())
	if !strings.Contains(out, first.charts()+" : Breaks: ") {
		t.Errorf("apt-get does not say what breaks: %s", out)
	}
	r.must("apt-get", "install", "-y", first.charts(), first.images())
	// By dpkg itself, without apt's judgement.
	r.must("dpkg", "--remove", first.images())
	images := filepath.Base(deb(t, all, third.images(), "amd64"))
	r.fails([]string{first.charts(), third.images()}, "dpkg", "-i", "/srv/apt/"+images)
	r.must("dpkg", "--purge", third.images())
	// The next release takes the place of both.
	r.must("apt-get", "install", "-y", third.charts(), third.images())
	if out := r.must("dpkg-query", "-W", "-f", "${Package} ${db:Status-Status}\n", "nvke-*"); strings.Contains(out, "0.1.0 installed") {
		t.Errorf("both releases are installed:\n%s", out)
	}
}
