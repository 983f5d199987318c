package controller

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/tidbgroup/statusport"
	"github.com/tidb-groups/tidb-groups/shared/group"
)

// snapshot is a group.Snapshot and what TiDB alone needs.
type snapshot struct {
	group.Snapshot
	// BootstrapSQL says what is wrong with spec.bootstrapSQL; empty if nothing. SQL
	// is what it names, while there is no Instance.
	BootstrapSQL, SQL string
	// Labelled is what each running server was last given, by Instance.
	Labelled map[string]statusport.Labelling
	// Answer is what became of the last thing that TiDB was told of an upgrade.
	Answer statusport.Answer
}

// observe reads everything that plan and report decide from.
func (r *Reconciler) observe(ctx context.Context, g *v1alpha1.TiDBGroup) (snapshot, error) {
	common, err := group.Observe(ctx, r.Env, g)
	if err != nil {
		return snapshot{}, err
	}
	s := snapshot{Snapshot: common, Labelled: r.servers.Known(), Answer: r.orders.Last(client.ObjectKeyFromObject(g))}
	s.Running, s.RunningPending = r.members.Look(g, s.Instances)
	if g.Spec.BootstrapSQL != nil && len(s.Instances) == 0 {
		s.SQL, s.BootstrapSQL, err = r.bootstrapSQL(ctx, g)
	}
	return s, err
}

// bootstrapSQL looks the user's ConfigMap up before the first pod would hang on
// it without a word. It is not the suite's own and therefore not in the cache.
func (r *Reconciler) bootstrapSQL(ctx context.Context, g *v1alpha1.TiDBGroup) (sql, missing string, err error) {
	ref := g.Spec.BootstrapSQL
	var c corev1.ConfigMap
	err = r.Live.Get(ctx, types.NamespacedName{Namespace: g.Namespace, Name: ref.Name}, &c)
	switch {
	case apierrors.IsNotFound(err):
		return "", fmt.Sprintf("spec.bootstrapSQL.name: ConfigMap %s does not exist: create it (kubectl -n %s create configmap %s --from-file=%s=FILE)", ref.Name, g.Namespace, ref.Name, ref.Key), nil
	case err != nil:
		return "", "", fmt.Errorf("get ConfigMap %s: %w", ref.Name, err)
	}
	sql, ok := c.Data[ref.Key]
	if !ok {
		return "", fmt.Sprintf("spec.bootstrapSQL.key: ConfigMap %s has no key %q: add it", ref.Name, ref.Key), nil
	}
	return sql, "", nil
}
