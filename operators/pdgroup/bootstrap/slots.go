package bootstrap

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/names"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/workload"
)

// quorumTimeout is how long members that start on the claims of former ones may
// take to get a quorum before status says what may be missing.
const quorumTimeout = 2 * time.Minute

// bindCompleted is the annotation that Kubernetes gives a claim when it has got its
// volume.
const bindCompleted = "pv.kubernetes.io/bind-completed"

// InitialMembers returns the slots of the members that are started with --initial-cluster:
// those that InitialCluster returns. If a group has taken over Instances of a former one,
// only these are, and slots with a claim that may hold data: what the others had is gone,
// and so is the record that they were there.
func InitialMembers(g *v1alpha1.PDGroup, s observation.Snapshot) []int32 {
	list := InitialCluster(g, s)
	if !slices.ContainsFunc(s.Instances, func(i *v1alpha1.Instance) bool {
		return workload.IsOwned(g, i) && i.CreationTimestamp.Before(&g.CreationTimestamp)
	}) {
		return list
	}
	back := boundSlots(g, s, SlotsWithData(g, s))
	return slices.DeleteFunc(list, func(slot int32) bool {
		return s.Instance(names.Instance(g.Name, slot)) == nil && !slices.Contains(back, slot)
	})
}

// InitialCluster returns the slots that every initial member lists. While a group has no
// Instance these are the slots in which claims of former members are left, or the first
// ones if there are none: beside data, members with empty volumes could be a majority of
// the list and bootstrap a second cluster. It is decided once, and the Instances' arguments
// tell it from then on. If a group has taken over Instances which join a cluster, no member
// bootstraps one. A claim without a volume has no data, so that beside one that has a
// volume it bootstraps nothing.
func InitialCluster(g *v1alpha1.PDGroup, s observation.Snapshot) []int32 {
	own := false
	for _, i := range s.Instances {
		if !workload.IsOwned(g, i) {
			continue
		}
		own = true
		if arg := BootstrapArgument(i); arg != "" {
			return slotsOf(g, arg)
		}
	}
	if own {
		return nil
	}
	if kept := SlotsWithData(g, s); len(kept) > 0 {
		return boundSlots(g, s, kept)
	}
	var out []int32
	for slot := int32(0); len(out) < int(g.GetReplicas()); slot++ {
		if !s.RetiredSlots[slot] {
			out = append(out, slot)
		}
	}
	return out
}

// looked is for how many slots at least claims are looked for by name: as many as a
// PD cluster may sensibly have members, of which the spec may have fewer by now.
const looked = 7

// IsUndecided reports whether no member has begun to bootstrap a group's cluster yet: which one does
// depends on the claims that there are.
func IsUndecided(g *v1alpha1.PDGroup, s observation.Snapshot) bool {
	return g.Status.ClusterID == "" && g.DeletionTimestamp == nil && !slices.ContainsFunc(s.Instances, func(i *v1alpha1.Instance) bool { return workload.IsOwned(g, i) })
}

// CandidateInstances returns the Instances on whose data the cluster might have been before.
func CandidateInstances(g *v1alpha1.PDGroup) []string {
	var out []string
	for slot := range max(g.GetReplicas(), looked) {
		out = append(out, names.Instance(g.Name, slot))
	}
	return out
}

// ForeignClaims stalls while a claim stands under the name of a member that might bootstrap the
// cluster, and it is unknown whether it holds a member's data: bootstrapping beside it
// would make a second cluster of it.
func ForeignClaims(g *v1alpha1.PDGroup, s observation.Snapshot) step.Outcome {
	if len(s.ForeignClaims) == 0 || !IsUndecided(g, s) {
		return step.Done()
	}
	claim := s.ForeignClaims[0]
	instance := claim[len(DataClaim(g, "")):]
	others := ""
	if len(s.ForeignClaims) > 1 {
		others = "; likewise " + strings.Join(s.ForeignClaims[1:], ", ")
	}
	o := step.Stall(v1alpha1.ReasonClaimRejected, fmt.Sprintf("PD bootstrap blocked: claim %s has a member's name, but its owner is unknown: if it holds a member's data, for example after a restore: kubectl -n %s annotate pvc %s %s=%s --overwrite; "+
		"if the data is not needed: kubectl -n %s delete pvc %s%s", claim, g.Namespace, claim, v1alpha1.AnnotationAdopt, instance, g.Namespace, claim, others))
	o.After = claimRecheckPeriod
	return o
}

// claimRecheckPeriod is after how long claims are looked for again: one that no operator
// has labelled wakes no reconcile when it changes.
const claimRecheckPeriod = 5 * time.Second

// StartingSlots returns the slots whose members start while PD's cluster ID is not known:
// the initial members and, if claims of further members turn up, these as well. The
// latter are started with --join, by which no cluster is bootstrapped.
func StartingSlots(g *v1alpha1.PDGroup, s observation.Snapshot) []int32 {
	out := append(InitialMembers(g, s), SlotsWithData(g, s)...)
	slices.Sort(out)
	return slices.Compact(out)
}

// SlotsWithData returns the slots in which a claim with a member's data is left that the
// slot would be started with, those in use included.
func SlotsWithData(g *v1alpha1.PDGroup, s observation.Snapshot) []int32 {
	var out []int32
	for name := range s.Claims {
		slot, ok := names.Slot(g.Name, name)
		if claim := findDataClaim(g, s, name); ok && !s.RetiredSlots[slot] && claim != nil && claim.DeletionTimestamp == nil {
			out = append(out, slot)
		}
	}
	slices.Sort(out)
	return out
}

// boundSlots returns those of some slots whose claims have a volume; all if none has:
// claims that were restored may get theirs when the pods are made.
func boundSlots(g *v1alpha1.PDGroup, s observation.Snapshot, kept []int32) []int32 {
	out := slices.DeleteFunc(slices.Clone(kept), func(slot int32) bool {
		return findDataClaim(g, s, names.Instance(g.Name, slot)).Annotations[bindCompleted] == ""
	})
	if len(out) == 0 {
		return kept
	}
	return out
}

// findDataClaim returns the claim with the data of an Instance's member, nil if there is none.
func findDataClaim(g *v1alpha1.PDGroup, s observation.Snapshot, instance string) *metav1.ObjectMeta {
	claim := DataClaim(g, instance)
	at := slices.IndexFunc(s.Claims[instance], func(c metav1.ObjectMeta) bool { return c.Name == claim })
	if at < 0 {
		return nil
	}
	return &s.Claims[instance][at]
}

// DataClaim returns the name of the claim that an Instance's member has its data
// on: that of the volume without mounts.
func DataClaim(g *v1alpha1.PDGroup, instance string) string {
	for _, v := range g.Spec.Volumes {
		if len(v.Mounts) == 0 {
			return names.Claim(v.Name, instance)
		}
	}
	return ""
}

// slotsOf returns the slots of the members that an argument lists.
func slotsOf(g *v1alpha1.PDGroup, arg string) []int32 {
	var out []int32
	for member := range strings.SplitSeq(strings.TrimPrefix(arg, Flag), ",") {
		name, _, _ := strings.Cut(member, "=")
		if slot, ok := names.Slot(g.Name, name); ok {
			out = append(out, slot)
		}
	}
	slices.Sort(out)
	return out
}

// LeftByAnother names an Instance that another group of the name has left and that is not
// gone yet while it is undecided which members bootstrap; empty if there is none. Which claims
// it leaves is only known when it has gone.
func LeftByAnother(g *v1alpha1.PDGroup, s observation.Snapshot) string {
	left := ""
	for _, i := range s.Instances {
		if workload.IsOwned(g, i) {
			return ""
		}
		left = i.Name
	}
	return left
}

// CheckQuorum says that members which started on the claims of former ones get no quorum:
// the others' claims may be missing. Done if that is not so, or not known yet.
func CheckQuorum(g *v1alpha1.PDGroup, s observation.Snapshot) step.Outcome {
	if IsBootstrapped(g, s) || g.DeletionTimestamp != nil || g.Spec.Suspended || g.Spec.Paused {
		return step.Done()
	}
	var running []string
	newest := g.CreationTimestamp.Time // Instances may have been taken over
	crash := ""
	initial := InitialMembers(g, s)
	returned := len(initial) < len(InitialCluster(g, s))
	all := StartingSlots(g, s)
	interrupted := len(initial) > 0 && len(all) > len(initial)
	for _, slot := range all {
		name := names.Instance(g.Name, slot)
		i := s.Instance(name)
		if i == nil || !hasStartedContainer(i) {
			return step.Done()
		}
		claim := findDataClaim(g, s, name)
		returned = returned || claim != nil && claim.CreationTimestamp.Before(&i.CreationTimestamp)
		interrupted = interrupted && (slices.Contains(initial, slot) || claim != nil && isOlderThanInitial(g, s, claim, initial))
		running = append(running, name)
		if i.CreationTimestamp.After(newest) {
			newest = i.CreationTimestamp.Time
		}
		// A joining member crashes for lack of a quorum.
		if crash == "" && (BootstrapArgument(i) != "" || len(initial) == 0) {
			crash = describeCrash(i)
		}
	}
	if !returned {
		return step.Done()
	}
	if left := quorumTimeout - s.Now.Sub(newest); left > 0 {
		return step.Wait("PD", left+time.Second, v1alpha1.ReasonBootstrapping, "members that have come back look for a quorum")
	}
	o := step.Stall(v1alpha1.ReasonQuorumLost, crash+fmt.Sprintf("PD has no quorum with %s, the members that are left of a cluster that was here before: %s",
		strings.Join(running, ", "), describeRemedy(g, s, running, interrupted, crash != "")))
	o.After = recheckPeriod
	return o
}

// isOlderThanInitial reports whether a claim was there before all initial members: a member that has
// it and does not bootstrap had no data when that was decided. One that was restored later
// may have.
func isOlderThanInitial(g *v1alpha1.PDGroup, s observation.Snapshot, claim *metav1.ObjectMeta, initial []int32) bool {
	return !slices.ContainsFunc(initial, func(slot int32) bool {
		i := s.Instance(names.Instance(g.Name, slot))
		return i == nil || !claim.CreationTimestamp.Before(&i.CreationTimestamp)
	})
}

// hasStartedContainer reports whether the container of an Instance's pod has been started: what
// keeps others from it the Instance tells best.
func hasStartedContainer(i *v1alpha1.Instance) bool {
	pod := meta.FindStatusCondition(i.Status.Conditions, v1alpha1.ConditionPodReady)
	return pod != nil && (pod.Status == metav1.ConditionTrue || pod.Reason == v1alpha1.ReasonPodNotReady || pod.Reason == v1alpha1.ReasonContainerCrashing)
}

// describeCrash says that the container of an Instance stops, and how to see why; empty if
// it does not.
func describeCrash(i *v1alpha1.Instance) string {
	pod := meta.FindStatusCondition(i.Status.Conditions, v1alpha1.ConditionPodReady)
	if pod == nil || pod.Reason != v1alpha1.ReasonContainerCrashing {
		return ""
	}
	return fmt.Sprintf("Instance %s: %s; ", i.Name, pod.Message)
}

// describeRemedy says what a user may do for members that have no quorum. Their claims are
// only to be given up where others are missing: what keeps all of them from working,
// such as a mistake in the spec, is to be fixed with the data.
func describeRemedy(g *v1alpha1.PDGroup, s observation.Snapshot, running []string, interrupted, crash bool) string {
	const lost = "if they are lost for good, see docs/tasks/lost-quorum.md (claims that are missing)"
	var say string
	absent := missingClaims(g, s, running)
	if len(absent) > 0 {
		say = fmt.Sprintf("restore claims %s with their labels, if it had these members; %s", strings.Join(absent, ", "), lost)
	} else {
		say = fmt.Sprintf("their logs say what keeps them from it: kubectl -n %s logs %s; if there were more members, restore their claims, with their labels; %s", g.Namespace, running[0], lost)
	}
	// Where none is missing they may still find each other, and have data.
	if crash || len(absent) == 0 && !interrupted {
		return say
	}
	return say + fmt.Sprintf("; for an empty cluster, if none of these claims was restored, as from a snapshot: kubectl -n %s delete pvc %s --wait=false, then kubectl -n %s delete pdgroup %s, and create it again, if no TidbCluster does",
		g.Namespace, strings.Join(claimNames(g, running), " "), g.Namespace, g.Name)
}

// missingClaims returns the claims that may be restored.
func missingClaims(g *v1alpha1.PDGroup, s observation.Snapshot, running []string) []string {
	var out []string
	for slot := int32(0); slot < max(g.GetReplicas(), int32(len(running))); slot++ { //nolint:gosec // a few
		if name := names.Instance(g.Name, slot); !slices.Contains(running, name) && !s.RetiredSlots[slot] {
			out = append(out, DataClaim(g, name))
		}
	}
	return out
}

func claimNames(g *v1alpha1.PDGroup, instances []string) []string {
	var out []string
	for _, name := range instances {
		out = append(out, DataClaim(g, name))
	}
	return out
}
