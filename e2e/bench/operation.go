package bench

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/e2e/model"
	"github.com/tidb-groups/tidb-groups/e2e/rig"
	"github.com/tidb-groups/tidb-groups/e2e/scenario"
	"github.com/tidb-groups/tidb-groups/shared/testkit/controlplane"
)

const (
	// operationTime is how long one operation may take on a slow machine.
	operationTime = time.Minute
	// operationRegions are enough that each store has some, and few enough to move at once.
	operationRegions = 30
)

// act is how an operation of a budget is done.
type act struct {
	name string
	do   func(ctx context.Context, r *rig.Rig) error
	// holds is content when it is over; that all is Ready and UpToDate is asked beside it.
	holds func(o rig.Objects) error
}

// listActs are the operations on one running cluster, in the order in which they are measured.
// Each leaves 3 PD, 3 TiKV and 2 TiDB, or what the next one begins with.
func listActs() []act {
	return []act{
		{scaleOutTiDB, editField("/spec/tidb/0/replicas", "3"), expectMembers("tidb", 3)},
		{scaleInTiDB, editField("/spec/tidb/0/replicas", "2"), expectMembers("tidb", 2)},
		{scaleOutTiKV, editField("/spec/tikv/0/replicas", "4"), expectMembers("tikv", 4)},
		{scaleInTiKV, editField("/spec/tikv/0/replicas", "3"), expectMembers("tikv", 3)},
		{restartTiDB, editField("/spec/tidb/0/restartedAt", `"1"`), expectMembers("tidb", 2)},
		{restartTiKV, editField("/spec/tikv/0/restartedAt", `"1"`), expectMembers("tikv", 3)},
		{configureTiDB, editField("/spec/tidb/0/config", `"[log]\nlevel = \"warn\"\n"`), expectMembers("tidb", 2)},
		{deletePod, deleteTiDBPod, expectMembers("tidb", 2)},
		{labelCluster, editField("/metadata/labels", `{"team": "one"}`), expectMembers("tidb", 2)},
		{deleteCluster, deleteTidbCluster, onlyClaims},
	}
}

// Measured is what an operation has cost.
type Measured struct {
	// Operation by its name.
	Operation string
	// Cost from all quiet to all quiet again.
	Cost Cost
	// Changes are what writes changed, if they were logged.
	Changes map[Change]int
}

// String tells it in some lines: each kind of write, and the reconciles of each controller.
func (m Measured) String() string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s, %s\n", m.Operation, m.Cost.Took.Round(100*time.Millisecond))
	written := m.Cost.written()
	for _, request := range sortedRequests(written) {
		fmt.Fprintf(&out, "%6d × %s\n", written[request], request)
	}
	reconciled := m.Cost.ofOperators()
	for _, name := range slices.Sorted(maps.Keys(reconciled)) {
		fmt.Fprintf(&out, "%6d reconciles of %s\n", reconciled[name], name)
	}
	return out.String()
}

// MeasureOperations starts one cluster and measures what is done to it, one operation after the
// other. Each begins when nothing has been written for a while, and ends so.
func MeasureOperations(ctx context.Context, plane *controlplane.ControlPlane, c Case) (out []Measured, err error) {
	ctx, cancel := context.WithTimeout(ctx, rig.Timeout+clusterTime+time.Duration(len(listActs()))*operationTime)
	defer cancel()
	options := c.options("operations")
	options.Database = scenario.Database{Speed: 20, Regions: operationRegions}
	// The last operation takes everything away.
	options.Tolerate = []model.AlarmKind{model.LostPDMajority, model.LostRegionMajority}
	r, err := openForeign(ctx, plane, options, c)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	if err := r.StartOperators(ctx, rig.Operators()...); err != nil {
		return nil, err
	}
	begun := newCluster(clusterName(0), r.Namespace())
	begun.Spec.TiDB[0].ConfigUpdate = v1alpha1.ConfigOnline
	if err := createCluster(ctx, r, begun); err != nil {
		return nil, err
	}
	if err := errors.Join(awaitAll(ctx, r, Case{Clusters: 1}), waitUntilSettled(ctx, r)); err != nil {
		return nil, err
	}
	m := meter{rig: r, plane: plane}
	if _, err := c.changes.next(); err != nil { // what was before is the start
		return nil, err
	}
	for _, a := range listActs() {
		cost, err := m.measure(func() error { return a.done(ctx, r) })
		if err != nil {
			return out, fmt.Errorf("%s: %w", a.name, err)
		}
		changed, err := c.changes.next()
		if err != nil {
			return out, fmt.Errorf("%s: %w", a.name, err)
		}
		out = append(out, Measured{Operation: a.name, Cost: cost, Changes: changed})
	}
	seen := r.Observed()
	err = r.StopOperators(context.WithoutCancel(ctx), r.Running()...)
	return out, checkObserved(err, seen, 1)
}

// done does it and waits until all is quiet again.
func (a act) done(ctx context.Context, r *rig.Rig) error {
	if err := a.do(ctx, r); err != nil {
		return err
	}
	err := r.Await(ctx, func(o rig.Objects) error {
		if err := o.AllConverged(); err != nil {
			return err
		}
		return a.holds(o)
	})
	return errors.Join(err, waitUntilSettled(ctx, r))
}

// quietTime is for how long nothing may be written until all is quiet. Words of a status wait
// for a second, and PD is asked at least as often while something moves.
const quietTime = 3 * time.Second

// waitUntilSettled waits until no operator has written for a while.
func waitUntilSettled(ctx context.Context, r *rig.Rig) error {
	for {
		before := r.Requests.Writes()
		if err := waitFor(ctx, quietTime); err != nil {
			return err
		}
		if r.Requests.Writes() == before {
			return nil
		}
	}
}

// editField has a user put a value, written as JSON, into a field of the TidbCluster.
func editField(field, value string) func(context.Context, *rig.Rig) error {
	return func(ctx context.Context, r *rig.Rig) error {
		patch := client.RawPatch(types.JSONPatchType, fmt.Appendf(nil, `[{"op": "add", "path": %q, "value": %s}]`, field, value))
		if err := r.User().Patch(ctx, newCluster(clusterName(0), r.Namespace()), patch, client.FieldOwner("user")); err != nil {
			return fmt.Errorf("edit %s of TidbCluster %s: %w", field, clusterName(0), err)
		}
		return nil
	}
}

// expectMembers is content with a cluster of so many members of a component, each Ready.
func expectMembers(component string, many int) func(rig.Objects) error {
	prefix := clusterName(0) + "-" + component + "-"
	return func(o rig.Objects) error {
		if err := o.Converged(v1alpha1.KindTidbCluster, clusterName(0)); err != nil {
			return err
		}
		for _, kind := range []string{v1alpha1.KindInstance, "Pod"} {
			if have := len(o.Names(kind, prefix)); have != many {
				return fmt.Errorf("there are %d × %s %s, not %d", have, kind, prefix, many)
			}
		}
		return nil
	}
}

// deleteTiDBPod has a user delete the pod of a TiDB server, and waits until another one has
// its name: nothing tells otherwise that the end of the operation is not how it began.
func deleteTiDBPod(ctx context.Context, r *rig.Rig) error {
	pod := &corev1.Pod{}
	r.Watcher.Now(func(o rig.Objects) { pod.Name = slices.Min(o.Names("Pod", clusterName(0)+"-tidb-")) })
	pod.Namespace = r.Namespace()
	if err := r.User().Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil {
		return fmt.Errorf("get pod %s: %w", pod.Name, err)
	}
	was := pod.UID
	if err := r.User().Delete(ctx, pod); err != nil {
		return fmt.Errorf("delete pod %s: %w", pod.Name, err)
	}
	return r.Await(ctx, func(o rig.Objects) error {
		if now := o.Get("Pod", pod.Name); now == nil || now.GetUID() == was {
			return fmt.Errorf("pod %s has not been replaced", pod.Name)
		}
		return nil
	})
}

// deleteTidbCluster has a user delete the cluster, as kubectl does.
func deleteTidbCluster(ctx context.Context, r *rig.Rig) error {
	c := newCluster(clusterName(0), r.Namespace())
	if err := r.User().Delete(ctx, c, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		return fmt.Errorf("delete TidbCluster %s: %w", c.Name, err)
	}
	return nil
}

// onlyClaims is content when of all that the operators have made the claims are left.
func onlyClaims(o rig.Objects) error {
	for _, key := range o.Keys() {
		object := o.Get(key.Kind, key.Name)
		made := object.GroupVersionKind().Group == v1alpha1.GroupName || object.GetLabels()[v1alpha1.LabelManagedBy] == v1alpha1.ManagedBy
		if made && key.Kind != "PersistentVolumeClaim" {
			return fmt.Errorf("%s is still there", key)
		}
	}
	return nil
}
