package remedy

import (
	_ "embed" // the evidence
	"fmt"
	"regexp"
	"slices"

	"sigs.k8s.io/yaml"
)

// How a command is proved to be right.
const (
	// Pasted by a scenario, which then waits until it has helped.
	Pasted = "pasted"
	// DryRun by the API server, with what it changes, while its message stands in a scenario.
	DryRun = "dry-run"
	// Run as it is while its message stands in a scenario: it changes nothing.
	Run = "run"
	// Taken by kubectl, with made-up names: no scenario prints it.
	Taken = "taken"
)

// Evidence is why a text with a command is right.
type Evidence struct {
	// Says is the text, as it is in the source, with %s for what is filled in.
	Says string `json:"says"`
	// How it is proved: pasted, dry-run, run or taken.
	How string `json:"how"`
	// Scenarios that print it.
	Scenarios []string `json:"scenarios,omitempty"`
	// Tests that look for its words, where no scenario does.
	Tests []string `json:"tests,omitempty"`
	// Why no scenario prints it.
	Why string `json:"why,omitempty"`
}

//go:embed remedies.yaml
var remedies []byte

// ListEvidence returns the evidence of every text.
func ListEvidence() ([]Evidence, error) {
	var out []Evidence
	if err := yaml.UnmarshalStrict(remedies, &out); err != nil {
		return nil, fmt.Errorf("read remedies: %w", err)
	}
	return out, nil
}

// Proof is what a scenario is the evidence of.
type Proof struct {
	all      []Evidence
	patterns []*regexp.Regexp
}

// ProofOf returns what the scenario of a name is the evidence of.
func ProofOf(scenario string) (Proof, error) {
	all, err := ListEvidence()
	if err != nil {
		return Proof{}, err
	}
	var out Proof
	for _, e := range all {
		if !slices.Contains(e.Scenarios, scenario) {
			continue
		}
		pattern, err := CompilePattern(e.Says)
		if err != nil {
			return Proof{}, err
		}
		out.all, out.patterns = append(out.all, e), append(out.patterns, pattern)
	}
	return out, nil
}

// Covers reports whether the scenario is the evidence of a message.
func (p Proof) Covers(message string) bool {
	return slices.ContainsFunc(p.patterns, func(pattern *regexp.Regexp) bool { return pattern.MatchString(message) })
}

// Missing returns the texts that the scenario has not pasted, or whose commands were not
// tried while they stood, as it should have come to.
func (p Proof) Missing(tried, pasted []string) []string {
	var out []string
	for n, e := range p.all {
		seen := p.patterns[n].MatchString
		switch {
		case slices.ContainsFunc(pasted, seen):
		case e.How == Pasted:
			out = append(out, fmt.Sprintf("it pastes no command of a message %q, as remedies.yaml says", e.Says))
		case !slices.ContainsFunc(tried, seen):
			out = append(out, fmt.Sprintf("no status says %q, as remedies.yaml says", e.Says))
		}
	}
	return out
}
