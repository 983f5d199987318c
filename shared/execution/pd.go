package execution

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/operator"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/status"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// callsDeadline bounds all the calls of one plan.
const callsDeadline = 5 * time.Second

// callPD gives PD its orders, as many as it takes. What it refuses stays to be
// done and is named.
func callPD(ctx context.Context, env operator.Env, g v1alpha1.Group, calls []component.Call) step.Outcome {
	if len(calls) == 0 {
		return step.Done()
	}
	key := types.NamespacedName{Namespace: g.GetNamespace(), Name: g.PDGroupName()}
	c, err := env.PD.Client(key)
	if err != nil {
		return step.Fail(v1alpha1.ReasonRequestFailed, err)
	}
	ctx, cancel := context.WithTimeout(ctx, callsDeadline)
	defer cancel()
	worst, given := step.Done(), map[component.CallVerb][]string{}
	for _, order := range calls {
		if o := confirmOrder(ctx, env, g, order); o.Kind != step.KindDone {
			worst = step.Worst(worst, o)
			continue
		}
		if err := makeCall(ctx, c, order); err != nil {
			worst = step.Worst(worst, step.Fail(v1alpha1.ReasonRequestFailed, fmt.Errorf("%s %s for Instance %s: %w", order.Verb, order.Target, order.Instance, err)))
			continue
		}
		if order.Verb == component.EvictLeaders || order.Verb == component.StopEvictingLeaders || order.Verb == component.TransferLeader {
			// Part of a disruption, which is told, or answered by an annotation.
			status.Note(ctrl.LoggerFrom(ctx), status.About{Object: g, Reason: string(order.Verb)}, "%s %s for Instance %s", order.Verb, order.Target, order.Instance)
			continue
		}
		given[order.Verb] = append(given[order.Verb], fmt.Sprintf("%s for Instance %s", order.Target, order.Instance))
	}
	for _, verb := range slices.Sorted(maps.Keys(given)) {
		// One Event for all: of several with the same reason Kubernetes' recorder keeps the first text.
		env.Recorder.Eventf(g, nil, corev1.EventTypeNormal, string(verb), string(verb), "%s %s", verb, strings.Join(given[verb], ", "))
	}
	env.PD.Kick(key)
	return worst
}

// confirmOrder looks at the API server before PD is given an order that is taken back only by the
// note of it on the Instance: a cache that is old, such as of an operator that stood still while
// another one took over, may show a note that is gone.
func confirmOrder(ctx context.Context, env operator.Env, g v1alpha1.Group, c component.Call) step.Outcome {
	if !slices.Contains([]component.CallVerb{component.EvictLeaders, component.DeleteStore, component.DeleteMember}, c.Verb) {
		return step.Done()
	}
	var there v1alpha1.Instance
	err := env.Live.Get(ctx, client.ObjectKey{Namespace: g.GetNamespace(), Name: c.Instance}, &there)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return step.Fail(v1alpha1.ReasonRequestFailed, fmt.Errorf("get Instance %s: %w", c.Instance, err))
	case err != nil || there.Annotations[v1alpha1.AnnotationDisruption] == "":
		return step.Conflict(v1alpha1.ReasonProgressing, "Instance "+c.Instance+" has changed meanwhile")
	}
	return step.Done()
}

func makeCall(ctx context.Context, to pd.Client, c component.Call) error {
	switch c.Verb {
	case component.TransferLeader:
		return to.TransferLeader(ctx, c.Target)
	case component.DeleteMember:
		return to.DeleteMember(ctx, c.Target)
	case component.EvictLeaders:
		return to.EvictLeaders(ctx, c.Target)
	case component.StopEvictingLeaders:
		return to.StopEvictingLeaders(ctx, c.Target)
	case component.DeleteStore:
		return to.DeleteStore(ctx, c.Target)
	case component.RestoreStore:
		return to.RestoreStore(ctx, c.Target)
	}
	return fmt.Errorf("unknown order %s", c.Verb)
}
