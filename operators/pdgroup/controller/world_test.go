package controller

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/testkit/stage"
)

// world is the stage of a PDGroup. PD does not answer until it is bootstrapped by the
// members that run.
type world struct {
	stage.Subject[*v1alpha1.PDGroup]
	operator *stage.Operator

	// The lock of PD guards these.
	bootstrapped bool
	joined       map[types.UID]bool // a member that was removed does not come back
	frozen       bool               // what runs matters no more
}

// begin makes a world with an instance operator, and starts the operator in it.
func begin(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	w := &world{joined: map[types.UID]bool{}, Subject: stage.NewSubject(rig.Stage(t), stage.PDGroupName, func() *v1alpha1.PDGroup { return &v1alpha1.PDGroup{} })}
	w.PD.Change(func(v *pd.View) { *v = pd.View{Err: errors.New("connection refused")} })
	w.operator = w.Operate(Definition())
	w.PlayInstances(func(ctx context.Context, _ *v1alpha1.Instance) { w.run(ctx) })
	w.Follow(&v1alpha1.PDGroupList{}, nil)
	return w
}

// run lets PD know which members run: the first generation bootstraps the cluster
// once a majority of it runs, each later member joins.
func (w *world) run(ctx context.Context) {
	var list v1alpha1.InstanceList
	if err := w.Client.List(ctx, &list, client.InNamespace(w.Namespace)); err != nil {
		assert.Error(w, ctx.Err(), "%v", err)
		return
	}
	running := map[string]types.UID{}
	for _, i := range list.Items {
		if meta.IsStatusConditionTrue(i.Status.Conditions, v1alpha1.ConditionPodReady) {
			running[i.Name] = i.UID
		}
	}
	w.PD.Change(func(v *pd.View) {
		const majority = 2
		if w.frozen || !w.bootstrapped && len(running) < majority {
			return
		}
		if !w.bootstrapped {
			w.bootstrapped, v.Err, v.ClusterID = true, nil, stage.ClusterID
		}
		for name, uid := range running {
			if _, listed := v.Member(name); !listed && !w.joined[uid] {
				w.joined[uid] = true
				v.Members = append(v.Members, pd.Member{Name: name, ID: "1" + name[len(name)-1:], ClientURL: "http://" + name})
			}
		}
		slices.SortFunc(v.Members, func(a, b pd.Member) int { return cmp.Compare(a.Name, b.Name) })
		for i := range v.Members {
			v.Members[i].Healthy = running[v.Members[i].Name] != ""
		}
		if running[v.Leader] != "" {
			return
		}
		v.Leader = ""
		if next := slices.IndexFunc(v.Members, func(m pd.Member) bool { return m.Healthy }); next >= 0 {
			v.Leader = v.Members[next].Name
		}
	})
}

// sample is the PDGroup that the tests begin with.
func sample(namespace string, changes ...func(*v1alpha1.PDGroup)) *v1alpha1.PDGroup {
	g := &v1alpha1.PDGroup{ObjectMeta: metav1.ObjectMeta{Name: stage.PDGroupName, Namespace: namespace}}
	g.Spec.ComponentSpec = stage.Component("data")
	g.Spec.Replicas = ptr.To(int32(3))
	for _, change := range changes {
		change(g)
	}
	return g
}

// create creates a PDGroup.
func (w *world) create(changes ...func(*v1alpha1.PDGroup)) {
	w.Helper()
	w.Create(sample(w.Namespace, changes...))
}
