package controller

import (
	"fmt"
	"strings"
	"time"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/tiflashgroup/statusport"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/lease"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/statusports"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/store"
	"github.com/tidb-groups/tidb-groups/shared/verdict"
)

// statusPortTimeout is for how long a restarted store that does not answer on its status port is
// waited for: by far longer than the 20 s for which PD takes a store for Up that it has
// not heard of, so that its Up is of the restarted one then.
const statusPortTimeout = time.Minute

// stores answers for the members of a TiFlashGroup. All of it is pure.
type stores struct{ store.Component }

var _ component.Component = stores{}

func storesOf(g *v1alpha1.TiFlashGroup, s observation.Snapshot) stores {
	return stores{store.New(g, s, v1alpha1.PortTiFlash)}
}

// Allows implements component.Component: PD and every other TiFlash of the cluster
// work, and none of them says that it does not serve, so that a table with two
// replicas always has one (FL-06). No majority counts on a TiFlash. One may leave if
// no table wants more replicas than would be left (FL-05).
func (c stores) Allows(d component.Disruption) verdict.Verdict {
	if d.Verb == member.Remove {
		return c.MayRemove(d.Instance)
	}
	return verdict.RequireAll(c.OthersWork(d.Instance), c.othersServe(d.Instance), c.PodCanStop(d.Instance))
}

// AllowsNow implements component.Component.
func (stores) AllowsNow(component.Disruption) verdict.Verdict { return verdict.Allow() }

// othersServe refuses for another store of the cluster that says that it does not serve, unless
// the one to be stopped says so too: what is pending may be what fixes
// both. One without regions does not matter once PD knows which lie where.
func (c stores) othersServe(stopped *v1alpha1.Instance) verdict.Verdict {
	if c.reportsNotServing(stopped) {
		return verdict.Allow()
	}
	informed := c.regions(stopped) > 0
	for _, other := range c.Snapshot.WithSiblings() {
		if other.Name != stopped.Name && c.reportsNotServing(other) && (!informed || c.regions(other) > 0) {
			return verdict.Refusef("the store of Instance %s says %q and not %s: %s", other.Name, c.Snapshot.StatusPorts[other.Name].State, statusport.Running, c.logsCommand(other))
		}
	}
	return verdict.Allow()
}

// reportsNotServing reports whether a store says that it does not serve. One that says nothing does
// not say so.
func (c stores) reportsNotServing(i *v1alpha1.Instance) bool {
	said, asked := c.statusAnswer(i)
	return asked && said.Err == nil && said.State != "" && said.State != statusport.Running
}

// statusAnswer is what the running process of an Instance, of whatever group, said of its
// store, and whether it was asked.
func (c stores) statusAnswer(i *v1alpha1.Instance) (member.StatusPortAnswer, bool) {
	said, asked := c.Snapshot.StatusPorts[i.Name]
	return said, asked && said.IsFrom(i)
}

// regions counts those on the store of an Instance of whatever group, which is recorded
// only some time after it has come.
func (c stores) regions(i *v1alpha1.Instance) int {
	for _, s := range c.Snapshot.PD.Stores {
		if strings.HasPrefix(s.Address, i.Name+".") {
			return s.Regions
		}
	}
	return 0
}

// logsCommand is the command that shows why a store does not serve.
func (c stores) logsCommand(i *v1alpha1.Instance) string {
	return fmt.Sprintf("kubectl -n %s logs %s --all-containers --tail=20", c.Group.GetNamespace(), i.Name)
}

// Recover implements component.Component: PD takes the store for Up, and the store itself
// says that it serves. PD's word alone may be of the time before the restart, and a
// TiFlash reports to PD while it still catches up.
//
// A store that says something else is waited for without an end, as it is when PD does
// not take it for Up: it may be restarted again at any moment. One that does not
// answer, though its pod is ready, is only not reached by this operator: it is waited
// for until PD's word must be of the restarted store, and no longer, or a policy of the
// network would end every update. PD's word counts at once where the store does not tell.
func (c stores) Recover(i *v1alpha1.Instance, held lease.State) component.Preparation {
	p := c.Component.Recover(i, held)
	s := c.ListedStore(i)
	since, ready := member.ReadySince(i)
	if !p.Ready || s == nil || s.State != pd.StateUp || !ready {
		return p
	}
	said, asked := c.statusAnswer(i)
	left := since.Add(statusPortTimeout).Sub(c.Snapshot.Now)
	switch {
	case c.reportsNotServing(i):
		return waitForRecovery(statusports.AskAgain, "store %s of Instance %s says %q after its restart, and others wait until it says %s: %s", s.ID, i.Name, said.State, statusport.Running, c.logsCommand(i))
	case !asked: // it is by now, and answers or does not in a moment
		return waitForRecovery(statusports.AskAgain, "store %s of Instance %s is being asked whether it serves after its restart", s.ID, i.Name)
	case said.Err == nil, left <= 0:
		return p
	}
	return waitForRecovery(min(statusports.AskAgain, left), "store %s of Instance %s does not say whether it serves after its restart, and PD's report is accepted %s after its pod became ready (%v): %s", s.ID, i.Name, statusPortTimeout, said.Err, c.logsCommand(i))
}

// waitForRecovery returns a Preparation that waits for what a store says.
func waitForRecovery(again time.Duration, format string, args ...any) component.Preparation {
	return component.Preparation{Wait: step.Wait("status port", again, v1alpha1.ReasonRecovering, fmt.Sprintf(format, args...))}
}

// Prepare implements component.Component: a TiFlash leads no region, and only one
// that is to leave has to give something away.
func (c stores) Prepare(d component.Disruption, begun time.Time) component.Preparation {
	if d.Verb == member.Remove {
		return c.Leave(d, begun)
	}
	return component.Preparation{Ready: true}
}
