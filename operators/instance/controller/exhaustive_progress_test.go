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
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// enough steps lead from any state to where nothing is left to do.
const enough = 16

// TestEveryStateArrives carries the plan of every state out, again and again, in
// a world that does its part, until the Instance is what its spec asks for, is
// gone, or says what a person must do.
func TestEveryStateArrives(t *testing.T) {
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
		// A person is told what to do.
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
		ours := slices.Contains(s.instance.Finalizers, v1alpha1.FinalizerInstance)
		if s.instance.DeletionTimestamp != nil && !ours {
			if slices.Equal(s.instance.Finalizers, []string{"example.com/x"}) {
				return "held by others", steps
			}
			return "gone", steps
		}
		p := makePlan(s)
		s = carryOut(s, p)
		moved := surround(s)
		switch {
		case actions(p) != "" || moved:
		case p.outcome.Reason == v1alpha1.ReasonCreating: // its record is written
		case p.outcome.Kind == step.KindDone:
			return "arrived", steps
		default:
			return fmt.Sprintf("%s %s", p.outcome.Kind, p.outcome.Reason), steps
		}
	}
	return "it goes round in circles", enough
}

// carryOut returns the state after a plan, and the status that goes with it, have
// been written.
func carryOut(s *snapshot, p *plan) *snapshot {
	next, i := *s, *s.instance
	next.instance, next.volumes = &i, slices.Clone(s.volumes)
	i.Finalizers = slices.Clone(i.Finalizers)
	if p.addFinalizer {
		i.Finalizers = append(i.Finalizers, v1alpha1.FinalizerInstance)
	}
	if p.removeFinalizer {
		i.Finalizers = without(i.Finalizers, v1alpha1.FinalizerInstance)
	}
	for _, c := range p.createClaims {
		claim := c.claim.DeepCopy()
		claim.UID, claim.Status.Phase = types.UID("new-"+claim.Name), corev1.ClaimPending
		next.volumes[c.index].claim = claim
	}
	for at, v := range next.volumes {
		for _, c := range p.patchClaims {
			if c.claim == v.claim {
				next.volumes[at].claim = v.claim.DeepCopy()
				merge(&next.volumes[at].claim.ObjectMeta, c.body)
			}
		}
		for _, d := range p.deleteClaims {
			if d.claim == v.claim {
				next.volumes[at].claim = v.claim.DeepCopy()
				next.volumes[at].claim.DeletionTimestamp = ptr.To(metav1.NewTime(clock()))
			}
		}
	}
	switch {
	case p.createPod != nil:
		next.pod = p.createPod.DeepCopy()
		next.pod.UID, next.pod.Status.Phase = "new-pod", corev1.PodPending
	case p.patchPod != nil:
		next.pod = s.pod.DeepCopy()
		merge(&next.pod.ObjectMeta, p.patchPod.body)
	case p.deletePod != nil:
		next.pod = s.pod.DeepCopy()
		next.pod.DeletionTimestamp = ptr.To(metav1.NewTime(clock()))
	}
	for at, v := range volumeStatus(&next, p) {
		next.volumes[at].recorded = v.ClaimUID
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

// surround does what everybody else does: scheduler and kubelet, the volumes'
// provisioner, the garbage collector and the group's operator. It says whether
// anything was left to do.
func surround(s *snapshot) bool {
	moved := false
	if s.pod != nil && s.pod.DeletionTimestamp != nil {
		s.pod, moved = nil, true
	}
	for at, v := range s.volumes {
		if v.claim != nil && v.claim.DeletionTimestamp != nil && (s.pod == nil || s.pod.Spec.NodeName == "") {
			s.volumes[at].claim, moved = nil, true
		}
	}
	if p := s.pod; p != nil && p.Spec.NodeName == "" && !slices.ContainsFunc(s.volumes, func(v volume) bool { return v.claim == nil }) {
		s.pod, moved = p.DeepCopy(), true
		s.pod.Spec.NodeName, s.pod.Status.Phase = "n1", corev1.PodRunning
		for at, v := range s.volumes {
			s.volumes[at].claim = v.claim.DeepCopy()
			if v.claim.Status.Phase == corev1.ClaimPending {
				s.volumes[at].claim.Status.Phase, s.volumes[at].claim.Spec.VolumeName = corev1.ClaimBound, "pv"
			}
		}
	}
	if s.instance.DeletionTimestamp == nil {
		return moved
	}
	before := len(s.instance.Finalizers)
	if s.pod != nil && slices.Contains(s.instance.Finalizers, metav1.FinalizerOrphanDependents) {
		s.pod = s.pod.DeepCopy()
		s.pod.OwnerReferences = slices.DeleteFunc(s.pod.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == s.instance.UID })
	}
	s.instance.Finalizers = without(s.instance.Finalizers, v1alpha1.FinalizerMember, metav1.FinalizerOrphanDependents)
	return moved || len(s.instance.Finalizers) < before
}

func without(list []string, gone ...string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return slices.Contains(gone, s) })
}
