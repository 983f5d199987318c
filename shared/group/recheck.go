package group

import (
	"cmp"
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/lease"
	"github.com/tidb-groups/tidb-groups/shared/operator"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// recheck is what a destructive step rests on.
type recheck struct {
	// instance that the step is about.
	instance string
	// still says by a new View why the step must not be done after all; empty if
	// it may.
	still func(now pd.View) string
}

// final lists the orders to PD that cannot be taken back.
func final() []CallVerb { return []CallVerb{DeleteMember, DeleteStore} }

// recheck notes what a preparation rests on, if what follows from it cannot be
// taken back: the permission to stop, the word that a member has left, or an
// order to remove it.
func (p *Plan) recheck(r Rendering, d Disruption, begun time.Time, planned Preparation) {
	stops := planned.Suspend || planned.Ready && (d.Verb == Restart || !planned.Stays && !drained(d.Instance))
	removes := slices.ContainsFunc(planned.Calls, func(c Call) bool { return slices.Contains(final(), c.Verb) })
	if r.Again == nil || !stops && !removes {
		return
	}
	p.rechecks = append(p.rechecks, recheck{d.Instance.Name, func(now pd.View) string {
		component := r.Again(now)
		if reason := cmp.Or(component.Safe(d), component.Transient(d)); reason != "" && component.Leased(d) {
			return reason
		}
		if anew := component.Prepare(d, begun); anew.Ready != planned.Ready || !slices.Equal(anew.Calls, planned.Calls) {
			return "PD says something else by now"
		}
		return ""
	}})
}

// recheckRecovery notes that a member has recovered: the next one depends on it.
func (p *Plan) recheckRecovery(r Rendering, i *v1alpha1.Instance, held lease.State) {
	if r.Again == nil {
		return
	}
	p.rechecks = append(p.rechecks, recheck{i.Name, func(now pd.View) string {
		if !r.Again(now).Recover(i, held).Ready {
			return "it has not recovered yet"
		}
		return ""
	}})
}

// recheckReturn notes that nothing has to be taken back of a removal that is not
// wanted any more.
func (p *Plan) recheckReturn(r Rendering, i *v1alpha1.Instance) {
	if r.Again == nil {
		return
	}
	p.rechecks = append(p.rechecks, recheck{i.Name, func(now pd.View) string {
		if unfinished(r.Again(now), i) {
			return "its removal is still to be taken back"
		}
		return ""
	}})
}

// recheckSwept notes that nothing of what was begun with a member is left in PD: the
// mark that tells of it goes, and the last answer may be older than the last order.
func (p *Plan) recheckSwept(g v1alpha1.Group, r Rendering, i *v1alpha1.Instance) {
	if r.Again == nil || g.GroupKind() == v1alpha1.KindPDGroup {
		return // PD leaves nothing of a member, and is not to be waited for
	}
	p.rechecks = append(p.rechecks, recheck{i.Name, func(now pd.View) string {
		if now.Err != nil || unfinished(r.Again(now), i) {
			return "what was begun with it is still to be taken back"
		}
		return ""
	}})
}

// recheckSpare notes that a member adds nothing and is stopped without further
// ado: it may have come back since.
func (p *Plan) recheckSpare(r Rendering, i *v1alpha1.Instance) {
	if r.Again == nil {
		return
	}
	p.rechecks = append(p.rechecks, recheck{i.Name, func(now pd.View) string {
		if !r.Again(now).Spare(i) {
			return "it works again"
		}
		return ""
	}})
}

// recheckDead notes that a member will never come back.
func (p *Plan) recheckDead(r Rendering, i *v1alpha1.Instance) {
	if r.Again == nil {
		return
	}
	p.rechecks = append(p.rechecks, recheck{i.Name, func(now pd.View) string {
		if r.Again(now).Dead(i) == "" {
			return "it is not dead after all"
		}
		return ""
	}})
}

// confirmPD asks PD right before what cannot be taken back, and lets none of it
// happen if the answer is not what the plan rests on. The new answer makes a new
// plan.
func confirmPD(ctx context.Context, env operator.Env, g v1alpha1.Group, plan Plan) step.Outcome {
	if len(plan.rechecks) == 0 || env.PD == nil {
		return step.Done()
	}
	now := env.PD.Ask(ctx, types.NamespacedName{Namespace: g.GetNamespace(), Name: g.PDGroupName()})
	for _, c := range plan.rechecks {
		if reason := c.still(now); reason != "" {
			clear(plan.Drained) // nobody is told so
			return step.Conflict(v1alpha1.ReasonUnsafe, "Instance "+c.instance+" is not disrupted: "+reason)
		}
	}
	return step.Done()
}
