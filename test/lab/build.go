// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// progressEvery is how often a build says that it still goes on.
const progressEvery = 30 * time.Second

// build returns the path of a command of the pin, building it if this version
// was not built before. Whoever comes while it is being built waits for that
// build.
func (p pin) build(ctx context.Context, log func(string, ...any), name, usual string) (string, error) {
	if log == nil {
		log = func(string, ...any) {}
	}
	out := p.cached(name)
	if _, err := os.Stat(out); err == nil {
		return out, nil
	}
	if err := os.MkdirAll(filepath.Dir(out), 0o755); err != nil {
		return "", fmt.Errorf("make cache for %s: %w", name, err)
	}
	lk, err := lockPath(ctx, filepath.Dir(out), func() {
		log("another process is building %s, waiting for it", name)
	})
	if err != nil {
		return "", fmt.Errorf("build %s: %w", name, err)
	}
	defer lk.release()
	if _, err := os.Stat(out); err == nil {
		return out, nil
	}
	log("building %s %s from source into %s, once, usually %s", name, p.version, filepath.Dir(out), usual)
	begin := time.Now()
	tmp := out + ".tmp"
	if err := p.compile(ctx, log, name, tmp, begin); err != nil {
		return "", errors.Join(fmt.Errorf("build %s: %w", name, err), os.RemoveAll(tmp))
	}
	if err := os.Rename(tmp, out); err != nil {
		return "", fmt.Errorf("build %s: %w", name, err)
	}
	log("built %s in %s", name, time.Since(begin).Round(time.Second))
	return out, nil
}

func (p pin) compile(ctx context.Context, log func(string, ...any), name, out string, begin time.Time) error {
	goTool, err := lookPath("go", append(baseEnv(), "PATH="+os.Getenv("PATH")+":/usr/local/go/bin"))
	if err != nil {
		return err
	}
	flags := []string{"-s", "-w"}
	for _, stamp := range p.stamps(p) {
		flags = append(flags, "-X", stamp[0]+"="+stamp[1])
	}
	cmd := exec.CommandContext(ctx, goTool, "build", "-trimpath", "-ldflags", strings.Join(flags, " "), "-o", out, p.commands+name)
	cmd.Dir = p.dir
	// The rest of the environment stays: proxies, GOFLAGS of the machine.
	// A build that was killed may have left it.
	work := filepath.Join(filepath.Dir(out), "work")
	if err := errors.Join(os.RemoveAll(work), os.Mkdir(work, 0o755)); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOTMPDIR="+work)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	// Its compilers end with it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second

	done := make(chan error, 1)
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() { done <- cmd.Wait() }() // ends when ctx does
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			if ctx.Err() != nil {
				return fmt.Errorf("after %s: %w", time.Since(begin).Round(time.Second), ctx.Err())
			}
			if err != nil {
				return fmt.Errorf("%w: %s", err, strings.TrimSpace(tail(said.String(), 4000)))
			}
			return nil
		case <-tick.C:
			log("still building %s, %s", name, time.Since(begin).Round(time.Second))
		}
	}
}

// kubernetesStamps give the binary the version that a release build would have. The
// date is fixed, so that a build can be repeated.
func kubernetesStamps(p pin) [][2]string {
	const pkg = "k8s.io/component-base/version."
	major, minor := majorMinor(p.version)
	return [][2]string{
		{pkg + "gitVersion", p.version},
		{pkg + "gitMajor", major},
		{pkg + "gitMinor", minor},
		{pkg + "gitTreeState", "clean"},
		{pkg + "gitCommit", "0000000"},
		{pkg + "buildDate", "2026-01-01T00:00:00Z"},
	}
}

// helmStamps are those of Helm's Makefile. Without them it takes every cluster that it cannot ask for a Kubernetes 1.20.
func helmStamps(p pin) [][2]string {
	const pkg = "helm.sh/helm/v3/"
	stamps := [][2]string{{pkg + "internal/version.version", p.version}}
	// k8s.io/client-go v0.37.0 is the one of Kubernetes 1.37.
	if version, err := p.requires("k8s.io/client-go"); err == nil {
		_, minor := majorMinor(version)
		for _, user := range []string{"pkg/lint/rules", "pkg/chartutil"} {
			stamps = append(stamps, [2]string{pkg + user + ".k8sVersionMajor", "1"}, [2]string{pkg + user + ".k8sVersionMinor", minor})
		}
	}
	return stamps
}

func majorMinor(version string) (major, minor string) {
	major, rest, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	minor, _, _ = strings.Cut(rest, ".")
	return major, minor
}
