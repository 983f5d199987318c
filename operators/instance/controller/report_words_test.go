package controller

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/instance/observation"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// Of a pod's start operators act on the pod, its readiness, and which claims it was started with.
func TestOnlyMessagesOfAPodsStartAreDelayed(t *testing.T) {
	is := func(kind, reason string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: reason}
	}
	begun := func() part {
		return part{
			PodUID: "p", Conditions: []metav1.Condition{is(v1alpha1.ConditionPodReady, v1alpha1.ReasonPodPending), is(v1alpha1.ConditionVolumesReady, v1alpha1.ReasonClaimPending)},
			Volumes: []v1alpha1.VolumeStatus{{Name: "data", ClaimUID: "c", Phase: "Pending"}},
		}
	}
	for name, c := range map[string]struct {
		change func(s *part)
		waits  bool
	}{
		"a node": {func(s *part) {
			s.NodeName, s.PodIP, s.Conditions[0].Reason = "n", "ip", v1alpha1.ReasonPodNotReady
		}, true},
		"bound claims": {func(s *part) {
			s.Volumes[0].Phase, s.Volumes[0].PersistentVolume = "Bound", "pv"
			s.Conditions[1] = metav1.Condition{Type: v1alpha1.ConditionVolumesReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonVolumesReady}
		}, true},
		"a new pod": {func(s *part) { s.PodIsNew, s.PodUID, s.Revision, s.MadeFrom = true, "q", "r", "r" }, true},
		"that a new pod is ready, and its member is not": {func(s *part) {
			s.PodIsNew, s.PodUID = true, "q"
			s.Conditions[0] = metav1.Condition{Type: v1alpha1.ConditionPodReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonPodReady, LastTransitionTime: metav1.Unix(1, 0)}
		}, true},
		"that a new pod fails": {func(s *part) { s.PodIsNew, s.Conditions[0].Reason = true, v1alpha1.ReasonContainerCrashing }, false},
		"that it saw a new spec of a new pod": {func(s *part) {
			s.PodIsNew, s.PodUID, s.ObservedGeneration, s.Conditions[0].ObservedGeneration = true, "q", 2, 2
		}, true},
		"that it is deleted": {func(s *part) {
			s.IsGoing, s.ObservedGeneration, s.Conditions[0].ObservedGeneration = true, 2, 2
			s.Conditions[0].Reason = v1alpha1.ReasonPodTerminating
			s.Conditions = append(s.Conditions, is(v1alpha1.ConditionReconciling, v1alpha1.ReasonDeleting))
		}, true},
		"that its pod has stopped":  {func(s *part) { s.IsGoing, s.PodUID = true, "" }, false},
		"that its pod is ready yet": {func(s *part) { s.IsGoing, s.Conditions[0].Status = true, metav1.ConditionTrue }, false},
		"that a user must act on it": {func(s *part) {
			s.IsGoing, s.Conditions = true, append(s.Conditions, is(v1alpha1.ConditionStalled, "X"))
		}, false},
		"that it saw a new spec": {func(s *part) { s.ObservedGeneration = 2 }, false},
		"another pod":            {func(s *part) { s.PodUID = "q" }, false},
		"a revision":             {func(s *part) { s.Revision = "r" }, false},
		"readiness":              {func(s *part) { s.Conditions[0].Status = metav1.ConditionTrue }, false},
		"a pod without a node":   {func(s *part) { s.Conditions[0].Reason = v1alpha1.ReasonPodUnschedulable }, false},
		"a container that fails": {func(s *part) { s.Conditions[0].Reason = v1alpha1.ReasonContainerCrashing }, false},
		"a lost claim":           {func(s *part) { s.Volumes[0].Phase = "Lost" }, false},
		"why it is lost":         {func(s *part) { s.Conditions[1].Reason = v1alpha1.ReasonClaimLost }, false},
		"another claim":          {func(s *part) { s.Volumes[0].ClaimUID = "d" }, false},
		"its nodes":              {func(s *part) { s.Volumes[0].Nodes = []string{"n"} }, false},
	} {
		before, after := begun(), begun()
		c.change(&after)
		before.IsGoing = after.IsGoing
		if before.PodIsNew = after.PodIsNew; before.PodIsNew {
			before.PodUID = ""
		}
		before.DropWords()
		after.DropWords()
		assert.Equal(t, c.waits, equality.Semantic.DeepEqual(before, after), name)
	}
}

// Whether the pod of a suspended Instance has stopped others ask for its present spec.
func TestTheStatusOfADeletedInstanceIsDelayedUnlessItIsSuspended(t *testing.T) {
	for name, c := range map[string]struct {
		changes []func(*observation.Snapshot)
		goes    bool
	}{
		"it stays":                    {nil, false},
		"it is deleted":               {[]func(*observation.Snapshot){deleting}, true},
		"it is deleted and suspended": {[]func(*observation.Snapshot){deleting, suspended}, false},
	} {
		_, found := judge(t, step.Done(), c.changes...)
		assert.Equal(t, c.goes, found.after.IsGoing, name)
		assert.Equal(t, c.goes, found.before.IsGoing, name)
	}
}

// Others rely on it that a suspended Instance without a pod has stopped, and one that is deleted.
func TestOnlyANewPodThatStartsIsRecordedLater(t *testing.T) {
	unrecordedPod := func(s *observation.Snapshot) {
		s.Instance.Status.PodUID, s.Instance.Status.Conditions = "", []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, LastTransitionTime: metav1.Unix(1, 0)}}
	}
	unjudged := func(s *observation.Snapshot) { s.Instance.Status.PodUID, s.Instance.Status.Conditions = "", nil }
	noPod := func(s *observation.Snapshot) { s.Pod = nil }
	another := func(s *observation.Snapshot) { s.Instance.Status.PodUID = "another" }
	starts := waitingPod("ContainerCreating", "")
	for name, c := range map[string]struct {
		changes []func(*observation.Snapshot)
		later   bool
		// first status of the Instance, which waits too.
		first bool
	}{
		"that starts":              {[]func(*observation.Snapshot){unrecordedPod, starts}, true, false},
		"of a new Instance":        {[]func(*observation.Snapshot){unjudged, starts}, true, true},
		"that is not there":        {[]func(*observation.Snapshot){unjudged, noPod}, true, false},
		"that is ready":            {[]func(*observation.Snapshot){unjudged}, false, false},
		"in the place of another":  {[]func(*observation.Snapshot){another, starts}, false, false},
		"that waits for gates":     {[]func(*observation.Snapshot){unrecordedPod, gateOf(time.Time{})}, true, false},
		"of a suspended Instance":  {[]func(*observation.Snapshot){unjudged, starts, suspended}, false, false},
		"of one that is deleted":   {[]func(*observation.Snapshot){unjudged, starts, deleting}, false, false},
		"of one that drains first": {[]func(*observation.Snapshot){unjudged, starts, deleting, member}, false, false},
	} {
		_, found := judge(t, step.Done(), c.changes...)
		assert.Equal(t, c.later, found.after.PodIsNew, name)
		assert.Equal(t, c.later, found.before.PodIsNew, name)
		assert.Equal(t, c.first, found.after.IsFirst, name)
		assert.Equal(t, c.first, found.before.IsFirst, name)
	}
}
