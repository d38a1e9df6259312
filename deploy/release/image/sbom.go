// SPDX-License-Identifier: Apache-2.0

package image

import (
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"net/url"
	"runtime/debug"
	"strings"
	"time"

	"github.com/ovn-uplink/ovn-uplink/deploy/release/debian"
)

// What of SPDX 2.3 is written; see https://spdx.github.io/spdx-spec/v2.3/.
type spdxDocument struct {
	Version       string             `json:"spdxVersion"`
	DataLicense   string             `json:"dataLicense"`
	ID            string             `json:"SPDXID"`
	Name          string             `json:"name"`
	Namespace     string             `json:"documentNamespace"`
	Creation      spdxCreation       `json:"creationInfo"`
	Packages      []spdxPackage      `json:"packages"`
	Relationships []spdxRelationship `json:"relationships"`
}

type spdxCreation struct {
	Created  string   `json:"created"`
	Creators []string `json:"creators"`
}

type spdxPackage struct {
	Name             string         `json:"name"`
	ID               string         `json:"SPDXID"`
	Version          string         `json:"versionInfo"`
	DownloadLocation string         `json:"downloadLocation"`
	FilesAnalyzed    bool           `json:"filesAnalyzed"`
	LicenseConcluded string         `json:"licenseConcluded"`
	LicenseDeclared  string         `json:"licenseDeclared"`
	Copyright        string         `json:"copyrightText"`
	Purpose          string         `json:"primaryPackagePurpose,omitempty"`
	Checksums        []spdxChecksum `json:"checksums,omitempty"`
	References       []spdxRef      `json:"externalRefs,omitempty"`
}

type spdxChecksum struct {
	Algorithm string `json:"algorithm"`
	Value     string `json:"checksumValue"`
}

type spdxRef struct {
	Category string `json:"referenceCategory"`
	Type     string `json:"referenceType"`
	Locator  string `json:"referenceLocator"`
}

type spdxRelationship struct {
	Element string `json:"spdxElementId"`
	Type    string `json:"relationshipType"`
	Related string `json:"relatedSpdxElement"`
}

const noAssertion = "NOASSERTION"

// Bill says what an image is made of, as SPDX 2.3 in JSON: the image, the Go modules and the toolchain in its program, and
// the Debian packages that it has files of. digest is that of the image, name its file name.
func Bill(spec Spec, name, version, digest string, packages []debian.Pin) ([]byte, error) {
	info, err := buildinfo.Read(bytes.NewReader(spec.Binary))
	if err != nil {
		return nil, fmt.Errorf("read the modules of %s for %s: %w", spec.Program, spec.Arch, err)
	}
	image := newPackage("image", name, version)
	image.Purpose = "CONTAINER"
	image.Checksums = []spdxChecksum{{"SHA256", strings.TrimPrefix(digest, "sha256:")}}
	program := newPackage("program", info.Main.Path, version)
	program.Purpose, program.LicenseDeclared = "APPLICATION", "Apache-2.0"
	document := spdxDocument{
		Version: "SPDX-2.3", DataLicense: "CC0-1.0", ID: "SPDXRef-DOCUMENT", Name: name,
		Namespace: "https://ovn-uplink.github.io/spdx/" + name + "/" + strings.TrimPrefix(digest, "sha256:"),
		Creation:  spdxCreation{spec.Created.Format(time.RFC3339), []string{"Tool: ovn-uplink-release"}},
		Packages:  []spdxPackage{image, program},
		Relationships: []spdxRelationship{
			{"SPDXRef-DOCUMENT", "DESCRIBES", image.ID},
			{image.ID, "CONTAINS", program.ID},
		},
	}
	standard := newPackage("go-std", "stdlib", strings.TrimPrefix(info.GoVersion, "go"))
	standard.LicenseDeclared = "BSD-3-Clause"
	standard.References = purl("pkg:golang/stdlib@" + standard.Version)
	document.add(program.ID, standard)
	for i, module := range info.Deps {
		document.add(program.ID, goPackage(fmt.Sprintf("go-%d", i), module))
	}
	for i, pin := range packages {
		deb := newPackage(fmt.Sprintf("deb-%d", i), pin.Name, pin.Version)
		deb.Checksums = []spdxChecksum{{"SHA256", pin.SHA256}}
		deb.References = purl("pkg:deb/debian/" + pin.Name + "@" + url.QueryEscape(pin.Version) + "?arch=" + pin.Architecture)
		document.add(image.ID, deb)
	}
	text, err := json.MarshalIndent(document, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write the bill of materials of %s: %w", name, err)
	}
	return append(text, '\n'), nil
}

func (d *spdxDocument) add(owner string, p spdxPackage) {
	d.Packages = append(d.Packages, p)
	d.Relationships = append(d.Relationships, spdxRelationship{owner, "CONTAINS", p.ID})
}

func goPackage(id string, module *debug.Module) spdxPackage {
	if module.Replace != nil {
		module = module.Replace
	}
	p := newPackage(id, module.Path, module.Version)
	p.References = purl("pkg:golang/" + module.Path + "@" + url.QueryEscape(module.Version))
	return p
}

func newPackage(id, name, version string) spdxPackage {
	return spdxPackage{
		Name: name, ID: "SPDXRef-" + id, Version: version, DownloadLocation: noAssertion,
		LicenseConcluded: noAssertion, LicenseDeclared: noAssertion, Copyright: noAssertion,
	}
}

func purl(locator string) []spdxRef { return []spdxRef{{"PACKAGE-MANAGER", "purl", locator}} }
