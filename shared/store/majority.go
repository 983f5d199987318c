package store

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// quorate is the number of voters from which on a region can do without one.
const quorate = 3

// endangered says how to look at the regions that a stop waits for. It names none of
// them: while PD replicates these are others at every moment, and a message that
// follows them is written over and over again.
func (c Component) endangered() string {
	return fmt.Sprintf("a region would be left without a majority of its voters, or may be: it waits until PD has replicated it, for which there have to be enough stores that its placement rules fit: "+
		"%s region check miss-peer (likewise down-peer, pending-peer); %s config placement-rules show", ctl(c.Group), ctl(c.Group))
}

// Endangered says that a region would be left without a majority if a member were
// stopped now, or soon, because PD may give it a voter there first; empty if none
// would (KV-13). Who holds the Lease is not stopped before PD was asked about its
// regions.
func (c Component) Endangered(i *v1alpha1.Instance) string {
	m, s := c.of(i), c.Snapshot
	if m.Store == nil {
		return ""
	}
	few := c.unreplicated(*m.Store)
	switch {
	case few && c.voting() < quorate:
		return "" // no region has three voters
	case s.RegionsErr != nil:
		return s.RegionsErr.Error()
	case !s.RegionsKnown && s.Lease.HeldBy(i):
		return "PD has not been asked about its regions yet"
	case slices.ContainsFunc(s.Regions, func(r pd.Region) bool { return needs(r, s.PD, *m.Store, few) }):
		return c.endangered()
	}
	return ""
}

// Sick returns the regions, by ID, that would be left without a majority if a member
// were stopped.
func (c Component) Sick(i *v1alpha1.Instance) []string {
	m := c.of(i)
	if m.Store == nil || c.Silence != "" {
		return nil
	}
	few := c.unreplicated(*m.Store)
	if few && c.voting() < quorate {
		return nil
	}
	var out []string
	for _, r := range c.Snapshot.Regions {
		if needs(r, c.Snapshot.PD, *m.Store, few) {
			out = append(out, r.ID)
		}
	}
	return out
}

// Overridden reports whether a person has taken it upon himself that the pod of a
// member is stopped although that is not safe (KV-13). It counts for the pod that he
// named, and for no later one.
func Overridden(i *v1alpha1.Instance) bool {
	return i.Status.PodUID != "" && i.Annotations[v1alpha1.AnnotationStopAnyway] == string(i.Status.PodUID)
}

// Overrule is the command by which a person does.
func Overrule(i *v1alpha1.Instance) string {
	return fmt.Sprintf("kubectl -n %s annotate instance %s %s=%s --overwrite", i.Namespace, i.Name, v1alpha1.AnnotationStopAnyway, i.Status.PodUID)
}

// Overdue turns a restart that has been held back for too long into something that a
// person must mend. A region that has been in the way all the time is named, and one
// that PD is about to replicate is not: while PD works these are others at every
// moment. Nothing is ever stopped because time has passed.
func (c Component) Overdue(d *component.Disruption, o step.Outcome) step.Outcome {
	hold, now := c.Snapshot.Hold, c.Snapshot.Now
	if d == nil || o.Reason != v1alpha1.ReasonUnsafe || o.Kind != step.KindWait || hold.Instance == "" || d.Verb != member.Restart || c.silent() != "" {
		return o
	}
	unsafe := c.Unsafe(d.Instance)
	regions := hold.OlderThan(now, unsafeTimeout)
	if unsafe == "" && len(regions) == 0 || unsafe != "" && now.Sub(hold.Since) < unsafeTimeout {
		return o
	}
	if unsafe == "" {
		named := strings.Join(regions[:min(len(regions), namedRegions)], ", ")
		if more := len(regions) - namedRegions; more > 0 {
			named += fmt.Sprintf(" and %d more", more)
		}
		unsafe = fmt.Sprintf("for more than %s PD has not replicated region %s: %s region %s", unsafeTimeout, named, ctl(c.Group), regions[0])
	}
	out := step.Stall(v1alpha1.ReasonUnsafe, fmt.Sprintf("Instance %s is not restarted (%s): %s; mend that, or have this pod stopped all the same, by which regions may be without a majority until it is back: %s",
		d.Instance.Name, d.Why, unsafe, Overrule(d.Instance)))
	out.After = o.After
	return out
}

const (
	// unsafeTimeout is after how long a person is told that a restart is held back.
	unsafeTimeout = 10 * time.Minute
	// namedRegions is how many regions a message names.
	namedRegions = 3
)

// needs reports whether a region would be left without a majority if a store were
// stopped. few says that the store is unreplicated.
func needs(r pd.Region, view pd.View, on pd.Store, few bool) bool {
	left, voters := survivors(r, view, on.ID)
	at := slices.IndexFunc(r.Peers, func(p pd.Peer) bool { return p.StoreID == on.ID })
	switch {
	case voters < quorate && (few || !r.Missing && onTiKV(r, view) < quorate):
		return false // no more are wanted, or there are no more such stores
	case at >= 0 && r.Peers[at].Voter:
		return left < pd.Majority(voters)
	}
	// PD does not know that the store is about to stop, and may make a voter there of
	// a new peer or of a learner. The second of two is then half of them, which is no
	// majority; so is the fourth if one of the other three does not work.
	comes := on.State == pd.StateUp && (r.Missing || at >= 0)
	return comes && left >= pd.Majority(voters) && left < pd.Majority(voters+1)
}

// unreplicated reports whether no region of a store could do without one of its
// voters, because there are to be fewer than three. Nothing is gained then by
// waiting. A placement rule may want more for its regions than PD does for all
// others, and an exclusive store has the regions of the rules that name it, which
// need stores that fit them (KV-26).
func (c Component) unreplicated(on pd.Store) bool {
	view, most, named := c.Snapshot.PD, 0, false
	var stores []pd.Store
	alike := 0
	for _, s := range view.Stores {
		if isTiFlash(s) || s.State == pd.StateOffline {
			continue
		}
		stores = append(stores, s)
		if c.secluded(s) == c.secluded(on) {
			alike++
		}
	}
	for _, rules := range claims(view.Rules) {
		takers := rules.takers(stores)
		if slices.ContainsFunc(takers, func(s pd.Store) bool { return s.ID == on.ID }) {
			named, most = true, max(most, min(rules.voters(), len(takers)))
		}
	}
	if !named || !c.secluded(on) {
		most = max(most, min(view.MaxReplicas, alike))
	}
	return most < quorate
}

// voting is how many stores may have voters.
func (c Component) voting() int {
	n := 0
	for _, s := range c.Snapshot.PD.Stores {
		if !isTiFlash(s) {
			n++
		}
	}
	return n
}

// onTiKV counts the peers of a region that are voters or may become some.
func onTiKV(r pd.Region, view pd.View) int {
	n := 0
	for _, p := range r.Peers {
		if s, listed := view.Store(p.StoreID); !listed || !isTiFlash(s) {
			n++
		}
	}
	return n
}

// survivors counts the voters of a region, and those of them that work on other
// stores than one.
func survivors(r pd.Region, view pd.View, without string) (left, voters int) {
	for _, p := range r.Peers {
		if !p.Voter {
			continue
		}
		voters++
		s, listed := view.Store(p.StoreID)
		if p.StoreID != without && !p.Down && !p.Pending && listed && s.State == pd.StateUp {
			left++
		}
	}
	return left, voters
}
