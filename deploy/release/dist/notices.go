// SPDX-License-Identifier: Apache-2.0

package dist

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
	"time"

	"github.com/ovn-uplink/ovn-uplink/deploy/release/image"
)

// noticesDir is where in an image the licenses are of what is linked into its program.
const noticesDir = "usr/share/doc/ovn-uplink"

// notice matches the names of files that have to be with a program into which a module is linked.
var notice = regexp.MustCompile(`^(?i:(license|licence|copying|notice|patents)([.-].*)?)$`)

// notices are the licenses of this project, of Go, and of the modules that are linked into a program.
func (b Builder) notices(ctx context.Context, modules []*debug.Module) ([]image.File, error) {
	goroot, err := b.goCommand(ctx, "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	args := []string{"list", "-m", "-f", "{{.Path}} {{.Dir}}"}
	for _, module := range modules {
		args = append(args, module.Path)
	}
	listed, err := b.goCommand(ctx, args...)
	if err != nil {
		return nil, err
	}
	sources := "go " + goroot + "\n" + listed + "\n"
	text, err := os.ReadFile(filepath.Join(b.Checkout.Root, "LICENSE"))
	if err != nil {
		return nil, fmt.Errorf("collect the licenses: %w", err)
	}
	files := []image.File{{Path: noticesDir + "/LICENSE", Mode: 0o644, Data: text}}
	for line := range strings.Lines(sources) {
		module, dir, _ := strings.Cut(strings.TrimSpace(line), " ")
		found, err := noticesIn(module, dir)
		if err != nil {
			return nil, fmt.Errorf("collect the licenses of %s: %w", module, err)
		}
		files = append(files, found...)
	}
	return files, nil
}

func noticesIn(module, dir string) ([]image.File, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var files []image.File
	for _, entry := range entries {
		if !entry.Type().IsRegular() || !notice.MatchString(entry.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			return nil, err
		}
		files = append(files, image.File{Path: path.Join(noticesDir, "third-party", module, entry.Name()), Mode: 0o644, Data: text})
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("there is none in %s", dir)
	}
	return files, nil
}

func (b Builder) goCommand(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Env = b.Checkout.Root, buildEnvironment(os.Environ())
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w: %s", args[0], err, strings.TrimSpace(complaint.String()))
	}
	return strings.TrimSpace(string(out)), nil
}
