package mutants

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/tidb-groups/tidb-groups/e2e/overlay"
)

//go:embed bugs/*.yaml
var files embed.FS

// Mutant is one deliberate bug.
type Mutant struct {
	// Name of the mutant, which is that of its file.
	Name string `json:"-"`
	// Bug is what is wrong, in a sentence.
	Bug string `json:"bug"`
	// Promise that the bug breaks.
	Promise string `json:"promise"`
	// Edits make the bug.
	Edits []overlay.Edit `json:"edits"`
	// Module and Package of the test, e2e and ./rig if empty.
	Module  string `json:"module,omitempty"`
	Package string `json:"package,omitempty"`
	// Test is what must fail, as go test -run takes it.
	Test string `json:"test"`
	// Says is a regular expression for a line of what the test says.
	Says string `json:"says"`
}

// All returns every mutant, by name.
func All() ([]Mutant, error) {
	entries, err := files.ReadDir("bugs")
	if err != nil {
		return nil, fmt.Errorf("list mutants: %w", err)
	}
	var out []Mutant
	for _, entry := range entries {
		text, err := files.ReadFile(path.Join("bugs", entry.Name()))
		if err != nil {
			return nil, fmt.Errorf("read mutant: %w", err)
		}
		m := Mutant{Name: strings.TrimSuffix(entry.Name(), ".yaml")}
		if err := yaml.UnmarshalStrict(text, &m); err != nil {
			return nil, fmt.Errorf("read mutant %s: %w", m.Name, err)
		}
		m.Module, m.Package = cmp.Or(m.Module, "e2e"), cmp.Or(m.Package, "./rig")
		out = append(out, m)
	}
	return out, nil
}

// promise is what a mutant may name as broken.
var promise = regexp.MustCompile(`^P([1-9]|1[0-2])$`)

// Check returns what is wrong with a mutant, given the root of the tree.
func (m Mutant) Check(root string) error {
	if m.Bug == "" || m.Test == "" || len(m.Edits) == 0 {
		return errors.New("bug, test and edits must be given")
	}
	if !promise.MatchString(m.Promise) {
		return fmt.Errorf("promise %q does not exist", m.Promise)
	}
	if _, err := regexp.Compile(m.Says); err != nil || m.Says == "" {
		return fmt.Errorf("says %q is no regular expression: %w", m.Says, err)
	}
	_, err := overlay.Apply(root, m.Edits)
	return err
}
