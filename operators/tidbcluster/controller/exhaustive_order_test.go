package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/operator"
	"github.com/tidb-groups/tidb-groups/shared/rollout"
)

// recorder is an API server of which only applies are of interest.
type recorder struct {
	client.Client

	scheme *runtime.Scheme
	mu     sync.Mutex
	seen   []string // kinds, in the order in which they were applied
	refuse map[string]bool
}

func (r *recorder) Scheme() *runtime.Scheme { return r.scheme }

func (r *recorder) Get(_ context.Context, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

func (r *recorder) Apply(_ context.Context, object runtime.ApplyConfiguration, _ ...client.ApplyOption) error {
	o, ok := object.(interface{ GetKind() string })
	if !ok {
		return errors.New("it is of no kind")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen = append(r.seen, o.GetKind())
	if r.refuse[o.GetKind()] {
		return errors.New("refused")
	}
	return nil
}

// TestEveryWayToApplyACluster carries out the plans of all clusters of which each
// group is absent, is of another version or is as it was asked for, and of which
// the API server refuses any: kinds are applied in the order of an upgrade, and
// none gets another version after one before it was refused, nor is one made without
// PD.
func TestEveryWayToApplyACluster(t *testing.T) {
	kinds := rollout.Order()
	words := []string{"absent", "ours, of an older version", "ours, up to date"}
	scheme := runtime.NewScheme()
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	ways := 0
	for code := range 3 * 3 * 3 * 3 << 4 {
		ways++
		refused, rest := code&15, code>>4
		r := &recorder{scheme: scheme, refuse: map[string]bool{}}
		c := stored(t)
		p, there := clusterPlan{}, map[string]string{}
		for at, kind := range kinds {
			r.refuse[kind] = refused&(1<<at) != 0
			there[kind], rest = words[rest%len(words)], rest/len(words)
		}
		for _, g := range renderGroups(c) {
			change := groupChange{desired: g}
			if word := there[g.GroupKind()]; word != "absent" {
				change.live, _ = g.DeepCopyObject().(v1alpha1.Group)
				change.live.SetUID("uid")
				if word == "ours, of an older version" {
					change.live.GetComponentSpec().Version = "v8.5.6"
				}
			}
			p.Apply = append(p.Apply, change)
		}
		env := operator.Env{Name: "tidbcluster", Client: r, Live: r, Recorder: events.NewFakeRecorder(100)}
		(&Reconciler{env}).act(t.Context(), c, p)
		what := fmt.Sprintf("%v, refused %v: %v", there, r.refuse, r.seen)
		assert.True(t, slices.IsSortedFunc(r.seen, func(a, b string) int { return slices.Index(kinds, a) - slices.Index(kinds, b) }), what)
		failed := false
		for _, kind := range kinds {
			applied := slices.Contains(r.seen, kind)
			noPD := there[v1alpha1.KindPDGroup] == words[0] && r.refuse[v1alpha1.KindPDGroup] && kind != v1alpha1.KindPDGroup
			held := failed && there[kind] == words[1] || noPD && there[kind] == words[0]
			assert.Equal(t, !held, applied, "%s: %s", what, kind)
			failed = failed || applied && r.refuse[kind]
		}
	}
	assert.Equal(t, 81*16, ways)
	t.Logf("exhaustive: TidbCluster: %d ways to apply its groups: %d states of each of %d kinds × which of them are refused", ways, len(words), len(kinds))
}

// GRP-04: PD must not find TiCDC's groups at an older spec, and none is made beside another owner's PD.
func TestWhatIsUpgradedFirstIsChangedBeforePDAndMadeAfterIt(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	apply := func(edit func(live v1alpha1.Group) v1alpha1.Group, refuse ...string) []string {
		r := &recorder{scheme: scheme, refuse: map[string]bool{}}
		for _, kind := range refuse {
			r.refuse[kind] = true
		}
		c := stored(t, func(c *v1alpha1.TidbCluster) { c.Spec.TiCDC = make([]v1alpha1.TiCDCEntry, 1) })
		var p clusterPlan
		for _, g := range renderGroups(c) {
			live, _ := g.DeepCopyObject().(v1alpha1.Group)
			live.SetUID("uid")
			p.Apply = append(p.Apply, groupChange{desired: g, live: edit(live)})
		}
		env := operator.Env{Name: "tidbcluster", Client: r, Live: r, Recorder: events.NewFakeRecorder(100)}
		(&Reconciler{env}).act(t.Context(), c, p)
		return r.seen
	}
	older := func(live v1alpha1.Group) v1alpha1.Group {
		live.GetComponentSpec().Version = "v8.5.6"
		return live
	}
	none := func(v1alpha1.Group) v1alpha1.Group { return nil }
	resumed := func(live v1alpha1.Group) v1alpha1.Group {
		live.GetComponentSpec().Suspended = true
		return live
	}
	cdc, order := v1alpha1.KindTiCDCGroup, rollout.Order()
	assert.Equal(t, append([]string{cdc}, order...), apply(older))
	assert.Equal(t, []string{cdc}, apply(older, cdc), "nothing gets another version after it was refused")
	assert.Equal(t, append(slices.Clone(order), cdc), apply(none))
	assert.Equal(t, []string{v1alpha1.KindPDGroup}, apply(none, v1alpha1.KindPDGroup))
	assert.Equal(t, append(slices.Clone(order), cdc), apply(resumed))
}
