package rig_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/e2e/model"
	"github.com/tidb-groups/tidb-groups/e2e/rig"
)

// small has one of everything.
const small = `
metadata: {name: small}
spec:
  version: v8.5.7
  pd: {replicas: 1, volumes: [{name: data, storage: 1Gi}]}
  tikv: [{replicas: 1, volumes: [{name: data, storage: 1Gi}]}]
  tidb: [{replicas: 1}]
  tiflash: [{replicas: 1, volumes: [{name: data, storage: 1Gi}]}]
`

// takingDown are the alarms that a test causes that takes everything away.
func takingDown() []model.AlarmKind {
	return []model.AlarmKind{model.LostPDMajority, model.LostRegionMajority}
}

// nothing is content when nothing is left but claims.
func nothing(o rig.Objects) error {
	for _, key := range o.Keys() {
		if key.Kind != "PersistentVolumeClaim" {
			return fmt.Errorf("%s is still there: %s", key, rig.Describe(o.Get(key.Kind, key.Name)))
		}
	}
	return nil
}

// claimUIDs returns the UIDs of all claims.
func claimUIDs(r *rig.Rig) map[string]types.UID {
	out := map[string]types.UID{}
	r.Watcher.Now(func(o rig.Objects) {
		for _, name := range o.Names("PersistentVolumeClaim", "") {
			out[name] = o.Get("PersistentVolumeClaim", name).GetUID()
		}
	})
	return out
}

func deletedCluster() *v1alpha1.TidbCluster {
	return &v1alpha1.TidbCluster{ObjectMeta: metav1.ObjectMeta{Name: "small"}}
}

// P3, P8: deletion finishes in whatever state, and claims stay.
func TestADeletedClusterLeavesItsClaims(t *testing.T) {
	for _, when := range []struct {
		name    string
		reached func(o rig.Objects) bool
	}{
		{"at once", func(o rig.Objects) bool { return o.Get(v1alpha1.KindTidbCluster, "small") != nil }},
		{"while PD starts", func(o rig.Objects) bool { return len(o.Names("Pod", "small-pd")) > 0 }},
		{"when all is well", func(o rig.Objects) bool {
			return o.Converged(v1alpha1.KindTidbCluster, "small") == nil && o.AllConverged() == nil
		}},
	} {
		t.Run(when.name, func(t *testing.T) {
			t.Parallel()
			r := rig.New(t, plane, rig.Options{Tolerate: takingDown()})
			r.Start(rig.Operators()...)
			r.Apply(parse[v1alpha1.TidbCluster](t, small))
			r.Await(rig.Patience, when.name, func(o rig.Objects) error {
				if !when.reached(o) {
					return errors.New("not yet")
				}
				return nil
			})
			r.Delete(deletedCluster())
			r.Await(rig.Patience, "everything but the claims is gone", nothing)
			kept := claimUIDs(r)
			if when.name != "when all is well" {
				return
			}
			assert.Len(t, kept, 3)

			// What comes again finds its data again.
			r.Apply(parse[v1alpha1.TidbCluster](t, small))
			r.AwaitConverged(rig.Key{Kind: v1alpha1.KindTidbCluster, Name: "small"})
			assert.Equal(t, kept, claimUIDs(r))
			assert.Equal(t, 1, r.Databases.List()[0].Births(), "cluster IDs that were born")
		})
	}
}

// P3, P8: each group on its own, and by every way of deleting.
func TestDeletedGroupsLeaveTheirClaims(t *testing.T) {
	t.Parallel()
	r := rig.New(t, plane, rig.Options{Tolerate: takingDown()})
	r.Start("pdgroup", "tikvgroup", "tidbgroup", "tiflashgroup", "instance")
	create := func() {
		r.Apply(pdGroup("a", 1), tikvGroup("b", "a", 1), tidbGroup("c", "a", 1), tiflashGroup("d", "a", 1))
		r.AwaitConverged(rig.Key{Kind: v1alpha1.KindPDGroup, Name: "a"}, rig.Key{Kind: v1alpha1.KindTiKVGroup, Name: "b"},
			rig.Key{Kind: v1alpha1.KindTiDBGroup, Name: "c"}, rig.Key{Kind: v1alpha1.KindTiFlashGroup, Name: "d"})
	}
	create()
	kept := claimUIDs(r)
	for _, victim := range []struct {
		group   client.Object
		pod     string
		options client.DeleteOption
	}{
		{tidbGroup("c", "a", 1), "c-0", client.PropagationPolicy(metav1.DeletePropagationBackground)},
		{tiflashGroup("d", "a", 1), "d-0", client.PropagationPolicy(metav1.DeletePropagationForeground)},
		{tikvGroup("b", "a", 1), "b-0", client.PropagationPolicy(metav1.DeletePropagationBackground)},
		{pdGroup("a", 1), "a-0", client.PropagationPolicy(metav1.DeletePropagationForeground)},
	} {
		r.Delete(victim.group, victim.options)
		r.Await(rig.Patience, fmt.Sprintf("%T and its pod are gone", victim.group), func(o rig.Objects) error {
			kind := strings.TrimPrefix(fmt.Sprintf("%T", victim.group), "*v1alpha1.")
			for _, key := range []rig.Key{{Kind: kind, Name: victim.group.GetName()}, {Kind: v1alpha1.KindInstance, Name: victim.pod}, {Kind: "Pod", Name: victim.pod}} {
				if o.Get(key.Kind, key.Name) != nil {
					return fmt.Errorf("%s is still there", key)
				}
			}
			return nil
		})
	}
	assert.Equal(t, kept, claimUIDs(r))

	create()
	assert.Equal(t, kept, claimUIDs(r), "claims are adopted again")
	// An orphaned group's pods run on, and a group of the name takes them over.
	r.Delete(tikvGroup("b", "a", 1), client.PropagationPolicy(metav1.DeletePropagationOrphan))
	r.Await(rig.Patience, "the group is gone", func(o rig.Objects) error {
		if o.Get(v1alpha1.KindTiKVGroup, "b") != nil {
			return errors.New("it is still there")
		}
		return nil
	})
	var pod types.UID
	r.Watcher.Now(func(o rig.Objects) {
		if orphan := o.Get("Pod", "b-0"); assert.NotNil(t, orphan) {
			pod = orphan.GetUID()
		}
	})
	create()
	r.Watcher.Now(func(o rig.Objects) { assert.Equal(t, pod, o.Get("Pod", "b-0").GetUID()) })
	assert.Equal(t, kept, claimUIDs(r))
	assert.Equal(t, 1, r.Databases.List()[0].Births(), "cluster IDs that were born")
}

// P3, P8: a deleted Instance is replaced, with its claims.
func TestDeletedInstancesComeBackWithTheirClaims(t *testing.T) {
	t.Parallel()
	r := rig.New(t, plane, rig.Options{Tolerate: takingDown()})
	r.Start("pdgroup", "tikvgroup", "tidbgroup", "instance")
	r.Apply(pdGroup("a", 3), tikvGroup("b", "a", 3), tidbGroup("c", "a", 1))
	groups := []rig.Key{{Kind: v1alpha1.KindPDGroup, Name: "a"}, {Kind: v1alpha1.KindTiKVGroup, Name: "b"}, {Kind: v1alpha1.KindTiDBGroup, Name: "c"}}
	r.AwaitConverged(groups...)
	kept := claimUIDs(r)
	require.Len(t, kept, 6)
	for _, name := range []string{"a-1", "b-2", "c-0"} {
		uid := r.Watcher.PodUIDs()[name][0]
		r.Delete(&v1alpha1.Instance{ObjectMeta: metav1.ObjectMeta{Name: name}})
		r.Await(rig.Patience, "Instance "+name+" has another pod", func(o rig.Objects) error {
			if pod := o.Get("Pod", name); pod == nil || pod.GetUID() == uid {
				return errors.New("not yet")
			}
			return o.Converged(v1alpha1.KindInstance, name)
		})
		r.AwaitConverged(groups...)
	}
	assert.Equal(t, kept, claimUIDs(r))
	assert.Equal(t, 1, r.Databases.List()[0].Births(), "cluster IDs that were born")
}
