// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

//go:embed init.sh
var initScript []byte

// applets are the commands of busybox that init.sh uses.
var applets = []string{"sh", "mount", "mkdir", "insmod", "cat", "cp", "ln", "chmod", "chroot", "cut", "dd", "echo", "grep", "ip", "poweroff", "printf", "sync"}

// configuration is what programs of /usr want to see of the machine's /etc; what is not there is left out.
var configuration = []string{
	"passwd", "group", "nsswitch.conf", "protocols", "services", "ld.so.cache", "ld.so.conf", "ld.so.conf.d",
	"alternatives", "iproute2", "frr", "localtime",
}

// initramfs writes the guest's first file system to dir/initramfs, for a repository at a path.
func initramfs(ctx context.Context, i image, dir, repository string) (path string, err error) {
	if st, err := os.Lstat("/bin"); err != nil || st.Mode()&os.ModeSymlink == 0 {
		return "", fmt.Errorf("the machine has programs outside of /usr (/bin is no link), which the guest does not see: %w", os.ErrNotExist)
	}
	root := filepath.Join(dir, "root")
	for _, d := range []string{"bin", "dev", "proc", "sys", "etc"} {
		if err := os.MkdirAll(filepath.Join(root, d), 0o755); err != nil {
			return "", err
		}
	}
	for name, text := range map[string][]byte{"init": initScript, "repository-path": []byte(repository), "etc/hosts": []byte("127.0.0.1 localhost\n::1 localhost\n")} {
		if err := os.WriteFile(filepath.Join(root, name), text, 0o755); err != nil {
			return "", err
		}
	}
	for _, name := range applets {
		if err := os.Symlink("busybox", filepath.Join(root, "bin", name)); err != nil {
			return "", err
		}
	}
	path = filepath.Join(dir, "initramfs")
	script := `cp /bin/busybox "$1/bin/"; cp -r "$2" "$1/modules"; initramfs=$3; cd "$1"; shift 3
for name; do [ ! -e "/etc/$name" ] || cp -a "/etc/$name" etc/; done
find . | cpio --create --format=newc --quiet > "$initramfs"`
	cmd := exec.CommandContext(ctx, "sh", append([]string{"-euc", script, "sh", root, i.modules(), path}, configuration...)...)
	if said, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("make the initramfs: %w: %s", err, said)
	}
	return path, nil
}
