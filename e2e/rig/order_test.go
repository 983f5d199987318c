package rig_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/e2e/rig"
)

// Every operator is absent once, while groups are applied in a random order and
// the others start in one, and comes last.
func TestGroupsAndOperatorsComeInAnyOrder(t *testing.T) {
	for i, late := range rig.Operators() {
		t.Run("the operator "+late+" comes last", func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(20261121, uint64(i))) //nolint:gosec // repeatable on purpose
			r := rig.New(t, plane, rig.Options{})
			groups := []client.Object{pdGroup("a", 1), tikvGroup("b", "a", 1), tidbGroup("c", "a", 1), tiflashGroup("d", "a", 1)}
			if late == "tidbcluster" {
				groups = append(groups, parse[v1alpha1.TidbCluster](t, basic))
			}
			operators := slices.DeleteFunc(rig.Operators(), func(name string) bool { return name == late })
			random.Shuffle(len(groups), func(x, y int) { groups[x], groups[y] = groups[y], groups[x] })
			random.Shuffle(len(operators), func(x, y int) { operators[x], operators[y] = operators[y], operators[x] })
			for len(groups)+len(operators) > 0 {
				if n := len(groups); n > 0 && random.IntN(n+len(operators)) < n {
					t.Logf("apply %T %s", groups[0], groups[0].GetName())
					r.Apply(groups[0])
					groups = groups[1:]
					continue
				}
				t.Logf("start %s", operators[0])
				r.Start(operators[0])
				operators = operators[1:]
			}
			r.Await(rig.Patience, "what waits for the absent operator says so", func(o rig.Objects) error { return waitsFor(o, late) })
			t.Logf("start %s", late)
			r.Start(late)
			want := []rig.Key{
				{Kind: v1alpha1.KindPDGroup, Name: "a"}, {Kind: v1alpha1.KindTiKVGroup, Name: "b"},
				{Kind: v1alpha1.KindTiDBGroup, Name: "c"}, {Kind: v1alpha1.KindTiFlashGroup, Name: "d"},
			}
			if late == "tidbcluster" {
				want = append(want, rig.Key{Kind: v1alpha1.KindTidbCluster, Name: "basic"})
			}
			r.AwaitConverged(want...)
			for _, db := range r.Databases.List() {
				assert.Equal(t, 1, db.Births(), "cluster IDs that were born for %s", db.Group())
			}
			r.PodsUnchanged()
		})
	}
}

// waitsFor is content when everything that does not need the absent operator is
// converged, and what needs it says what it waits for.
func waitsFor(o rig.Objects, absent string) error {
	groupsWait := func(reason string, kinds ...rig.Key) error {
		for _, key := range kinds {
			if err := o.Says(key.Kind, key.Name, v1alpha1.ConditionReady, reason); err != nil {
				return err
			}
		}
		return nil
	}
	tikv, tidb, tiflash := rig.Key{Kind: v1alpha1.KindTiKVGroup, Name: "b"}, rig.Key{Kind: v1alpha1.KindTiDBGroup, Name: "c"}, rig.Key{Kind: v1alpha1.KindTiFlashGroup, Name: "d"}
	switch absent {
	case "instance":
		if err := o.Says(v1alpha1.KindPDGroup, "a", v1alpha1.ConditionReady, v1alpha1.ReasonBootstrapping); err != nil {
			return o.Says(v1alpha1.KindPDGroup, "a", v1alpha1.ConditionReady, v1alpha1.ReasonWaitingForInstances)
		}
		return groupsWait(v1alpha1.ReasonWaitingForPDGroup, tikv, tidb, tiflash)
	case "pdgroup":
		return groupsWait(v1alpha1.ReasonWaitingForPDGroup, tikv, tidb, tiflash)
	case "tikvgroup":
		return groupsWait(v1alpha1.ReasonWaitingForTiKVGroup, tidb, tiflash)
	case "tidbgroup":
		return o.Converged(tiflash.Kind, tiflash.Name)
	case "tiflashgroup":
		// Nobody misses it, and nobody says a word about its group.
		if conditions := rig.Conditions(o.Get(tiflash.Kind, tiflash.Name)); len(conditions) > 0 {
			return assert.AnError
		}
		return o.Converged(tidb.Kind, tidb.Name)
	default:
		return o.Converged(tidb.Kind, tidb.Name)
	}
}
