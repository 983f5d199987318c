package bench

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/e2e/rig"
)

// AdapterMember says which pods of an operator are members of a simulated database. All others
// turn Ready and do nothing. All PDs of a StatefulSet bootstrap one cluster, and a store tells
// PD the name of its pod below the pod's headless Service.
type AdapterMember struct {
	// Component that the pods run: pd, tikv or tidb.
	Component string `json:"component"`
	// Selector of the pods by their labels, as kubectl takes it.
	Selector string `json:"selector"`
	// Service is the name of PD's Service, in which {label KEY} stands for a label of the pod.
	Service string `json:"service"`
}

var (
	placeLabel = regexp.MustCompile(`\{label ([^}]*)\}`)
	placeEnv   = regexp.MustCompile(`\{env ([^}]*)\}`)
)

// memberComponents are what pods of another operator may run.
func memberComponents() []string {
	return []string{v1alpha1.ComponentPD, v1alpha1.ComponentTiKV, v1alpha1.ComponentTiDB}
}

// check names what is missing or wrong.
func (m AdapterMember) check(field string) error {
	var errs []error
	if !slices.Contains(memberComponents(), m.Component) {
		errs = append(errs, fmt.Errorf("%s.component is %q: it may be %s", field, m.Component, strings.Join(memberComponents(), ", ")))
	}
	if _, err := labels.Parse(m.Selector); err != nil {
		errs = append(errs, fmt.Errorf("%s.selector is %q: %w: try app.kubernetes.io/component=pd", field, m.Selector, err))
	}
	if m.Selector == "" {
		errs = append(errs, fmt.Errorf("%s.selector is missing: labels of the pods, as in app.kubernetes.io/component=pd", field))
	}
	if m.Service == "" {
		errs = append(errs, fmt.Errorf("%s.service is missing: the name of PD's Service, as in {label app.kubernetes.io/instance}-pd", field))
	}
	return errors.Join(errs...)
}

// membership is what a rig is told.
func (m AdapterMember) membership() (rig.Membership, error) {
	selector, err := labels.Parse(m.Selector)
	if err != nil {
		return rig.Membership{}, fmt.Errorf("read the selector of %s: %w", m.Component, err)
	}
	return rig.Membership{Component: m.Component, Selector: selector, Service: func(pod map[string]string) string {
		return placeLabel.ReplaceAllStringFunc(m.Service, func(place string) string { return pod[placeLabel.FindStringSubmatch(place)[1]] })
	}}, nil
}

// expand puts values of the environment in place of {env NAME}, so that an adapter says nothing
// of where the files of an operator lie on a machine.
func (a *Adapter) expand() error {
	var errs []error
	fill := func(field, text string) string {
		return placeEnv.ReplaceAllStringFunc(text, func(place string) string {
			name := placeEnv.FindStringSubmatch(place)[1]
			value, set := os.LookupEnv(name)
			if !set {
				errs = append(errs, fmt.Errorf("%s has %s, and the environment has no %s: the head of the file should say what it is", field, place, name))
			}
			return value
		})
	}
	for i := range a.Apply {
		a.Apply[i] = fill(fmt.Sprintf("apply[%d]", i), a.Apply[i])
	}
	for i, p := range a.Processes {
		for at := range p.Command {
			p.Command[at] = fill(fmt.Sprintf("processes[%d].command[%d]", i, at), p.Command[at])
		}
		for name, value := range p.Env {
			p.Env[name] = fill(fmt.Sprintf("processes[%d].env.%s", i, name), value)
		}
	}
	return errors.Join(errs...)
}
