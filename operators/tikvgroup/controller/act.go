package controller

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/tikvgroup/logbackup"
	"github.com/tidb-groups/tidb-groups/shared/execution"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/store"
)

// act carries a plan out and nothing else. What PD or a store refuses does
// not keep the children from being applied.
func (r *steps) act(ctx context.Context, g *v1alpha1.TiKVGroup, s observation.Snapshot, p *groupPlan) step.Outcome {
	children := execution.Act(ctx, r.Env, g, s, p.Plan)
	for _, order := range p.Flushes {
		order.TLS = r.Credentials.TLSForMembers(g)
		r.stores.Begin(order)
	}
	labels := store.SetLabels(ctx, r.Env, g, p.Labels)
	given := r.members.Give(ctx, r.Live, r.Recorder, g, p.Orders)
	return step.Worst(children, labels, given)
}

// recordFlush says how a store's log backups were written out. That it failed keeps
// nothing from going on; that there are none is not worth a word.
func (r *steps) recordFlush(o logbackup.Order, backups int, err error) {
	switch {
	case err != nil:
		r.Recorder.Eventf(o.Group, nil, corev1.EventTypeWarning, "LogBackupNotFlushed", "FlushLogBackups", "Store %s (Instance %s) is restarted although its log backups were not written out: %s", o.StoreID, o.Instance, err)
	case backups > 0:
		r.Recorder.Eventf(o.Group, nil, corev1.EventTypeNormal, "LogBackupFlushed", "FlushLogBackups", "Store %s (Instance %s) has written %d log backups out", o.StoreID, o.Instance, backups)
	}
}
