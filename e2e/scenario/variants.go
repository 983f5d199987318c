package scenario

import (
	"slices"
	"strings"
)

// Variants returns the scenario itself, or, if one of its steps is a permute,
// one scenario for each order of it: every order, or a sample that is the same
// every time and spread evenly over all of them. A variant is named after its
// family and its order.
func (s Scenario) Variants(all bool) []Scenario {
	at := slices.IndexFunc(s.Steps, func(step Step) bool { return step.Permute != nil })
	if at < 0 {
		return []Scenario{s}
	}
	p := s.Steps[at].Permute
	parts := make([]Step, 0, len(p.Apply)+len(p.Start))
	labels := make([]string, 0, len(p.Apply)+len(p.Start))
	for _, name := range p.Apply {
		parts, labels = append(parts, Step{Apply: []string{name}}), append(labels, strings.TrimSuffix(name, ".yaml"))
	}
	for _, name := range p.Start {
		parts, labels = append(parts, Step{Start: []string{name}}), append(labels, name)
	}
	orders := computeFactorial(len(parts))
	n := orders
	if !all {
		n = min(n, p.Sample)
	}
	var out []Scenario
	for i := range n {
		order := nthPermutation(len(parts), i*orders/n)
		variant := s
		variant.Steps = slices.Clone(s.Steps[:at])
		var names []string
		for _, part := range order {
			variant.Steps = append(variant.Steps, parts[part])
			names = append(names, labels[part])
		}
		variant.Steps = append(variant.Steps, s.Steps[at+1:]...)
		variant.Name = s.Name + "/" + strings.Join(names, ",")
		out = append(out, variant.Variants(all)...)
	}
	return out
}

func computeFactorial(n int) int {
	out := 1
	for i := 2; i <= n; i++ {
		out *= i
	}
	return out
}

// nthPermutation returns the permutation of n things that has a rank in
// lexicographic order.
func nthPermutation(n, rank int) []int {
	left := make([]int, n)
	for i := range left {
		left[i] = i
	}
	out := make([]int, 0, n)
	for i := n; i > 0; i-- {
		at := rank / computeFactorial(i-1) % i
		out = append(out, left[at])
		left = slices.Delete(left, at, at+1)
	}
	return out
}
