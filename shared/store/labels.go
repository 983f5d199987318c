package store

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/operator"
	"github.com/tidb-groups/tidb-groups/shared/placement"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// SetLabels sets labels in PD, of as many stores as it can.
func SetLabels(ctx context.Context, env operator.Env, g v1alpha1.Group, changes []placement.LabelChange) step.Outcome {
	if len(changes) == 0 {
		return step.Done()
	}
	key := types.NamespacedName{Namespace: g.GetNamespace(), Name: g.PDGroupName()}
	client, err := env.PD.Client(key)
	if err != nil {
		return step.Fail(v1alpha1.ReasonRequestFailed, err)
	}
	ctx, cancel := context.WithTimeout(ctx, placement.LabelsDeadline)
	defer cancel()
	worst := step.Done()
	for _, change := range changes {
		if err := client.SetStoreLabels(ctx, change.StoreID, change.Labels); err != nil {
			worst = step.Worst(worst, step.Fail(v1alpha1.ReasonRequestFailed, fmt.Errorf("set labels %s of store %s (Instance %s): %w", placement.LabelText(change.Labels), change.StoreID, change.Instance, err)))
			continue
		}
		env.Recorder.Eventf(g, nil, corev1.EventTypeNormal, "StoreLabelsSet", "SetStoreLabels", "Set labels %s of store %s (Instance %s)", placement.LabelText(change.Labels), change.StoreID, change.Instance)
	}
	env.PD.Kick(key)
	return worst
}
