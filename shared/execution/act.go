package execution

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/apply"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/operator"
	"github.com/tidb-groups/tidb-groups/shared/planning"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/workload"
)

// Act carries a plan out and nothing else. It returns how that ended: Done
// leaves the word to the plan's own outcome.
func Act(ctx context.Context, env operator.Env, g v1alpha1.Group, s observation.Snapshot, plan planning.Plan) step.Outcome {
	refused, o := applyNeeded(ctx, env, g, s, plan)
	if o.Kind != step.KindDone {
		return step.Worst(o, refused)
	}
	return step.Worst(refused, changeMembers(ctx, env, g, s, plan))
}

// changeMembers carries out what a plan does with members.
func changeMembers(ctx context.Context, env operator.Env, g v1alpha1.Group, s observation.Snapshot, plan planning.Plan) step.Outcome {
	if o := ConfirmPD(ctx, env, g, plan); o.Kind != step.KindDone {
		return o
	}
	if o := confirmSuspendOrder(ctx, env, g, plan); o.Kind != step.KindDone {
		return o
	}
	if plan.Lease.Take != nil {
		if o := takeLease(ctx, env, g, s, plan.Lease); o.Kind != step.KindDone {
			return o
		}
	}
	wait, o := applyInstances(ctx, env, g, s, plan)
	if o.Kind != step.KindDone {
		return o
	}
	if o := step.Worst(callPD(ctx, env, g, plan.Calls), deleteObjects(ctx, env, g, plan)); o.Kind != step.KindDone {
		return o
	}
	if plan.Lease.Release {
		if o := releaseLease(ctx, env, g, s, plan.Lease); o.Kind != step.KindDone {
			return o
		}
	}
	if o := callPD(ctx, env, g, plan.Evictions); o.Kind == step.KindFail && plan.Outcome.Reason == v1alpha1.ReasonEvictingLeaders {
		// It blocks nothing: what is waited for reports why.
		return step.Wait("PD", plan.Outcome.After, plan.Outcome.Reason, plan.Outcome.Message+": "+o.Message)
	}
	return wait
}

// applyNeeded applies what the pods need to start, side by side. The revision comes last: that
// it is stored says that the Services are as they were rendered with it. refused is why a Service stays as
// it was; Done if none does. Members that were rendered with it wait for nothing.
func applyNeeded(ctx context.Context, env operator.Env, g v1alpha1.Group, s observation.Snapshot, plan planning.Plan) (refused, o step.Outcome) {
	kept := make([]step.Outcome, len(plan.Services))
	var all []func() step.Outcome
	for i, service := range plan.Services {
		all = append(all, func() step.Outcome {
			o := applyService(ctx, env, g, s, service)
			if s.Services[service.Name] == nil || plan.Revision != nil || o.Kind != step.KindFail && o.Kind != step.KindStall {
				return o
			}
			// A failure's own delay would be that of the members, too.
			kept[i] = step.Wait("Service", observation.RetryPeriod, o.Reason, o.Message)
			return step.Done()
		})
	}
	if plan.ConfigMap != nil {
		all = append(all, func() step.Outcome {
			return applyNew(ctx, env, g, plan.ConfigMap, workload.Selector(g))
		})
	}
	if plan.Budget != nil {
		all = append(all, func() step.Outcome { return applyBudget(ctx, env, g, s, plan.Budget) })
	}
	o = step.RunInParallel(all...)
	if o.Kind == step.KindDone && plan.Revision != nil {
		o = applyNew(ctx, env, g, plan.Revision, workload.Selector(g))
	}
	return step.Worst(kept...), o
}

// applyInstances applies the Instances, side by side. wait is what is to be waited for when
// all else of the plan is done; Done for nothing.
func applyInstances(ctx context.Context, env operator.Env, g v1alpha1.Group, s observation.Snapshot, plan planning.Plan) (wait, o step.Outcome) {
	results, taken := make([]apply.Result, len(plan.Instances)), make([]string, len(plan.Instances))
	var all []func() step.Outcome
	for i, change := range plan.Instances {
		all = append(all, func() step.Outcome {
			if o := confirmInstance(ctx, env, g, s, change); o.Kind != step.KindDone {
				return o
			}
			var err error
			if taken[i], err = retiredClaim(ctx, env, g, change); err != nil || taken[i] != "" {
				return outcomeOfError(err)
			}
			var o step.Outcome
			results[i], o = applyInstance(ctx, env, g, change)
			return o
		})
	}
	o = step.RunInParallel(all...)
	tellCreated(env, g, plan.Instances, results)
	if at := slices.IndexFunc(taken, func(claim string) bool { return claim != "" }); at >= 0 {
		return step.Wait("PersistentVolumeClaim", time.Second, v1alpha1.ReasonCreating,
			fmt.Sprintf("Instance %s is not created, because claim %s belongs to a member that has left: the next free slot is used in a moment", plan.Instances[at].Desired.Name, taken[at])), o
	}
	if at := slices.IndexFunc(results, func(r apply.Result) bool { return r == apply.Created || r == apply.Updated }); at >= 0 && plan.Outcome.Kind == step.KindDone {
		// The plan was made from the Instances' status of their old specs.
		return step.Wait("Instance", member.WaitDeadline, v1alpha1.ReasonProgressing, "Instance "+plan.Instances[at].Desired.Name+" has just been changed"), o
	}
	return step.Done(), o
}
