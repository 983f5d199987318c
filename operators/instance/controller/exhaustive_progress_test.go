package controller

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/instance/observation"
	"github.com/tidb-groups/tidb-groups/operators/instance/planning"
	"github.com/tidb-groups/tidb-groups/operators/instance/volumeclaim"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// enough steps lead from any state to where nothing is left to do.
const enough = 16

// TestEveryStateConverges carries the plan of every state out, again and again, in
// a world that does its part, until the Instance is what its spec asks for, is
// gone, or says what a user must do.
func TestEveryStateConverges(t *testing.T) {
	k := newStock(t)
	all := []space{
		{"alive", allPods(), nil, alive(), false, subsets("suspended", "recreate", "classless", "retire")},
		{"being deleted", allPods(), nil, dying(), true, subsets("suspended", "retire", "whenDeleted", "whenScaled")},
	}
	total, longest := 0, 0
	ends := map[string]int{}
	for _, space := range all {
		space.claims = [][]claimState{nil}
		for _, c := range allClaims() {
			space.claims = append(space.claims, []claimState{c})
		}
		bad := 0
		space.each(func(st state) {
			total++
			end, steps := k.follow(st)
			ends[end]++
			longest = max(longest, steps)
			if !arrivals()[end] || (st.deleting && end != "gone" && end != "held by others") {
				if bad++; bad <= complaints {
					t.Errorf("%s: after %d steps: %s", st, steps, end)
				}
			}
		})
		assert.Zero(t, bad, "states of %q that do not arrive", space.name)
	}
	t.Logf("ends: %v", ends)
	fmt.Printf("exhaustive: Instance: %d states followed to their end, of at most %d steps\n", total, longest)
}

// arrivals are the ways in which an Instance may come to rest.
func arrivals() map[string]bool {
	return map[string]bool{
		"arrived": true, "gone": true, "held by others": true,
		// A user is told what to do.
		"Stall " + v1alpha1.ReasonClaimLost: true, "Stall " + v1alpha1.ReasonClaimRetired: true, "Stall " + v1alpha1.ReasonClaimRejected: true,
		"Stall " + v1alpha1.ReasonPodOfAnotherOwner: true,
		// A claim that was deleted under a running pod goes when the pod does.
		"Wait " + v1alpha1.ReasonClaimTerminating: true,
	}
}

// follow carries plans out until nothing changes any more, and says how that
// ended.
func (k *stock) follow(st state) (end string, steps int) {
	s := k.snapshot(st)
	for steps = range enough {
		ours := slices.Contains(s.Instance.Finalizers, v1alpha1.FinalizerInstance)
		if s.Instance.DeletionTimestamp != nil && !ours {
			if slices.Equal(s.Instance.Finalizers, []string{"example.com/x"}) {
				return "held by others", steps
			}
			return "gone", steps
		}
		p := makePlan(s)
		s = carryOut(s, p)
		moved := changesWorld(s)
		switch {
		case actions(p) != "" || moved:
		case p.Outcome.Reason == v1alpha1.ReasonCreating: // its record is written
		case p.Outcome.Kind == step.KindDone:
			return "arrived", steps
		default:
			return fmt.Sprintf("%s %s", p.Outcome.Kind, p.Outcome.Reason), steps
		}
	}
	return "it goes round in circles", enough
}

// carryOut returns the state after a plan, and the status that goes with it, have
// been written.
func carryOut(s *observation.Snapshot, p *planning.Plan) *observation.Snapshot {
	next, i := *s, *s.Instance
	next.Instance, next.Volumes = &i, slices.Clone(s.Volumes)
	i.Finalizers = slices.Clone(i.Finalizers)
	if p.AddFinalizer {
		i.Finalizers = append(i.Finalizers, v1alpha1.FinalizerInstance)
	}
	if p.RemoveFinalizer {
		releaseFinalizers(s)(&i, v1alpha1.FinalizerInstance)
	}
	for _, c := range p.CreateClaims {
		claim := c.Claim.DeepCopy()
		claim.UID, claim.Status.Phase = types.UID("new-"+claim.Name), corev1.ClaimPending
		next.Volumes[c.Index].Claim = claim
	}
	for at, v := range next.Volumes {
		for _, c := range p.PatchClaims {
			if c.Claim == v.Claim {
				next.Volumes[at].Claim = v.Claim.DeepCopy()
				merge(&next.Volumes[at].Claim.ObjectMeta, c.Body)
			}
		}
		for _, d := range p.DeleteClaims {
			if d.Claim == v.Claim {
				next.Volumes[at].Claim = v.Claim.DeepCopy()
				next.Volumes[at].Claim.DeletionTimestamp = ptr.To(metav1.NewTime(clock()))
			}
		}
	}
	switch {
	case p.CreatePod != nil:
		next.Pod = p.CreatePod.DeepCopy()
		next.Pod.UID, next.Pod.Status.Phase = "new-pod", corev1.PodPending
	case p.PatchPod != nil:
		next.Pod = s.Pod.DeepCopy()
		merge(&next.Pod.ObjectMeta, p.PatchPod.Body)
	case p.DeletePod != nil:
		next.Pod = s.Pod.DeepCopy()
		next.Pod.DeletionTimestamp = ptr.To(metav1.NewTime(clock()))
	}
	for at, v := range volumeclaim.Status(&next, p) {
		next.Volumes[at].Recorded = v.ClaimUID
	}
	return &next
}

// merge applies a merge patch of metadata.
func merge(meta *metav1.ObjectMeta, body map[string]any) {
	patch, _ := body["metadata"].(map[string]any)
	for field, into := range map[string]*map[string]string{"labels": &meta.Labels, "annotations": &meta.Annotations} {
		changes, _ := patch[field].(map[string]any)
		*into = maps.Clone(*into)
		for key, value := range changes {
			if *into == nil {
				*into = map[string]string{}
			}
			if text, ok := value.(string); ok {
				(*into)[key] = text
			} else {
				delete(*into, key)
			}
		}
	}
	if owners, ok := patch["ownerReferences"].([]metav1.OwnerReference); ok {
		meta.OwnerReferences = owners
	}
}

// changesWorld does what all other components do: scheduler and kubelet, the volumes'
// provisioner, the garbage collector and the group's operator. It says whether
// anything was left to do.
func changesWorld(s *observation.Snapshot) bool {
	moved := false
	if s.Pod != nil && s.Pod.DeletionTimestamp != nil {
		s.Pod, moved = nil, true
	}
	for at, v := range s.Volumes {
		if v.Claim != nil && v.Claim.DeletionTimestamp != nil && (s.Pod == nil || s.Pod.Spec.NodeName == "") {
			s.Volumes[at].Claim, moved = nil, true
		}
	}
	if p := s.Pod; p != nil && p.Spec.NodeName == "" && !slices.ContainsFunc(s.Volumes, func(v observation.Volume) bool { return v.Claim == nil }) {
		s.Pod, moved = p.DeepCopy(), true
		s.Pod.Spec.NodeName, s.Pod.Status.Phase = "n1", corev1.PodRunning
		for at, v := range s.Volumes {
			s.Volumes[at].Claim = v.Claim.DeepCopy()
			if v.Claim.Status.Phase == corev1.ClaimPending {
				s.Volumes[at].Claim.Status.Phase, s.Volumes[at].Claim.Spec.VolumeName = corev1.ClaimBound, "pv"
			}
		}
	}
	if s.Instance.DeletionTimestamp == nil {
		return moved
	}
	before := len(s.Instance.Finalizers)
	if s.Pod != nil && slices.Contains(s.Instance.Finalizers, metav1.FinalizerOrphanDependents) {
		s.Pod = s.Pod.DeepCopy()
		s.Pod.OwnerReferences = slices.DeleteFunc(s.Pod.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == s.Instance.UID })
	}
	s.Instance.Finalizers = without(s.Instance.Finalizers, metav1.FinalizerOrphanDependents)
	if !s.Ownerless {
		s.Instance.Finalizers = without(s.Instance.Finalizers, v1alpha1.FinalizerMember)
	}
	return moved || len(s.Instance.Finalizers) < before
}

func without(list []string, gone ...string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return slices.Contains(gone, s) })
}
