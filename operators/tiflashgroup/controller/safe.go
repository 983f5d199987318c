package controller

import (
	"time"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/group"
	"github.com/tidb-groups/tidb-groups/shared/store"
)

// stores answers for the members of a TiFlashGroup. All of it is pure.
type stores struct{ store.Component }

var _ group.Component = stores{}

func storesOf(g *v1alpha1.TiFlashGroup, s group.Snapshot) stores {
	return stores{store.New(g, s, v1alpha1.PortTiFlash)}
}

// Safe implements group.Component: PD and every other TiFlash of the cluster
// work, so that a table with two replicas always has one (FL-06). No majority
// counts on a TiFlash.
func (c stores) Safe(d group.Disruption) string { return c.Unsafe(d.Instance) }

// Prepare implements group.Component: a TiFlash leads no region. A store whose
// Instance is deleted stays in the database and comes back with its claims.
func (c stores) Prepare(d group.Disruption, _ time.Time) group.Preparation {
	return group.Preparation{Ready: true, Stays: d.Verb == group.Remove}
}
