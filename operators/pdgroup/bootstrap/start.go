package bootstrap

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/names"
	"github.com/tidb-groups/tidb-groups/shared/observation"
)

// StartsAsInitial reports whether the member of a slot starts as an initial member: each
// that is one before there is a cluster, and afterwards one that has never run. PD lists such a one
// by name and without client URLs, waits for it, and refuses to let it join. While PD does
// not say, an initial member stays one. before is the argument that the member bootstrapped
// with, empty if it has none: it never changes, however many join later.
func StartsAsInitial(g *v1alpha1.PDGroup, s observation.Snapshot, slot int32, before string) bool {
	if !IsBootstrapped(g, s) {
		return before != "" || slices.Contains(InitialMembers(g, s), slot)
	}
	if IsPDUsable(g, s) {
		member, listed := s.PD.Member(names.Instance(g.Name, slot))
		return listed && member.ClientURL == ""
	}
	return before != ""
}

// InitialSlots returns the slots that an initial member lists, of which it is one. Once
// there is a cluster these are the members that PD lists: none joins while an initial
// member has still to start.
func InitialSlots(g *v1alpha1.PDGroup, s observation.Snapshot) []int32 {
	if !IsBootstrapped(g, s) {
		return InitialCluster(g, s)
	}
	var out []int32
	for _, m := range s.PD.Members {
		if slot, ours := names.Slot(g.Name, m.Name); ours {
			out = append(out, slot)
		}
	}
	slices.Sort(out)
	return out
}

// JoinFlag is the flag of a member that joins a cluster.
const JoinFlag = "--join="

// Startup is how a member starts.
type Startup struct {
	// Bootstraps says that it bootstraps the cluster, with the members of the slots in
	// InitialCluster.
	Bootstraps     bool
	InitialCluster []int32
	// Before is the argument that it bootstrapped with; empty if it has none.
	Before string
	// Asked says that it asks its pod.
	Asked bool
}

// SetArgument changes a template into one that bootstraps the cluster, in which
// every initial member names all of them by their slots, or into one that joins it.
//
// A member that is made to bootstrap asks its pod how it starts (P2): an argument stays in a
// pod as long as the pod, but an annotation changes in it, and the kubelet reads it each
// time that it starts the container. So an initial member whose disk is lost under its pod
// joins as soon as there is a cluster.
func SetArgument(g *v1alpha1.PDGroup, template *corev1.PodTemplateSpec, s Startup) {
	argument := JoinFlag + names.PDURL(v1alpha1.SpecScheme(g), g.Name, g.Namespace, g.Spec.ClusterDomain, v1alpha1.PortPDClient)
	switch {
	case s.Bootstraps && s.Before != "":
		argument = s.Before
	case s.Bootstraps:
		members := make([]string, 0, len(s.InitialCluster))
		for _, slot := range s.InitialCluster {
			pod := names.Instance(g.Name, slot)
			members = append(members, fmt.Sprintf("%s=%s://%s:%d", pod, v1alpha1.SpecScheme(g), names.PodHost(pod, g.Name, g.Namespace, g.Spec.ClusterDomain), v1alpha1.PortPDPeer))
		}
		argument = Flag + strings.Join(members, ",")
	}
	template.Annotations = maps.Clone(template.Annotations)
	delete(template.Annotations, v1alpha1.AnnotationStart)
	for c := range template.Spec.Containers {
		container := &template.Spec.Containers[c]
		if container.Name != g.Component() {
			continue
		}
		arg := argument
		container.Env = slices.DeleteFunc(slices.Clone(container.Env), func(e corev1.EnvVar) bool { return e.Name == Variable })
		if s.Asked {
			arg = Reference
			container.Env = append(container.Env, corev1.EnvVar{Name: Variable, ValueFrom: &corev1.EnvVarSource{
				FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.annotations['" + v1alpha1.AnnotationStart + "']"},
			}})
			if template.Annotations == nil {
				template.Annotations = map[string]string{}
			}
			template.Annotations[v1alpha1.AnnotationStart] = argument
		}
		container.Args = slices.Clone(container.Args)
		for i, old := range container.Args {
			if strings.HasPrefix(old, JoinFlag) || strings.HasPrefix(old, Flag) || old == Reference {
				container.Args[i] = arg
			}
		}
	}
}
