package scenario

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/tidb-groups/tidb-groups/deploy"
	"github.com/tidb-groups/tidb-groups/e2e/faults"
	"github.com/tidb-groups/tidb-groups/e2e/objects"
	"github.com/tidb-groups/tidb-groups/e2e/scenarios"
)

// Load returns every scenario of e2e/scenarios, by name, as it is in its file.
func Load() ([]Scenario, error) {
	names, err := fs.Glob(scenarios.Files, "*.yaml")
	if err != nil {
		return nil, fmt.Errorf("list scenarios: %w", err)
	}
	var out []Scenario
	for _, name := range names {
		text, err := scenarios.Files.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("read scenario: %w", err)
		}
		s, err := Parse(text)
		if err == nil && s.Name+".yaml" != name {
			err = fmt.Errorf("its name is %q", s.Name)
		}
		if err != nil {
			return nil, fmt.Errorf("read scenario %s: %w", name, err)
		}
		out = append(out, s)
	}
	return out, nil
}

// Find returns one scenario by name; the name of a variant, such as
// "groups-in-every-order/pd,tikv", returns that variant.
func Find(name string) (Scenario, error) {
	all, err := Load()
	if err != nil {
		return Scenario{}, err
	}
	family, _, isVariant := strings.Cut(name, "/")
	for _, s := range all {
		switch {
		case s.Name != family:
			continue
		case !isVariant:
			return s, nil
		}
		for _, v := range s.Variants(true) {
			if v.Name == name {
				return v, nil
			}
		}
	}
	return Scenario{}, fmt.Errorf("there is no scenario %q", name)
}

// Parse reads a scenario and checks what can be checked without a world.
func Parse(text []byte) (Scenario, error) {
	var s Scenario
	if err := decodeYAML(text, &s); err != nil {
		return Scenario{}, err
	}
	for _, name := range s.Use {
		shared, err := readManifests(name)
		if err != nil {
			return Scenario{}, err
		}
		for key, m := range shared {
			if s.Manifests[key] != nil {
				return Scenario{}, fmt.Errorf("manifest %s is in use %s as well", key, name)
			}
			if s.Manifests == nil {
				s.Manifests = map[string]Manifest{}
			}
			s.Manifests[key] = m
		}
	}
	return s, s.validate()
}

// decodeYAML reads YAML, in which no field is unknown or given twice.
func decodeYAML(text []byte, into any) error {
	converted, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return err
	}
	strict, err := json.UnmarshalStrict(converted, into)
	return errors.Join(append(strict, err)...)
}

// readManifests reads manifests that several scenarios share.
func readManifests(name string) (map[string]Manifest, error) {
	text, err := scenarios.Files.ReadFile(path.Join("manifests", name+".yaml"))
	if err != nil {
		return nil, fmt.Errorf("read manifests: %w", err)
	}
	out := map[string]Manifest{}
	if err := decodeYAML(text, &out); err != nil {
		return nil, fmt.Errorf("read manifests %s: %w", name, err)
	}
	return out, nil
}

// readSample reads the objects of a file of deploy/samples.
func readSample(name string) ([]*unstructured.Unstructured, error) {
	files, err := deploy.Samples()
	if err != nil {
		return nil, fmt.Errorf("open samples: %w", err)
	}
	text, err := fs.ReadFile(files, name)
	if err != nil {
		return nil, fmt.Errorf("read sample: %w", err)
	}
	out, err := objects.Decode(text)
	if err != nil {
		return nil, fmt.Errorf("read sample %s: %w", name, err)
	}
	return out, nil
}

func (s Scenario) validate() error {
	switch {
	case s.Name == "", s.Shows == "", len(s.Bears) == 0, len(s.Steps) == 0:
		return errors.New("name, shows, bears and steps have to be set")
	}
	for _, world := range s.Worlds {
		if world != Rig && world != Containers {
			return fmt.Errorf("there is no world %q", world)
		}
	}
	for name, m := range s.Manifests {
		object := unstructured.Unstructured{Object: m}
		if object.GetAPIVersion() == "" || object.GetKind() == "" || object.GetName() == "" {
			return fmt.Errorf("manifest %s has no apiVersion, kind or metadata.name", name)
		}
	}
	if err := checkOperators(s.Options.Absent); err != nil {
		return err
	}
	if s.Options.Fault != "" {
		if fault, err := faults.Parse(s.Options.Fault); err != nil || !fault.Kind.StrikesAtEvent() {
			return fmt.Errorf("fault %q is none of a watch: %w", s.Options.Fault, err)
		}
	}
	if err := s.validateSteps(s.Steps); err != nil {
		return err
	}
	return validateWorkloads(s.Steps)
}

func (s Scenario) validateSteps(steps []Step) error {
	for i, step := range steps {
		if err := s.validateStep(step); err != nil {
			return fmt.Errorf("step %d: %w", i+1, err)
		}
	}
	return nil
}

func (s Scenario) validateStep(step Step) error {
	if verbs := step.verbs(); len(verbs) != 1 {
		return fmt.Errorf("a step has one verb, this one has %v", verbs)
	}
	apply := slices.Clone(step.Apply)
	if step.Permute != nil {
		apply = append(apply, step.Permute.Apply...)
		if err := checkOperators(step.Permute.Start); err != nil {
			return err
		}
		if step.Permute.Sample < 1 {
			return errors.New("a permute step has to say how many orders are a sample")
		}
	}
	if r := step.Refuse; r != nil {
		if r.Says == "" || (r.Apply == "") == (r.Patch == nil) {
			return errors.New("a refuse step has apply or patch, and says")
		}
		if r.Apply != "" {
			apply = append(apply, r.Apply)
		}
	}
	for _, name := range apply {
		if s.Manifests[name] != nil {
			continue
		}
		if !strings.HasSuffix(name, ".yaml") {
			return fmt.Errorf("there is no manifest %q", name)
		}
		if _, err := readSample(name); err != nil {
			return err
		}
	}
	if d := step.Delete; d != nil && !slices.Contains([]string{"", "background", "foreground", "orphan"}, d.Cascade) {
		return fmt.Errorf("there is no cascade %q", d.Cascade)
	}
	if p := step.Patch; p != nil && (p.Merge == nil) == (p.JSON == nil) {
		return errors.New("a patch is either merge or json")
	}
	if p := step.Paste; p != nil && (p.Command == "" || len(slices.DeleteFunc([]string{p.Condition, p.Path, p.Event}, func(from string) bool { return from == "" })) != 1) {
		return errors.New("a paste has a command, and condition, path or event")
	}
	if o := step.Operation; o != nil {
		if err := s.validateSteps(o.Steps); err != nil {
			return fmt.Errorf("operation %s: %w", o.Name, err)
		}
	}
	return checkOperators(slices.Concat(step.Start, step.Stop, step.Restart))
}

// checkOperators is content when every operator is one.
func checkOperators(names []string) error {
	for _, name := range names {
		if name != All && !slices.Contains(Operators(), name) {
			return fmt.Errorf("no operator is called %q", name)
		}
	}
	return nil
}
