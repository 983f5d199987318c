package store

import (
	"fmt"
	"time"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/lease"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

const (
	// returned is the part of a store's leaders that have to be back, in thirds.
	returned = 2
	// perLeader is how long each leader may take to come back, and returnTimeout
	// how long all of them may. TiDB Operator waits 400 s, and not at all for fewer
	// than 200 leaders; this is the same for 200 and more.
	perLeader     = 2 * time.Second
	returnTimeout = 400 * time.Second
)

// Vacate moves the leaders of a member's store away before it is stopped (KV-10,
// KV-11). begun is when that began.
func (c Component) Vacate(d component.Disruption, begun time.Time) component.Preparation {
	m := c.of(d.Instance)
	switch {
	case c.Silence != "":
		return waiting(v1alpha1.ReasonPDUnreachable, "Instance %s is not stopped: %s", d.Instance.Name, c.Silence)
	case m.Store == nil, m.Store.State == pd.StateDown, m.Store.State == pd.StateOffline, !c.elsewhere(m):
		return component.Preparation{Ready: true}
	}
	if m.Store.State != pd.StateUp && !m.was(v1alpha1.ConditionPodReady) {
		return component.Preparation{Ready: true} // it does not serve, and PD cannot tell it to give anything away
	}
	evicts := c.Snapshot.PD.Evicts(m.Store.ID)
	if evicts && m.Store.Leaders == 0 {
		return component.Preparation{Ready: true}
	}
	left := begun.Add(c.EvictTimeout).Sub(c.Snapshot.Now)
	if left <= 0 {
		return component.Preparation{Ready: true, Wait: step.Wait("Instance", time.Minute, v1alpha1.ReasonEvictionTimedOut,
			fmt.Sprintf("store %s of Instance %s still had leaders after %s and goes on with them: %s", m.Store.ID, d.Instance.Name, c.EvictTimeout, d.Why))}
	}
	p := waiting(v1alpha1.ReasonPreparing, "store %s of Instance %s gives its leaders away, for %s at most: %s", m.Store.ID, d.Instance.Name, c.EvictTimeout, d.Why)
	p.Wait.After = min(look, left)
	if !evicts {
		p.Calls = []component.Call{{Verb: component.EvictLeaders, Target: m.Store.ID, Instance: d.Instance.Name}}
	}
	return p
}

// Vacated reports whether a member's store works, and all its leaders have been
// moved away from it.
func (c Component) Vacated(i *v1alpha1.Instance) bool {
	m := c.of(i)
	return m.Store != nil && m.Store.State == pd.StateUp && m.Store.Leaders == 0 && c.Snapshot.PD.Evicts(m.Store.ID)
}

// elsewhere reports whether another store could lead the regions of a member's. One
// that is kept empty leads none of an ordinary store (KV-26).
func (c Component) elsewhere(m Match) bool {
	for _, other := range c.peers(m) {
		if c.leads(m, other) {
			return true
		}
	}
	return false
}

// leads reports whether another store could lead the regions of a member's.
func (c Component) leads(m Match, other pd.Store) bool {
	shares := !c.secluded(other) || c.secluded(*m.Store) || other.Regions > 0
	return shares && other.State == pd.StateUp && !c.Snapshot.PD.Evicts(other.ID)
}

// awaited is how many leaders a store may get back of those that it had. From one
// that has become exclusive its regions move away, and their leaders do not return
// (KV-26).
func (c Component) awaited(s pd.Store, had int) int {
	if c.secluded(s) {
		return min(had, s.Regions)
	}
	return had
}

// Readmit lets a restarted member's store lead again, and waits for its leaders
// to come back (KV-12): for two thirds of those that it had, or until they have
// had their time. One that is to lead nothing, for that a person asks, is back when it
// is Up.
func (c Component) Readmit(i *v1alpha1.Instance, held lease.State) component.Preparation {
	p := c.Recover(i, held)
	m := c.of(i)
	if !p.Ready || m.Store == nil || m.Store.State != pd.StateUp || c.leadsNothing(i) {
		return p
	}
	if calls := c.readmission(i); len(calls) > 0 {
		p = waiting(v1alpha1.ReasonRecovering, "store %s of Instance %s is to lead again", m.Store.ID, i.Name)
		p.Calls = calls
		return p
	}
	if m.Store.Leaders*3 >= c.awaited(*m.Store, held.Leaders)*returned {
		return p
	}
	timeout := min(time.Duration(held.Leaders)*perLeader, returnTimeout)
	left := readySince(i).Add(timeout).Sub(c.Snapshot.Now)
	if left <= 0 {
		return p
	}
	p = waiting(v1alpha1.ReasonRecovering, "store %s of Instance %s gets its leaders back, of which it had %d, for %s at most", m.Store.ID, i.Name, held.Leaders, timeout)
	p.Wait.After = min(look, left)
	return p
}
