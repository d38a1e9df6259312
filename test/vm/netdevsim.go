// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// edit puts text around a line of a source file that is there once.
type edit struct{ file, line, before, after string }

// edits give netdevsim's ports of VFs the address of their function.
var edits = []edit{
	{file: "netdevsim.h", line: "struct nsim_dev_port {", after: "\tu8 function_address[6];\n"},
	{file: "dev.c", line: "static const struct devlink_ops nsim_dev_devlink_ops = {",
		before: "#include \"function.c\"\n",
		after:  "\t.port_function_hw_addr_get = function_get,\n\t.port_function_hw_addr_set = function_set,\n"},
}

func (e edit) apply(text string) (string, error) {
	line := "\n" + e.line + "\n"
	if n := strings.Count(strings.ReplaceAll(text, "\n", "\n\n"), line); n != 1 {
		return "", fmt.Errorf("%s of netdevsim has the line %q %d times, want once: the kernel's source has changed", e.file, e.line, n)
	}
	return strings.Replace(text, line, "\n"+e.before+e.line+"\n"+e.after, 1), nil
}

// netdevsim builds the module, which Debian does not ship, from the kernel's source, with the edits.
func (m maker) netdevsim(ctx context.Context, release string) error {
	const inSource = "drivers/net/netdevsim"
	// The archive has one directory at its top, named after itself.
	_, err := m.shell(ctx, `tar --extract --strip-components=1 --file "$1"/usr/src/linux-source-*.tar.xz --wildcards '*/`+inSource+`'`, m.root())
	if err != nil {
		return err
	}
	source := filepath.Join(m.dir, inSource)
	for _, e := range edits {
		path := filepath.Join(source, e.file)
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		edited, err := e.apply(string(text))
		if err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(edited), 0o644); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(source, "function.c"), []byte(functionSource), 0o644); err != nil {
		return err
	}
	// The headers' makefile names its other half by where that is when installed.
	headers := filepath.Join(m.root(), "usr/src/linux-headers-"+release)
	makefile := fmt.Sprintf("include %s/Makefile\n", filepath.Join(m.root(), "usr/src/linux-headers-"+strings.TrimSuffix(release, "-amd64")+"-common"))
	if err := os.WriteFile(filepath.Join(headers, "Makefile"), []byte(makefile), 0o644); err != nil {
		return err
	}
	_, err = m.run(ctx, "make", "--silent", fmt.Sprintf("--jobs=%d", runtime.NumCPU()), "-C", headers, "M="+source, "CONFIG_NETDEVSIM=m", "modules")
	if err != nil {
		return err
	}
	_, err = m.run(ctx, "strip", "--strip-debug", "-o", filepath.Join(image{m.out()}.modules(), "900-netdevsim.ko"), filepath.Join(source, "netdevsim.ko"))
	return err
}
