package upgrade_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/tidbgroup/upgrade"
)

func TestDB08AnUpgradeIsNotOverWhileAnotherGroupIsUpgrading(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(*v1alpha1.TiDBGroup)
		want bool
	}{
		"one that has arrived":                    {func(*v1alpha1.TiDBGroup) {}, false},
		"one that has arrived and was told of":    {func(g *v1alpha1.TiDBGroup) { g.Status.Upgrade = &v1alpha1.TiDBUpgrade{} }, false},
		"one that is about to begin":              {func(g *v1alpha1.TiDBGroup) { g.Status.Upgrade, g.Status.UpdatedReplicas = &v1alpha1.TiDBUpgrade{}, 0 }, true},
		"one that is on its way":                  {func(g *v1alpha1.TiDBGroup) { g.Status.Upgrade, g.Status.UpdatedReplicas = &v1alpha1.TiDBUpgrade{}, 1 }, true},
		"one that was edited and has not looked":  {func(g *v1alpha1.TiDBGroup) { g.Status.Upgrade, g.Generation = &v1alpha1.TiDBUpgrade{}, 2 }, true},
		"one that is on its way without the word": {func(g *v1alpha1.TiDBGroup) { g.Spec.Version, g.Status.UpdatedReplicas = "v8.5.8", 1 }, true},
		"one that is held before the first":       {func(g *v1alpha1.TiDBGroup) { g.Spec.Version, g.Status.UpdatedReplicas = "v8.5.8", 0 }, false},
		"one whose configuration is on its way":   {func(g *v1alpha1.TiDBGroup) { g.Status.UpdatedReplicas = 1 }, false},
		"one that is suspended": {func(g *v1alpha1.TiDBGroup) {
			g.Spec.Suspended, g.Status.Upgrade, g.Status.UpdatedReplicas = true, &v1alpha1.TiDBUpgrade{}, 1
		}, false},
		"one without servers": {func(g *v1alpha1.TiDBGroup) { g.Status.Upgrade, g.Status.Replicas = &v1alpha1.TiDBUpgrade{}, 0 }, false},
		"one that is deleted": {func(g *v1alpha1.TiDBGroup) {
			g.DeletionTimestamp, g.Status.Upgrade, g.Status.UpdatedReplicas = &metav1.Time{}, &v1alpha1.TiDBUpgrade{}, 1
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := &v1alpha1.TiDBGroup{ObjectMeta: metav1.ObjectMeta{Name: "b", Generation: 1}}
			g.Spec.Version, g.Status.Version = "v8.5.7", "v8.5.7"
			g.Status.ObservedGeneration, g.Status.Replicas, g.Status.UpdatedReplicas = 1, 2, 2
			c.edit(g)
			got := upgrade.FindOngoing([]v1alpha1.Group{&v1alpha1.PDGroup{}, g}, nil, "a")
			assert.Equal(t, c.want, got == "b", got)
			assert.Empty(t, upgrade.FindOngoing([]v1alpha1.Group{g}, nil, "b"), "it does not wait for itself")
		})
	}
}

// A server counts as updated when it may be restarted: until it has stopped, it runs what it did.
func TestDB08AnUpgradeIsNotOverWhileAServerOfAnotherGroupStillStops(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(*v1alpha1.TiDBGroup, *v1alpha1.Instance)
		want bool
	}{
		"one that is to be restarted":           {func(*v1alpha1.TiDBGroup, *v1alpha1.Instance) {}, true},
		"one that is being deleted":             {func(_ *v1alpha1.TiDBGroup, i *v1alpha1.Instance) { i.DeletionTimestamp = &metav1.Time{} }, true},
		"the last one of a group that has none": {func(g *v1alpha1.TiDBGroup, _ *v1alpha1.Instance) { g.Status.Replicas, g.Status.UpdatedReplicas = 0, 0 }, true},
		"one that has stopped":                  {func(_ *v1alpha1.TiDBGroup, i *v1alpha1.Instance) { i.Status.PodUID, i.Status.Revision = "", "" }, false},
		"one that is updated":                   {func(_ *v1alpha1.TiDBGroup, i *v1alpha1.Instance) { i.Status.Revision = "new" }, false},
		"one of a third group":                  {func(_ *v1alpha1.TiDBGroup, i *v1alpha1.Instance) { i.Spec.Group.Name = "c" }, false},
		"one that gets a configuration":         {func(g *v1alpha1.TiDBGroup, _ *v1alpha1.Instance) { g.Status.Upgrade = nil }, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := &v1alpha1.TiDBGroup{ObjectMeta: metav1.ObjectMeta{Name: "b", Generation: 1}}
			g.Spec.Version, g.Status.Version, g.Status.UpdateRevision, g.Status.Upgrade = "v8.5.8", "v8.5.8", "new", &v1alpha1.TiDBUpgrade{}
			g.Status.ObservedGeneration, g.Status.Replicas, g.Status.UpdatedReplicas = 1, 2, 2
			i := &v1alpha1.Instance{ObjectMeta: metav1.ObjectMeta{Name: "b-1"}}
			i.Spec.Group.Kind, i.Spec.Group.Name, i.Spec.Revision = v1alpha1.KindTiDBGroup, "b", "new"
			i.Status.PodUID, i.Status.Revision = "pod", "old"
			c.edit(g, i)
			got := upgrade.FindOngoing([]v1alpha1.Group{g}, []*v1alpha1.Instance{i}, "a")
			assert.Equal(t, c.want, got == "b", got)
		})
	}
}
