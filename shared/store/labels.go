package store

import (
	"context"
	"fmt"
	"strings"

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
	worst, set := step.Done(), []string(nil)
	for _, change := range changes {
		if err := client.SetStoreLabels(ctx, change.StoreID, change.Labels); err != nil {
			worst = step.Worst(worst, step.Fail(v1alpha1.ReasonRequestFailed, fmt.Errorf("set labels %s of store %s (Instance %s): %w", placement.LabelText(change.Labels), change.StoreID, change.Instance, err)))
			continue
		}
		set = append(set, fmt.Sprintf("%s of store %s (Instance %s)", placement.LabelText(change.Labels), change.StoreID, change.Instance))
	}
	if len(set) > 0 { // one Event for all: of several with the same reason Kubernetes' recorder keeps the first text
		env.Recorder.Eventf(g, nil, corev1.EventTypeNormal, "StoreLabelsSet", "SetStoreLabels", "Set labels %s", strings.Join(set, ", "))
	}
	env.PD.Kick(key)
	return worst
}
