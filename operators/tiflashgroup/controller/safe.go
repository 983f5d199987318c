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
// counts on a TiFlash. One may leave if no table wants more replicas than would
// be left (FL-05).
func (c stores) Safe(d group.Disruption) string {
	if d.Verb == group.Remove {
		return c.Removable(d.Instance)
	}
	return c.Unsafe(d.Instance)
}

// Prepare implements group.Component: a TiFlash leads no region, and only one
// that is to leave has to give something away.
func (c stores) Prepare(d group.Disruption, begun time.Time) group.Preparation {
	if d.Verb == group.Remove {
		return c.Leave(d, begun)
	}
	return group.Preparation{Ready: true}
}
