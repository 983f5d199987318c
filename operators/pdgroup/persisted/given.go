package persisted

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/pdgroup/membership"
	"github.com/tidb-groups/tidb-groups/operators/pdgroup/recovery"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/origin"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/verdict"
)

// File is the name of PD's configuration file.
const File = "pd.toml"

// configAgain is how soon PD is given again what it has refused: nothing shows when
// it would take it.
const configAgain = time.Minute

// placementRules is the item that some components need to be true.
const placementRules = "replication.enable-placement-rules"

// Stored is the group.Settings of PD: an Instance has the revision of a file that
// differs in stored items alone when PD, which stores them for all members, shows
// them. Until then a pod that is recreated gets the file that is known to be good.
type Stored struct {
	g *v1alpha1.PDGroup
	s observation.Snapshot
}

// New returns what PD stores for a group, as it is seen.
func New(g *v1alpha1.PDGroup, s observation.Snapshot) Stored { return Stored{g, s} }

// AppliesOnline implements component.OnlineConfig.
func (Stored) AppliesOnline(old, wanted map[string]string) verdict.Verdict {
	return AppliesOnline(File, old, wanted)
}

// Progress implements component.OnlineConfig. What a member runs with is asked for the file of
// the spec alone: PD has no other one's items.
func (c Stored) Progress(_ *v1alpha1.Instance, _ []map[string]string, wanted map[string]string) component.ConfigProgress {
	items := ParseItems(wanted[File])
	if !reflect.DeepEqual(items, ParseItems(c.g.Spec.Config)) {
		return component.ConfigProgress{Outcome: step.Done()}
	}
	if known := c.mayTrustConfig(); !known.IsAllowed() {
		// A group at rest stays at rest while PD elects a leader.
		if upToDate := meta.FindStatusCondition(c.g.Status.Conditions, v1alpha1.ConditionUpToDate); upToDate != nil &&
			upToDate.Status == "True" && upToDate.ObservedGeneration == c.g.Generation {
			return component.ConfigProgress{Outcome: step.Done()}
		}
		return component.ConfigProgress{Outcome: step.Wait("PD", membership.LookAgain, v1alpha1.ReasonConfigPending, "PD is given its changed configuration when it answers: "+known.Reason())}
	}
	return component.ConfigProgress{Outcome: WaitForItems(FindMissing(items, c.s.PD.Config))}
}

// Refused implements component.OnlineConfig. What PD has not taken yet it may refuse.
func (c Stored) Refused(wanted map[string]string) verdict.Reason {
	items := ParseItems(wanted[File])
	if !reflect.DeepEqual(items, ParseItems(c.g.Spec.Config)) || !c.mayTrustConfig().IsAllowed() {
		return verdict.Reason{}
	}
	if missing := FindMissing(items, c.s.PD.Config); len(missing) > 0 {
		return verdict.NewReasonf("PD has not taken %s", missing[0].Item)
	}
	return verdict.Reason{}
}

// mayTrustConfig says whether it is known what PD stores.
func (c Stored) mayTrustConfig() verdict.Verdict {
	if known := membership.MayTrustAnswer(c.g, c.s); !known.IsAllowed() {
		return known
	}
	if c.s.PD.Config == nil {
		return verdict.Refuse("it has not reported its configuration")
	}
	return verdict.Allow()
}

// MissingItems returns what PD is to be given: the items of the spec that it stores with
// another value, whatever has changed them. Items that the spec does not name are left
// alone.
func (c Stored) MissingItems() []MissingItem {
	if c.g.DeletionTimestamp != nil || c.g.Spec.Paused || c.g.Spec.Suspended || recovery.IsActive(c.g) || !c.mayTrustConfig().IsAllowed() {
		return nil
	}
	return FindMissing(ParseItems(c.g.Spec.Config), c.s.PD.Config)
}

// WaitForItems waits for PD to show some items.
func WaitForItems(missing []MissingItem) step.Outcome {
	if len(missing) == 0 {
		return step.Done()
	}
	var items []string
	for _, l := range missing {
		items = append(items, fmt.Sprintf("%s (it has %s)", l.Item, OrNothing(l.Has)))
	}
	return step.Wait("PD", configAgain, v1alpha1.ReasonConfigPending, "PD is given "+strings.Join(items, ", "))
}

// OrNothing is the value that an item has, for a user.
func OrNothing(has string) string {
	if has == "" {
		return "none"
	}
	return has
}

// CheckConflicts says that the spec turns something off that another group turns on, or has a value
// with which PD does not start; Done if it does not. Nothing is sent to PD then.
func (c Stored) CheckConflicts(missing []MissingItem) step.Outcome {
	for _, l := range missing {
		if l.Rewrite != "" {
			return stallForItems(c.g, []string{l.Item.String()}, "it has "+l.Has+": write it "+l.Rewrite+", or no member starts again")
		}
		for _, other := range c.s.Groups {
			if info, _ := v1alpha1.LookupComponent(other.GroupKind()); info.NeedsPlacementRules && l.Key == placementRules && l.Value == false && other.GetDeletionTimestamp() == nil {
				return stallForItems(c.g, []string{l.Item.String()}, other.GroupKind()+" "+other.GetName()+" needs placement rules")
			}
		}
	}
	return step.Done()
}

// stallForItems says which items PD does not take, and what to do.
func stallForItems(g *v1alpha1.PDGroup, items []string, answers string) step.Outcome {
	edit := origin.OfGroup(g)
	o := step.Stall(v1alpha1.ReasonConfigRefused, fmt.Sprintf("PD does not take %s (%s): set it to what PD takes, or take it out of %s, and PD keeps what it has: %s",
		strings.Join(items, ", "), answers, edit.Field("config"), edit.Edit()))
	o.After = configAgain
	return o
}

// CheckItems says what became of the items of the spec, by what PD shows now and what it
// has answered.
func CheckItems(g *v1alpha1.PDGroup, now pd.View, answers map[string]error) step.Outcome {
	if now.Err != nil {
		return step.Done() // the plan waits for PD already
	}
	var items, why []string
	early := false
	for _, l := range FindMissing(ParseItems(g.Spec.Config), now.Config) {
		var no *pd.Refused
		switch err := answers[l.Key]; {
		case errors.Is(err, pd.ErrNotBootstrapped):
			early = true
			continue
		case errors.As(err, &no):
			why = append(why, no.Body)
		default:
			why = append(why, "it accepted the change, but has "+OrNothing(l.Has))
		}
		items = append(items, l.Item.String())
	}
	switch {
	case len(items) > 0 && g.Status.Version != "" && g.Status.Version != g.Spec.Version:
		return step.Done() // members of another version may not know them, and the plan waits
	case len(items) > 0:
		return stallForItems(g, items, strings.Join(why, "; "))
	case early:
		return step.Wait("PD", membership.LookAgain, v1alpha1.ReasonConfigPending, "PD takes the items of [replication] when a store has registered")
	}
	return step.Done()
}
