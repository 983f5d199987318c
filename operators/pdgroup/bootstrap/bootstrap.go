package bootstrap

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

// Flag is the argument of a member that bootstraps the cluster with those that it
// lists.
const Flag = "--initial-cluster="

// Variable is the environment variable in which a member that was made to bootstrap gets
// the argument that it starts with: Flag, or that it joins. It is read from
// v1alpha1.AnnotationStart of the pod whenever the container starts.
const Variable = "TIDB_GROUPS_START"

// Reference is the argument of the template that Kubernetes replaces by the value of Variable.
const Reference = "$(" + Variable + ")"

// MayHaveStarted reports whether an Instance may have had a pod that started: its
// claims are recorded before the pod is made.
func MayHaveStarted(i *v1alpha1.Instance) bool {
	return i.Status.PodUID != "" || slices.ContainsFunc(i.Status.Volumes, func(v v1alpha1.VolumeStatus) bool { return v.ClaimUID != "" })
}

// BootstrapArgument returns the argument that an Instance bootstraps the cluster with, empty if it
// does not.
func BootstrapArgument(i *v1alpha1.Instance) string {
	arg, _ := StartArgument(i)
	return arg
}

// StartArgument returns what Arg does, and whether the member takes its argument from an annotation
// of its pod.
func StartArgument(i *v1alpha1.Instance) (arg string, annotated bool) {
	// Only what is needed is decoded, for this is called in every reconcile.
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
		return "", false // the planner fails on it with a better message
	}
	start := template.Metadata.Annotations[v1alpha1.AnnotationStart]
	annotated = start != ""
	if strings.HasPrefix(start, Flag) {
		return start, annotated
	}
	for _, c := range template.Spec.Containers {
		for _, arg := range c.Args {
			if strings.HasPrefix(arg, Flag) {
				return arg, annotated
			}
		}
	}
	return "", annotated
}

// RecordInitial returns the initial members for status.initialMembers: those before and every
// Instance, but for one that is being deleted and never started. The record is written before
// that Instance's finalizer is removed.
func RecordInitial(before []v1alpha1.PDInitialMember, instances []*v1alpha1.Instance) []v1alpha1.PDInitialMember {
	out := slices.Clone(before)
	for _, i := range instances {
		if i.DeletionTimestamp != nil && !MayHaveStarted(i) {
			out = slices.DeleteFunc(out, func(m v1alpha1.PDInitialMember) bool { return m.UID == i.UID })
			continue
		}
		if !slices.ContainsFunc(out, func(m v1alpha1.PDInitialMember) bool { return m.Name == i.Name }) {
			out = append(out, v1alpha1.PDInitialMember{Name: i.Name, UID: i.UID})
		}
	}
	slices.SortFunc(out, func(a, b v1alpha1.PDInitialMember) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// IsInitial reports whether an Instance is among the initial members.
func IsInitial(initial []v1alpha1.PDInitialMember, i *v1alpha1.Instance) bool {
	return slices.ContainsFunc(initial, func(m v1alpha1.PDInitialMember) bool { return m.UID == i.UID })
}

// FindRemoved returns the names of initial members whose Instances are gone although the operator
// has not removed their finalizers: a user did.
func FindRemoved(initial []v1alpha1.PDInitialMember, instances []*v1alpha1.Instance) []string {
	var out []string
	for _, m := range initial {
		if !slices.ContainsFunc(instances, func(i *v1alpha1.Instance) bool { return i.UID == m.UID }) {
			out = append(out, m.Name)
		}
	}
	return out
}
