package conditions

import (
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
		s.False(v1alpha1.ConditionReady, v1alpha1.ReasonSuspended, "suspended: set spec.suspended to false to start it again")
	case v.Serving:
		s.True(v1alpha1.ConditionReady, v1alpha1.ReasonReady, v.Summary)
	case o.Kind == step.KindDone:
		s.False(v1alpha1.ConditionReady, v1alpha1.ReasonNotReady, v.Summary)
	default:
		s.False(v1alpha1.ConditionReady, o.Reason, o.Message)
	}
	if o.Kind == step.KindDone {
		s.True(v1alpha1.ConditionUpToDate, v1alpha1.ReasonUpToDate, "everything matches the spec")
	} else {
		s.False(v1alpha1.ConditionUpToDate, o.Reason, o.Message)
	}
	switch {
	case v.Paused:
		s.True(v1alpha1.ConditionPaused, v1alpha1.ReasonPaused, "paused: set spec.paused to false to go on")
	case o.Kind == step.KindStall:
		s.True(v1alpha1.ConditionStalled, o.Reason, o.Message)
	case o.Kind != step.KindDone:
		s.True(v1alpha1.ConditionReconciling, o.Reason, o.Message)
	}
}
