package controller

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/gate"
	"github.com/tidb-groups/tidb-groups/shared/group"
	"github.com/tidb-groups/tidb-groups/shared/names"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// groupPlan is a group.Plan and what PD alone adds to it.
type groupPlan struct {
	group.Plan
	// ClusterID to record; empty while there is none.
	ClusterID string
}

// plan decides what to do about a PDGroup. It is pure.
func plan(g *v1alpha1.PDGroup, s group.Snapshot) (groupPlan, error) {
	template, files, problems := render(g)
	r := group.Rendering{
		Template: template, Problems: problems, Files: files,
		Inputs:         inputs(g),
		Services:       services(g),
		Gate:           gate.Result{Open: true},
		ReadinessGates: []string{v1alpha1.ConditionJoined, v1alpha1.ConditionHealthy},
		ClaimLoss:      v1alpha1.HoldOnClaimLoss,
		Adjust: func(slot int32, template *corev1.PodTemplateSpec) {
			foundOrJoin(g, template, founds(g, s, slot), foundArg(s, names.Instance(g.Name, slot)))
		},
		CreateLimit: func() (int, string) { return createLimit(g, s) },
		Safe:        func(i *v1alpha1.Instance) string { return safe(s, i) },
	}
	children, err := group.MakePlan(g, s, r)
	p := groupPlan{Plan: children, ClusterID: clusterID(g, s)}
	if mismatch := clusterIDMismatch(g, s); mismatch != "" {
		p.Outcome = step.Worst(step.Stall(v1alpha1.ReasonClusterIDMismatch, mismatch), p.Outcome)
	}
	return p, err
}

// founds reports whether the member of a slot starts as a founder: every one
// before there is a cluster, and afterwards a founder that has never run. PD
// lists such a one by name and without client URLs, waits for it, and refuses to
// let it join. While PD does not say, a founder stays one.
func founds(g *v1alpha1.PDGroup, s group.Snapshot, slot int32) bool {
	if !bootstrapped(g, s) {
		return true
	}
	name := names.Instance(g.Name, slot)
	if usable(g, s) {
		member, listed := s.PD.Member(name)
		return listed && member.ClientURL == ""
	}
	return foundArg(s, name) != ""
}

// foundArg returns the argument that an Instance founds the cluster with, empty
// if it does not. Who founded a cluster never changes, however many join later.
func foundArg(s group.Snapshot, name string) string {
	at := slices.IndexFunc(s.Instances, func(i *v1alpha1.Instance) bool { return i.Name == name })
	if at < 0 {
		return ""
	}
	var template corev1.PodTemplateSpec
	if err := json.Unmarshal(s.Instances[at].Spec.PodTemplate.Raw, &template); err != nil {
		// MakePlan fails on it with a better word.
		return ""
	}
	for _, c := range template.Spec.Containers {
		for _, arg := range c.Args {
			if strings.HasPrefix(arg, foundFlag) {
				return arg
			}
		}
	}
	return ""
}

// bootstrapped reports whether PD has a cluster ID that we know of. It never
// goes back: the ID in status is written once.
func bootstrapped(g *v1alpha1.PDGroup, s group.Snapshot) bool { return clusterID(g, s) != "" }

// clusterID returns the cluster ID in status or, if there is none yet, that of
// a PD that has a quorum.
func clusterID(g *v1alpha1.PDGroup, s group.Snapshot) string {
	if g.Status.ClusterID != "" {
		return g.Status.ClusterID
	}
	if s.PD.Err == nil && s.PD.HasQuorum() {
		return s.PD.ClusterID
	}
	return ""
}

// clusterIDMismatch says that the PD that answers is not the one of this group.
func clusterIDMismatch(g *v1alpha1.PDGroup, s group.Snapshot) string {
	if g.Status.ClusterID == "" || s.PD.Err != nil || s.PD.ClusterID == "" || s.PD.ClusterID == g.Status.ClusterID {
		return ""
	}
	return fmt.Sprintf("PD answers with cluster ID %s, but this group's is %s: a PD of another cluster answers on its name; stop it, or restore the claims of this group's members", s.PD.ClusterID, g.Status.ClusterID)
}

// createLimit lets all members of a new cluster start together, and later
// members join one at a time, each when those before it are healthy: every
// join changes what a majority is.
func createLimit(g *v1alpha1.PDGroup, s group.Snapshot) (int, string) {
	if !bootstrapped(g, s) {
		return int(g.GetReplicas()), ""
	}
	if clusterIDMismatch(g, s) != "" {
		return 0, "members join one at a time: waiting for this group's own PD to answer"
	}
	if gone := missing(g, s); gone > 0 {
		// PD knows them: starting them again changes no majority, and may be what
		// PD needs for one.
		return gone, "members that PD lists start again first"
	}
	for _, i := range s.Instances {
		if !group.InstanceReady(i) {
			return 0, fmt.Sprintf("members join one at a time: waiting for Instance %s", i.Name)
		}
	}
	if s.PD.Err != nil || !s.PD.HasQuorum() {
		return 0, "members join one at a time: waiting for PD to have a quorum"
	}
	return 1, "members join one at a time"
}

// missing counts the members that PD listed last and that have no Instance.
func missing(g *v1alpha1.PDGroup, s group.Snapshot) int {
	n := 0
	for _, m := range g.Status.Members {
		if m.Name != "" && !slices.ContainsFunc(s.Instances, func(i *v1alpha1.Instance) bool { return i.Name == m.Name }) {
			n++
		}
	}
	return n
}
