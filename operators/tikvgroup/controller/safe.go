package controller

import (
	"cmp"
	"time"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/group"
	"github.com/tidb-groups/tidb-groups/shared/lease"
	"github.com/tidb-groups/tidb-groups/shared/store"
)

// evictTimeout is how long leaders may take by default to move away. Moving them
// takes seconds; who waits longer waits for something that is broken.
const evictTimeout = 10 * time.Minute

// stores answers for the members of a TiKVGroup. All of it is pure.
type stores struct{ store.Component }

var _ group.Component = stores{}

func storesOf(g *v1alpha1.TiKVGroup, s group.Snapshot) stores {
	c := store.New(g, s, v1alpha1.PortTiKV)
	c.HasLeaders, c.EvictTimeout = true, evictTimeout
	if g.Spec.EvictLeaderTimeout != nil {
		c.EvictTimeout = g.Spec.EvictLeaderTimeout.Duration
	}
	return stores{c}
}

// Safe implements group.Component: PD and every other TiKV of the cluster work,
// and every region that has a voter on the store keeps a majority without it. A
// store may leave if the cluster can do without it.
func (c stores) Safe(d group.Disruption) string {
	if d.Verb == group.Remove {
		return c.Removable(d.Instance)
	}
	return cmp.Or(c.Unsafe(d.Instance), c.Endangered(d.Instance))
}

// Prepare implements group.Component: the leaders go first.
func (c stores) Prepare(d group.Disruption, begun time.Time) group.Preparation {
	if d.Verb == group.Remove {
		return c.Leave(d, begun)
	}
	return c.Vacate(d, begun)
}

// Recover implements group.Component: the leaders come back.
func (c stores) Recover(i *v1alpha1.Instance, held lease.State) group.Preparation {
	return c.Readmit(i, held)
}
