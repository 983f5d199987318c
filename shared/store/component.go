package store

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/gate"
	"github.com/tidb-groups/tidb-groups/shared/lease"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// Component answers for the members of a group of stores when some of them are
// to be stopped. It is what TiKV and TiFlash have in common; what differs lies
// in the type that embeds it.
type Component struct {
	// Group that the members belong to.
	Group v1alpha1.StoreGroup
	// Snapshot of the group.
	Snapshot observation.Snapshot
	// Silence says why PD's answer is not to be used; empty if it is.
	Silence string
	// Stores of the Instances, none while PD is silent.
	Stores []Match
	// Leaders says that the members lead regions, which are moved away before one
	// is stopped, for at most EvictTimeout.
	HasLeaders   bool
	EvictTimeout time.Duration
	// RestartTogether is the location label by which members are restarted at the
	// same time; empty for one after the other.
	RestartTogether string
	// order in which the members would leave, by Instance.
	order map[string]int
}

// New returns the Component of a group whose stores advertise themselves at a
// port.
func New(g v1alpha1.StoreGroup, s observation.Snapshot, port int32) Component {
	c := Component{Group: g, Snapshot: s}
	if _, c.Silence = Distrust(g, s); c.Silence == "" {
		c.Stores = Matches(g, s, port)
		c.order = c.removalOrder()
	}
	return c
}

// of returns the store of an Instance.
func (c Component) of(i *v1alpha1.Instance) Match {
	at := slices.IndexFunc(c.Stores, func(m Match) bool { return m.Instance.Name == i.Name })
	if at < 0 {
		return Match{Instance: i, Recorded: recorded(i)}
	}
	return c.Stores[at]
}

// NotServing implements group.Component: a member adds nothing if it has no pod on a
// node, or if PD does not count on it and its process does not run. A process
// that runs without being ready may only have lost its way to PD for a moment.
//
// KV-14: such a member is restarted without asking anybody, so that every mistake
// can be undone.
func (c Component) NotServing(i *v1alpha1.Instance) bool {
	if i.Status.PodUID == "" || i.Status.NodeName == "" {
		return true
	}
	m := c.of(i)
	switch {
	case c.Silence != "", m.Problem != "":
		return false
	case m.Store == nil:
		return true
	case m.Store.State == pd.StateUp, meta.IsStatusConditionTrue(i.Status.Conditions, v1alpha1.ConditionPodReady):
		return false
	}
	return m.Store.State == pd.StateDown || member.IsBroken(i)
}

// NeedsLease implements group.Component: a pod that stops needs the Lease, and so does
// a store until PD knows that it is to go. One that comes back with its data, that
// has left or that PD has never listed does not.
func (c Component) NeedsLease(d component.Disruption) bool {
	i := d.Instance
	if d.Verb == member.Restart {
		return true
	}
	m := c.of(i)
	switch {
	case !c.departs(i):
		return false
	case c.Silence != "":
		// What has begun is neither given up nor begun anew.
		return c.Snapshot.Lease.HeldBy(i) || !i.Spec.Retire && mark(i) != member.Remove
	}
	return m.Problem != "" || m.Store != nil && m.Store.State != pd.StateOffline
}

// MaxConcurrentRemovals implements group.Component (KV-06).
func (c Component) MaxConcurrentRemovals() int {
	return int(ptr.Deref(c.Group.GetStoreSpec().ScaleInParallelism, 1))
}

// LeaderCount implements group.Component.
func (c Component) LeaderCount(i *v1alpha1.Instance) int {
	if m := c.of(i); m.Store != nil {
		return m.Store.Leaders
	}
	return 0
}

// isTiFlash reports whether a store holds columns; such a store has learners
// only, and no majority counts on it.
func isTiFlash(s pd.Store) bool {
	for key, value := range s.Labels {
		if strings.EqualFold(key, engineLabel) {
			return strings.HasPrefix(value, "tiflash")
		}
	}
	return false
}

// engineLabel is by which PD tells TiFlash from TiKV.
const engineLabel = "engine"

// peers returns the stores of the member's kind in the whole cluster, of whatever
// group, without the member's own.
func (c Component) peers(m Match) []pd.Store {
	var out []pd.Store
	for _, s := range c.Snapshot.PD.Stores {
		if isTiFlash(s) == !c.HasLeaders && (m.Store == nil || s.ID != m.Store.ID) {
			out = append(out, s)
		}
	}
	return out
}

// Unsafe says why a member must not be stopped as long as PD or another store of
// its kind, of whatever group, does not work; empty if all do.
func (c Component) Unsafe(i *v1alpha1.Instance) string {
	m := c.of(i)
	if reason := c.Trusted(i); reason != "" {
		return reason
	}
	for _, other := range c.peers(m) {
		if reason := c.lame(other, member.PodStateOf(i), informed(m)); reason != "" {
			return reason
		}
	}
	return ""
}

// Trusted says why nothing is done to a member whatever a person says, because PD or
// its store is not known; empty if both are.
func (c Component) Trusted(i *v1alpha1.Instance) string { return cmp.Or(c.silent(), c.of(i).Problem) }

// lame says why a store does not work, or is about not to, when one that stands so
// is stopped; empty if it does. One without regions does not matter once PD knows
// which regions lie where.
func (c Component) lame(other pd.Store, than member.PodState, informed bool) string {
	if other.State == pd.StateUp && other.Regions > 0 {
		if reason := c.unsteady(other, than); reason != "" {
			return reason
		}
	}
	if other.State == pd.StateUp && other.Started || other.Regions == 0 && informed {
		return ""
	}
	name := podName(other)
	switch asleep := c.asleep(other); {
	case abandoned(c.Snapshot, other):
		return leftBehind(other)
	case asleep != "":
		return fmt.Sprintf("store %s (%s) is %s, for %s", other.ID, name, other.State, asleep)
	case other.State == pd.StateOffline:
		return fmt.Sprintf("store %s (%s) is being removed and still holds regions", other.ID, name)
	case other.State == pd.StateDown:
		return fmt.Sprintf("store %s (%s) is Down: bring it back, or replace it: kubectl -n %s delete instance %s", other.ID, name, c.Group.GetNamespace(), name)
	}
	return fmt.Sprintf("store %s (%s) is %s", other.ID, name, other.State)
}

// silent says why PD cannot be relied upon now; empty if it can.
func (c Component) silent() string {
	if c.Silence == "" && !c.Snapshot.PD.HasQuorum() {
		return fmt.Sprintf("PDGroup %s has no quorum: kubectl -n %s describe pdgroup %s", c.Group.PDGroupName(), c.Group.GetNamespace(), c.Group.PDGroupName())
	}
	return c.Silence
}

// informed reports whether PD knows by now which regions lie where: a new leader
// of PD counts none at first. It does once it counts those of the member itself.
func informed(m Match) bool {
	return m.Store != nil && m.Store.State == pd.StateUp && m.Store.Regions > 0
}

// podName is the pod that a store's address names.
func podName(s pd.Store) string {
	name, _, _ := strings.Cut(s.Address, ".")
	return name
}

// Recover implements group.Component: the store has to be Up again.
func (c Component) Recover(i *v1alpha1.Instance, _ lease.State) component.Preparation {
	m := c.of(i)
	switch {
	case c.Silence != "":
		return waiting(v1alpha1.ReasonRecovering, "Instance %s has been restarted, and its store is not known: %s", i.Name, c.Silence)
	case m.Problem != "":
		return waiting(v1alpha1.ReasonStoreMismatch, "%s", m.Problem)
	case m.Store == nil && m.Recorded != "":
		// It has left meanwhile: there is nothing to come back.
		return component.Preparation{Ready: true}
	case m.Store == nil:
		return waiting(v1alpha1.ReasonRecovering, "Instance %s has been restarted, and PD lists no store at %s", i.Name, m.Address)
	case m.Store.State == pd.StateUp, m.Store.State == pd.StateOffline:
		return component.Preparation{Ready: true}
	}
	return waiting(v1alpha1.ReasonRecovering, "store %s of Instance %s is %s after its restart", m.Store.ID, i.Name, m.Store.State)
}

// Listed returns the store of a member as PD lists it, nil if it does not, or is not to
// be relied upon.
func (c Component) Listed(i *v1alpha1.Instance) *pd.Store { return c.of(i).Store }

// look is how soon PD is looked at again for something that no watch tells.
const look = 500 * time.Millisecond

// waiting returns a Preparation that waits for PD.
func waiting(reason, format string, args ...any) component.Preparation {
	return component.Preparation{Wait: step.Wait("PD", look, reason, fmt.Sprintf(format, args...))}
}

// readySince is when an Instance's pod became Ready, zero if it is not.
func readySince(i *v1alpha1.Instance) time.Time {
	c := gate.Current(i.Status.Conditions, i.Generation, v1alpha1.ConditionReady)
	if c == nil || c.Status != "True" {
		return time.Time{}
	}
	return c.LastTransitionTime.Time
}
