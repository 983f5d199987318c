package conditions

import (
	"cmp"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// Verdict is what an operator concludes about an object; Finish turns it into
// the core conditions.
type Verdict struct {
	// Serving says that the object does its work now.
	Serving bool
	// Summary is the message of Ready when it is True.
	Summary string
	// Outcome is why the object is not what its spec asks for; Done when it is.
	Outcome step.Outcome
	// NoteReason and Note report what is out of the ordinary on an object that is what
	// its spec asks for: the reason and the message of UpToDate then. Empty if nothing is.
	NoteReason, Note string
	// Unready is why the object does not serve, if that is not why it is not what its
	// spec asks for; Done if it is.
	Unready step.Outcome
	// Unpause and Resume report how a pause and a suspension end; empty for the fields
	// of the object itself.
	Unpause, Resume string
	// Paused says that spec.paused keeps the operator from acting.
	Paused bool
	// Suspended says that spec.suspended keeps the pods away.
	Suspended bool
}

// Finish sets Ready, UpToDate, Reconciling, Stalled and Paused from a verdict.
// No other place sets them.
func (s *Set) Finish(v Verdict) {
	o := v.Outcome
	if o.Kind != step.KindDone && o.Reason == "" {
		o.Reason = v1alpha1.ReasonProgressing
	}
	switch {
	case v.Suspended:
		s.MarkFalse(v1alpha1.ConditionReady, v1alpha1.ReasonSuspended, "suspended: "+cmp.Or(v.Resume, "set spec.suspended to false to start it again"))
	case v.Serving:
		s.MarkTrue(v1alpha1.ConditionReady, v1alpha1.ReasonReady, v.Summary)
	case v.Unready.Reason != "":
		s.MarkFalse(v1alpha1.ConditionReady, v.Unready.Reason, v.Unready.Message)
	case o.Kind == step.KindDone:
		s.MarkFalse(v1alpha1.ConditionReady, v1alpha1.ReasonNotReady, v.Summary)
	default:
		s.MarkFalse(v1alpha1.ConditionReady, o.Reason, o.Message)
	}
	was := meta.FindStatusCondition(s.old, v1alpha1.ConditionReady)
	if was != nil && was.Reason == v1alpha1.ReasonSuspended && s.Get(v1alpha1.ConditionReady).Reason != v1alpha1.ReasonSuspended {
		// For how long it is False tells others whether it comes back, and while suspended it could not.
		s.NotBefore(v1alpha1.ConditionReady, s.now)
	}
	switch {
	case o.Kind != step.KindDone:
		s.MarkFalse(v1alpha1.ConditionUpToDate, o.Reason, o.Message)
	case v.NoteReason != "":
		s.MarkTrue(v1alpha1.ConditionUpToDate, v.NoteReason, v.Note)
	default:
		s.MarkTrue(v1alpha1.ConditionUpToDate, v1alpha1.ReasonUpToDate, "everything matches the spec")
	}
	switch {
	case v.Paused:
		s.MarkTrue(v1alpha1.ConditionPaused, v1alpha1.ReasonPaused, "paused: "+cmp.Or(v.Unpause, "set spec.paused to false to go on"))
	case o.Kind == step.KindStall:
		s.MarkTrue(v1alpha1.ConditionStalled, o.Reason, o.Message)
	case o.Kind != step.KindDone:
		s.MarkTrue(v1alpha1.ConditionReconciling, o.Reason, o.Message)
	}
}
