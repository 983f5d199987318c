package store

import (
	"fmt"
	"math"
	"time"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/group"
	"github.com/tidb-groups/tidb-groups/shared/pd"
)

// Leave takes a member out of its cluster (KV-04): its leaders move away, then its
// regions, and it has left when it is a tombstone, which PD does not list. Nothing
// is stopped until then. room says why PD could not do without the member yet.
func (c Component) Leave(d group.Disruption, begun time.Time, room string) group.Preparation {
	i := d.Instance
	m := c.of(i)
	switch {
	case c.Silence != "":
		return waiting(v1alpha1.ReasonPDUnreachable, "Instance %s (%s) stays: %s", i.Name, d.Why, c.Silence)
	case m.Store == nil && m.Stray != nil:
		return c.leaveStray(d, m, room)
	case m.Store == nil && m.Recorded != "":
		return group.Preparation{Ready: true}
	case m.Store == nil:
		return unregistered(d)
	case m.Store.State == pd.StateOffline:
		p := waiting(v1alpha1.ReasonDraining, "store %s of Instance %s (%s) is Offline and has %s regions left", m.Store.ID, i.Name, d.Why, about(m.Store.Regions))
		p.Calls = c.readmission(i)
		return p
	case room != "":
		return waiting(v1alpha1.ReasonDraining, "Instance %s (%s) stays for now: %s", i.Name, d.Why, room)
	}
	if c.HasLeaders {
		if p := c.Vacate(d, begun); !p.Ready {
			p.Wait.Reason = v1alpha1.ReasonDraining
			return p
		}
	}
	return c.remove(d, *m.Store)
}

// remove has PD move the regions of a store away.
func (c Component) remove(d group.Disruption, s pd.Store) group.Preparation {
	p := waiting(v1alpha1.ReasonDraining, "store %s of Instance %s (%s) is to give its regions away", s.ID, d.Instance.Name, d.Why)
	p.Calls = []group.Call{{Verb: group.DeleteStore, Target: s.ID, Instance: d.Instance.Name}}
	return p
}

// leaveStray takes a store out of the cluster that has come in the place of a
// member's own: the member is to go, whatever it is.
func (c Component) leaveStray(d group.Disruption, m Match, room string) group.Preparation {
	switch {
	case m.Stray.State == pd.StateOffline:
		return waiting(v1alpha1.ReasonDraining, "store %s at the address of Instance %s (%s) is Offline and has %s regions left", m.Stray.ID, d.Instance.Name, d.Why, about(m.Stray.Regions))
	case room != "":
		return waiting(v1alpha1.ReasonDraining, "Instance %s (%s) stays for now: %s", d.Instance.Name, d.Why, room)
	}
	return c.remove(d, *m.Stray)
}

// unregistered removes a member that PD has never listed (KV-08): once its pod has
// stopped for good it never will be.
func unregistered(d group.Disruption) group.Preparation {
	i := d.Instance
	if i.Spec.Suspended && i.Status.PodUID == "" && i.Status.ObservedGeneration == i.Generation {
		return group.Preparation{Ready: true}
	}
	p := waiting(v1alpha1.ReasonDraining, "Instance %s (%s) has never registered with PD and is being stopped", i.Name, d.Why)
	p.Wait.Source, p.Wait.After = "Instance", time.Minute
	p.Suspend = true
	return p
}

// about rounds a number of regions to two digits: it is told at each step, and
// nobody needs to know it that well.
func about(n int) string {
	if n < 100 {
		return fmt.Sprint(n)
	}
	unit := math.Pow10(int(math.Log10(float64(n))) - 1)
	return fmt.Sprintf("about %d", int(math.Round(float64(n)/unit)*unit))
}

// Sweep implements group.Component: what an earlier preparation has left in PD,
// by the mark that it left on the Instance, is taken back (KV-05, KV-15). What a
// person has done carries no mark.
func (c Component) Sweep(i *v1alpha1.Instance) []group.Call {
	calls := c.readmission(i)
	if m := c.of(i); m.Store != nil && m.Store.State == pd.StateOffline && i.Annotations[v1alpha1.AnnotationDisruption] == string(group.Remove) {
		calls = append(calls, group.Call{Verb: group.RestoreStore, Target: m.Store.ID, Instance: i.Name})
	}
	return calls
}

// readmission lets a store lead again that was kept from it by us.
func (c Component) readmission(i *v1alpha1.Instance) []group.Call {
	m := c.of(i)
	if i.Annotations[v1alpha1.AnnotationDisruption] == "" || m.Store == nil || !c.Snapshot.PD.Evicts(m.Store.ID) {
		return nil
	}
	return []group.Call{{Verb: group.StopEvictingLeaders, Target: m.Store.ID, Instance: i.Name}}
}
