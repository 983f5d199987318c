// Package founding keeps what must not be forgotten while PD's cluster is being
// founded. Two founders that start on empty volumes found a cluster, whatever
// others have founded before; until the cluster's ID is known, nothing else tells
// that there has been one.
package founding

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

// Flag is the argument of a member that founds the cluster with those that it
// lists.
const Flag = "--initial-cluster="

// Variable is the environment variable in which a member that was made to found gets
// the argument that it starts with: Flag, or that it joins. It is read from
// v1alpha1.AnnotationStart of the pod whenever the container starts.
const Variable = "TIDB_GROUPS_START"

// Reference is the argument that Variable takes the place of.
const Reference = "$(" + Variable + ")"

// Started reports whether an Instance may have had a pod that started: its
// claims are recorded before the pod is made.
func Started(i *v1alpha1.Instance) bool {
	return i.Status.PodUID != "" || slices.ContainsFunc(i.Status.Volumes, func(v v1alpha1.VolumeStatus) bool { return v.ClaimUID != "" })
}

// Arg returns the argument that an Instance founds the cluster with, empty if it
// does not.
func Arg(i *v1alpha1.Instance) string {
	arg, _ := Start(i)
	return arg
}

// Start returns what Arg does, and whether the member has its argument from an
// annotation of its pod.
func Start(i *v1alpha1.Instance) (arg string, asks bool) {
	// Of a template only what is looked at is decoded: it is asked for all the time.
	var template struct {
		Metadata struct {
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
		Spec struct {
			Containers []struct {
				Args []string `json:"args"`
			} `json:"containers"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(i.Spec.PodTemplate.Raw, &template); err != nil {
		return "", false // the planner fails on it with a better word
	}
	start := template.Metadata.Annotations[v1alpha1.AnnotationStart]
	asks = start != ""
	if strings.HasPrefix(start, Flag) {
		return start, asks
	}
	for _, c := range template.Spec.Containers {
		for _, arg := range c.Args {
			if strings.HasPrefix(arg, Flag) {
				return arg, asks
			}
		}
	}
	return "", asks
}

// Record returns the founders that are to stand in status.founders: those before
// and every Instance, but for one that is being deleted and never started. It is
// written down before that Instance is let go.
func Record(before []v1alpha1.PDFounder, instances []*v1alpha1.Instance) []v1alpha1.PDFounder {
	out := slices.Clone(before)
	for _, i := range instances {
		if i.DeletionTimestamp != nil && !Started(i) {
			out = slices.DeleteFunc(out, func(f v1alpha1.PDFounder) bool { return f.UID == i.UID })
			continue
		}
		if !slices.ContainsFunc(out, func(f v1alpha1.PDFounder) bool { return f.Name == i.Name }) {
			out = append(out, v1alpha1.PDFounder{Name: i.Name, UID: i.UID})
		}
	}
	slices.SortFunc(out, func(a, b v1alpha1.PDFounder) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// Listed reports whether an Instance is among the founders.
func Listed(founders []v1alpha1.PDFounder, i *v1alpha1.Instance) bool {
	return slices.ContainsFunc(founders, func(f v1alpha1.PDFounder) bool { return f.UID == i.UID })
}

// Lost returns the names of founders that do not exist any more and were not let
// go: their finalizers were taken off by hand.
func Lost(founders []v1alpha1.PDFounder, instances []*v1alpha1.Instance) []string {
	var out []string
	for _, f := range founders {
		if !slices.ContainsFunc(instances, func(i *v1alpha1.Instance) bool { return i.UID == f.UID }) {
			out = append(out, f.Name)
		}
	}
	return out
}
