package release

import (
	"bytes"
	"cmp"
	"debug/buildinfo"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/CycloneDX/cyclonedx-go"
)

// ours begins the path of every module of this repository.
const ours = "github.com/tidb-groups/tidb-groups/"

// writeBill writes the bill of materials of an operator: what the binaries of all
// platforms, those of its tools too, say they were built from.
func writeBill(dir string, op operator, version string) error {
	var infos []*debug.BuildInfo
	for _, spec := range op.platforms {
		for _, f := range spec.Files {
			if f.Source == "" {
				continue
			}
			info, err := buildinfo.ReadFile(f.Source)
			if err != nil {
				return fmt.Errorf("read what %s was built from: %w", f.Path, err)
			}
			infos = append(infos, info)
		}
	}
	var text bytes.Buffer
	encoder := cyclonedx.NewBOMEncoder(&text, cyclonedx.BOMFileFormatJSON).SetPretty(true)
	if err := encoder.Encode(buildBOM(op.title(), version, infos)); err != nil {
		return fmt.Errorf("write bill of materials of %s: %w", op.title(), err)
	}
	if err := os.WriteFile(filepath.Join(dir, op.title()+".cdx.json"), text.Bytes(), 0o644); err != nil {
		return fmt.Errorf("write bill of materials of %s: %w", op.title(), err)
	}
	return nil
}

// buildBOM lists the modules of an operator. It has neither a time nor a serial number:
// both would differ from run to run.
func buildBOM(title, version string, infos []*debug.BuildInfo) *cyclonedx.BOM {
	modules := map[string]cyclonedx.Component{}
	add := func(path, version string) {
		c := libraryComponent(path, version)
		modules[c.BOMRef] = c
	}
	for _, info := range infos {
		add("stdlib", strings.TrimPrefix(info.GoVersion, "go"))
		for _, m := range append([]*debug.Module{&info.Main}, info.Deps...) {
			if m.Replace != nil && !strings.HasPrefix(m.Path, ours) {
				m = m.Replace
			}
			if strings.HasPrefix(m.Path, ours) {
				add(m.Path, version)
			} else {
				add(m.Path, m.Version)
			}
		}
	}
	components := make([]cyclonedx.Component, 0, len(modules))
	for _, c := range modules {
		components = append(components, c)
	}
	slices.SortFunc(components, func(a, b cyclonedx.Component) int { return cmp.Compare(a.BOMRef, b.BOMRef) })
	out := cyclonedx.NewBOM()
	out.Components = &components
	out.Metadata = &cyclonedx.Metadata{Component: &cyclonedx.Component{
		BOMRef: title, Type: cyclonedx.ComponentTypeApplication, Name: title, Version: version,
		Licenses: &cyclonedx.Licenses{{License: &cyclonedx.License{ID: license}}},
	}}
	return out
}

// libraryComponent is a Go module as a component.
func libraryComponent(path, version string) cyclonedx.Component {
	name := "pkg:golang/" + path + "@" + strings.ReplaceAll(version, "+", "%2B")
	return cyclonedx.Component{BOMRef: name, Type: cyclonedx.ComponentTypeLibrary, Name: path, Version: version, PackageURL: name}
}
