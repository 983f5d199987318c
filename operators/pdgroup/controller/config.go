package controller

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/pdgroup/membership"
	"github.com/tidb-groups/tidb-groups/operators/pdgroup/persisted"
	"github.com/tidb-groups/tidb-groups/operators/pdgroup/recovery"
	"github.com/tidb-groups/tidb-groups/shared/group"
	"github.com/tidb-groups/tidb-groups/shared/origin"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

const (
	// configDeadline bounds giving PD what it lacks of its configuration.
	configDeadline = 5 * time.Second
	// configAgain is how soon PD is given again what it has refused: nothing tells when
	// it would take it.
	configAgain = time.Minute
)

// placementRules is the item that TiFlash needs to be true.
const placementRules = "replication.enable-placement-rules"

// storing is the group.Settings of PD: an Instance has the revision of a file that
// differs in stored items alone when PD, which stores them for all members, shows
// them. Until then a pod that is made anew gets the file that is known to be good.
type storing struct {
	g *v1alpha1.PDGroup
	s group.Snapshot
}

var _ group.Settings = storing{}

// Restart implements group.Settings.
func (storing) Restart(old, wanted map[string]string) string {
	return persisted.Restart(configFile, old, wanted)
}

// Given implements group.Settings. What a member runs with is asked for the file of
// the spec alone: PD has no other one's items.
func (c storing) Given(_ *v1alpha1.Instance, _ []map[string]string, wanted map[string]string) group.Given {
	items := persisted.Items(wanted[configFile])
	if !reflect.DeepEqual(items, persisted.Items(c.g.Spec.Config)) {
		return group.Given{Outcome: step.Done()}
	}
	if why := c.unknown(); why != "" {
		// A group at rest stays at rest while PD elects a leader.
		if upToDate := meta.FindStatusCondition(c.g.Status.Conditions, v1alpha1.ConditionUpToDate); upToDate != nil &&
			upToDate.Status == "True" && upToDate.ObservedGeneration == c.g.Generation {
			return group.Given{Outcome: step.Done()}
		}
		return group.Given{Outcome: step.Wait("PD", lookAgain, v1alpha1.ReasonConfigPending, "PD is given its changed configuration when it answers: "+why)}
	}
	return group.Given{Outcome: pending(persisted.Lacks(items, c.s.PD.Config))}
}

// unknown says why nobody knows what PD stores; empty if that is known.
func (c storing) unknown() string {
	if why := membership.Unknown(c.g, c.s); why != "" {
		return why
	}
	if c.s.PD.Config == nil {
		return "it has not told its configuration"
	}
	return ""
}

// lacks returns what PD is to be given: the items of the spec that it stores with
// another value, whoever has changed them. Items that the spec does not name are left
// alone.
func (c storing) lacks() []persisted.Lack {
	if c.g.DeletionTimestamp != nil || c.g.Spec.Paused || c.g.Spec.Suspended || recovery.Active(c.g) || c.unknown() != "" {
		return nil
	}
	return persisted.Lacks(persisted.Items(c.g.Spec.Config), c.s.PD.Config)
}

// pending waits for PD to show some items.
func pending(lacks []persisted.Lack) step.Outcome {
	if len(lacks) == 0 {
		return step.Done()
	}
	var items []string
	for _, l := range lacks {
		items = append(items, fmt.Sprintf("%s (it has %s)", l.Item, orNothing(l.Has)))
	}
	return step.Wait("PD", configAgain, v1alpha1.ReasonConfigPending, "PD is given "+strings.Join(items, ", "))
}

func orNothing(has string) string {
	if has == "" {
		return "none"
	}
	return has
}

// contested says that the spec turns something off that another group turns on; Done
// if it does not.
func (c storing) contested(lacks []persisted.Lack) step.Outcome {
	for _, l := range lacks {
		for _, other := range c.s.Groups {
			if l.Key == placementRules && other.GroupKind() == v1alpha1.KindTiFlashGroup && other.GetDeletionTimestamp() == nil {
				return refuse(c.g, []string{l.Item.String()}, "TiFlashGroup "+other.GetName()+" needs placement rules")
			}
		}
	}
	return step.Done()
}

// refuse says which items PD does not take, and what to do.
func refuse(g *v1alpha1.PDGroup, items []string, answers string) step.Outcome {
	edit := origin.Of(g)
	o := step.Stall(v1alpha1.ReasonConfigRefused, fmt.Sprintf("PD does not take %s (%s): set it to what PD takes, or take it out of %s, and PD keeps what it has: %s",
		strings.Join(items, ", "), answers, edit.Field("config"), edit.Edit()))
	o.After = configAgain
	return o
}

// configure gives PD the items that it lacks, one by one, so that the one that it
// refuses has a name. An item may be refused for the sake of another one, and is given
// once more after that.
func (r *Reconciler) configure(ctx context.Context, g *v1alpha1.PDGroup, s group.Snapshot, lacks []persisted.Lack) step.Outcome {
	if len(lacks) == 0 {
		return step.Done()
	}
	if o := (storing{g, s}).contested(lacks); o.Kind != step.KindDone {
		return o
	}
	key := client.ObjectKeyFromObject(g)
	c, err := r.PD.Client(key)
	if err != nil {
		return step.Fail(v1alpha1.ReasonRequestFailed, err)
	}
	ctx, cancel := context.WithTimeout(ctx, configDeadline)
	defer cancel()
	answers := map[string]error{}
	for rest := lacks; len(rest) > 0; {
		var refused []persisted.Lack
		for _, l := range rest {
			var no *pd.Refused
			switch err := c.SetConfig(ctx, map[string]any{l.Key: l.Send}); {
			case errors.As(err, &no):
				answers[l.Key] = err
				refused = append(refused, l)
			case err != nil:
				return step.Fail(v1alpha1.ReasonRequestFailed, err)
			default:
				delete(answers, l.Key)
				r.Recorder.Eventf(g, nil, corev1.EventTypeNormal, "ConfigGiven", "Configure", "PD has taken %s; it had %s", l.Item, orNothing(l.Has))
			}
		}
		if len(refused) == len(rest) {
			break
		}
		rest = refused
	}
	// What it shows counts, not what it answers.
	return verdict(g, r.PD.Ask(ctx, key), answers)
}

// verdict says what became of the items of the spec, by what PD shows now and what it
// has answered.
func verdict(g *v1alpha1.PDGroup, now pd.View, answers map[string]error) step.Outcome {
	if now.Err != nil {
		return step.Done() // the plan waits for PD already
	}
	var items, why []string
	early := false
	for _, l := range persisted.Lacks(persisted.Items(g.Spec.Config), now.Config) {
		var no *pd.Refused
		switch err := answers[l.Key]; {
		case errors.Is(err, pd.ErrNotBootstrapped):
			early = true
			continue
		case errors.As(err, &no):
			why = append(why, no.Body)
		default:
			why = append(why, "it said yes, and has "+orNothing(l.Has))
		}
		items = append(items, l.Item.String())
	}
	switch {
	case len(items) > 0:
		return refuse(g, items, strings.Join(why, "; "))
	case early:
		return step.Wait("PD", lookAgain, v1alpha1.ReasonConfigPending, "PD takes the items of [replication] when a store has registered")
	}
	return step.Done()
}
