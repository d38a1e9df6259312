// SPDX-License-Identifier: Apache-2.0

package image

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"github.com/ovn-uplink/ovn-uplink/deploy/release/debian"
)

// NobodyID is the user and the group that needs no rights.
const NobodyID = "65532:65532"

const (
	passwd = "root:x:0:0:root:/:/sbin/nologin\novn-uplink:x:65532:65532:ovn-uplink:/:/sbin/nologin\n"
	group  = "root:x:0:\novn-uplink:x:65532:\n"
)

// Contents are the files of an image beside its program, and the packages that they are from.
type Contents struct {
	Files    []File
	Packages []debian.Pin
}

// contents collects files, each once.
type contents struct {
	root  *debian.Root
	files map[string]File
	used  map[string]bool
}

// HostAgentContents is what the host-agent needs: whom to trust, and who it is.
func HostAgentContents(root *debian.Root) (Contents, error) {
	c := newContents(root)
	if err := c.certificates(); err != nil {
		return Contents{}, err
	}
	return c.done()
}

// DPUAgentContents is what the dpu-agent needs: the host-agent's, and ovs-ofctl with its libraries.
func DPUAgentContents(root *debian.Root) (Contents, error) {
	c := newContents(root)
	if err := c.certificates(); err != nil {
		return Contents{}, err
	}
	ofctl, err := root.Program("usr/bin/ovs-ofctl")
	if err != nil {
		return Contents{}, err
	}
	c.add(ofctl...)
	release, err := root.Follow("etc/os-release")
	if err != nil {
		return Contents{}, err
	}
	c.add(release...)
	// Where Debian's ovs-ofctl looks for bridges, in its own words.
	c.files["var/run"] = File{Path: "var/run", Link: "/run"}
	return c.done()
}

func newContents(root *debian.Root) *contents {
	return &contents{root, map[string]File{
		"etc/passwd": {Path: "etc/passwd", Mode: 0o644, Data: []byte(passwd)},
		"etc/group":  {Path: "etc/group", Mode: 0o644, Data: []byte(group)},
	}, map[string]bool{}}
}

func (c *contents) add(files ...debian.File) {
	for _, file := range files {
		c.files[file.Path] = File{Path: file.Path, Mode: file.Mode, Data: file.Data, Link: file.Link}
		c.used[file.Package] = true
	}
}

// certificates makes the bundle that Debian's update-ca-certificates(8) makes at installation.
func (c *contents) certificates() error {
	const name = "etc/ssl/certs/ca-certificates.crt"
	var bundle bytes.Buffer
	for _, file := range c.root.Below("usr/share/ca-certificates/mozilla") {
		bundle.Write(bytes.TrimRight(file.Data, "\n"))
		bundle.WriteByte('\n')
	}
	if bundle.Len() == 0 {
		return fmt.Errorf("the package ca-certificates has no certificates in /usr/share/ca-certificates/mozilla")
	}
	c.files[name] = File{Path: name, Mode: 0o644, Data: bundle.Bytes()}
	c.used["ca-certificates"] = true
	return nil
}

// done adds, for every package that has a file here, who holds its rights and what scanners look for.
func (c *contents) done() (Contents, error) {
	// The copyright files refer to them.
	c.add(c.root.Below("usr/share/common-licenses")...)
	var result Contents
	for name := range c.used {
		pin, ok := c.root.Pin(name)
		if !ok {
			return Contents{}, fmt.Errorf("package %s is not pinned", name)
		}
		result.Packages = append(result.Packages, pin)
		copyright, err := c.root.Follow("usr/share/doc/" + name + "/copyright")
		if err != nil {
			return Contents{}, fmt.Errorf("find the copyright of package %s: %w", name, err)
		}
		c.add(copyright[len(copyright)-1])
		status := "var/lib/dpkg/status.d/" + name
		c.files[status] = File{Path: status, Mode: 0o644, Data: []byte(c.root.Control(name))}
	}
	for _, file := range c.files {
		result.Files = append(result.Files, file)
	}
	slices.SortFunc(result.Packages, func(a, b debian.Pin) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(result.Files, func(a, b File) int { return cmp.Compare(a.Path, b.Path) })
	return result, nil
}
