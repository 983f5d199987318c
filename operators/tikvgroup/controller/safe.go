package controller

import (
	"fmt"
	"time"

	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/lease"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/safety"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/store"
	"github.com/tidb-groups/tidb-groups/shared/verdict"
)

// evictTimeout is how long leaders may take by default to move away. Moving them
// takes seconds; a longer wait is for something that is broken.
const evictTimeout = 10 * time.Minute

// flushTimeout is how long a store may take to write its log backups out, and look
// how soon it is looked at again whether it has. TiDB Operator waits as long.
const (
	flushTimeout = 3 * time.Minute
	look         = 500 * time.Millisecond
)

// flushLogBackups is an order to a store; all others are PD's.
const flushLogBackups component.CallVerb = "FlushLogBackups"

// stores answers for the members of a TiKVGroup. All of it is pure.
type stores struct {
	store.Component
	// flushes says that stores write their log backups out before they stop.
	flushes bool
}

var (
	_ component.Component     = stores{}
	_ component.LeaderEvictor = stores{}
)

func storesOf(g *v1alpha1.TiKVGroup, s observation.Snapshot) stores {
	c := store.New(g, s, v1alpha1.PortTiKV)
	c.EvictTimeout = evictTimeout
	c.RestartTogether = g.Spec.RestartTogether
	if g.Spec.EvictLeaderTimeout != nil {
		c.EvictTimeout = g.Spec.EvictLeaderTimeout.Duration
	}
	return stores{c, ptr.Deref(g.Spec.FlushLogBackups, true)}
}

// Allows implements component.Component: PD and every other TiKV of the cluster work, and
// the pod can be stopped. A store may leave if the cluster can do without it.
func (c stores) Allows(d component.Disruption) verdict.Verdict {
	if d.Verb == member.Remove {
		return c.MayRemove(d.Instance)
	}
	if safety.IsOverridden(d.Instance) {
		return c.IsTrusted(d.Instance)
	}
	return verdict.RequireAll(c.OthersWork(d.Instance), c.PodCanStop(d.Instance))
}

// AllowsNow implements component.Component: every region that has a voter on the store
// keeps a majority without it. PD calls the peers of a region pending until they have
// answered its new leader, and those that the store has given away have one.
func (c stores) AllowsNow(d component.Disruption) verdict.Verdict {
	if d.Verb == member.Remove || safety.IsOverridden(d.Instance) {
		return verdict.Allow()
	}
	return c.RegionsKeepMajority(d.Instance)
}

// Prepare implements component.Component: the leaders go first. A store that has none
// left then writes its log backups out (KV-17). One that had to keep some, or does
// not work, is not asked: neither is one that leaves, for its regions go elsewhere.
func (c stores) Prepare(d component.Disruption, begun time.Time) component.Preparation {
	if d.Verb == member.Remove {
		return c.Leave(d, begun)
	}
	p := c.EvictLeaders(d, begun)
	i := d.Instance
	ended, asked := c.Snapshot.Flushed[i.Status.PodUID]
	if !p.Ready || !c.flushes || i.Status.PodIP == "" || !c.HasNoLeaders(i) || asked && ended.Equal(begun) {
		return p
	}
	id := c.ListedStore(i).ID
	return component.Preparation{
		Calls: []component.Call{{Verb: flushLogBackups, Target: id, Instance: i.Name}},
		Wait: step.Wait("TiKV", look, v1alpha1.ReasonPreparing,
			fmt.Sprintf("store %s of Instance %s has given its leaders away and writes its log backups out, for %s at most: %s", id, i.Name, flushTimeout, d.Why)),
	}
}

// PlanEviction implements component.LeaderEvictor.
func (c stores) PlanEviction(i *v1alpha1.Instance) component.Eviction { return c.KeepLeadersAway(i) }

// Recover implements component.Component: the leaders come back.
func (c stores) Recover(i *v1alpha1.Instance, held lease.State) component.Preparation {
	return c.RestoreLeaders(i, held)
}
