package mutants

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"
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
	Edits []Edit `json:"edits"`
	// Module and Package of the test, e2e and ./rig if empty.
	Module  string `json:"module,omitempty"`
	Package string `json:"package,omitempty"`
	// Test is what must fail, as go test -run takes it.
	Test string `json:"test"`
	// Says is a regular expression for a line of what the test says.
	Says string `json:"says"`
}

// Edit replaces a piece of text in a file of the tree.
type Edit struct {
	// File from the root of the tree, with slashes.
	File string `json:"file"`
	// Old occurs exactly once in the file.
	Old string `json:"old"`
	// New takes its place.
	New string `json:"new"`
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
	_, err := m.apply(root)
	return err
}

// apply returns the changed files' content, by their path from the root.
func (m Mutant) apply(root string) (map[string]string, error) {
	out := map[string]string{}
	for _, e := range m.Edits {
		text, again := out[e.File]
		if !again {
			raw, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(e.File)))
			if err != nil {
				return nil, fmt.Errorf("read what is to be changed: %w", err)
			}
			text = string(raw)
		}
		if n := strings.Count(text, e.Old); n != 1 {
			return nil, fmt.Errorf("%s has the old text %d times and not once: %q", e.File, n, e.Old)
		}
		if e.Old == e.New {
			return nil, fmt.Errorf("the edit of %s changes nothing", e.File)
		}
		out[e.File] = strings.Replace(text, e.Old, e.New, 1)
	}
	return out, nil
}
