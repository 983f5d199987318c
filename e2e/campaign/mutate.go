package campaign

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/e2e/faults"
	"github.com/tidb-groups/tidb-groups/e2e/model"
	"github.com/tidb-groups/tidb-groups/e2e/objects"
	"github.com/tidb-groups/tidb-groups/e2e/scenario"
)

const (
	// spoken is how long an operator may take to say something about a mutation,
	// on a machine that does much else; P11 says 5 s.
	spoken = 15 * time.Second
	// dwell is how long the operators are let do what a mutation asks for.
	dwell = 3 * time.Second
	// owner of the fields that a mutation writes.
	owner = client.FieldOwner("user")
)

// mutator mutates the objects of one living cluster, one field after the other.
// A cluster that did not come back from a mutation is given up.
type mutator struct {
	c       *campaign
	story   scenario.Scenario
	want    *Reference
	schemas map[string]*schema
	stage   *stage
	// tolerant says that all members of a group may stop.
	tolerant bool
}

// mutationPoints returns the attempts of MUTATE on a scenario: each mutation of
// each kind of which it leaves an object that a user has made.
func mutationPoints(name string, want *Reference, schemas map[string]*schema) []Attempt {
	var out []Attempt
	for _, kind := range sortedKeys(schemas) {
		if kind == v1alpha1.KindInstance || !slices.ContainsFunc(want.Outcome, func(o scenario.Object) bool { return o.Key.Kind == kind && len(o.Owners) == 0 }) {
			continue
		}
		for _, m := range listMutations(kind, schemas[kind]) {
			out = append(out, Attempt{Campaign: Mutate, Scenario: name, Fault: m.String()})
		}
	}
	return out
}

// try makes one attempt.
func (m *mutator) try(ctx context.Context, a Attempt) (Record, error) {
	mutation, err := findMutation(a.Fault, m.schemas)
	if err != nil {
		return Record{}, err
	}
	return m.c.record(ctx, a, func(r *Record) error {
		err := m.ready(ctx, mutation.stopsAll())
		if err == nil {
			r.Struck, r.Findings, err = m.mutate(ctx, mutation)
		}
		m.c.show(m.stage, r.Findings)
		if len(r.Findings) > 0 || err != nil || mutation.isVolumeSize() {
			err = errors.Join(err, m.close())
		}
		return err
	})
}

// alone are the manifests in which every group has one member.
const alone = "small"

// ready has a living cluster, tolerant or not.
func (m *mutator) ready(ctx context.Context, tolerant bool) error {
	if m.stage != nil && m.tolerant == tolerant {
		return nil
	}
	if err := m.close(); err != nil {
		return err
	}
	m.tolerant = tolerant
	story := m.story
	if tolerant || slices.Contains(story.Use, alone) {
		// What needs a restart stops the only one that there is.
		story.Options.Tolerate = append(slices.Clone(story.Options.Tolerate), model.LostPDMajority, model.LostRegionMajority)
	}
	s, err := openStage(ctx, m.c.plane, story, faults.Fault{})
	if err != nil {
		return err
	}
	if _, err = scenario.Run(ctx, s, m.story); err == nil {
		err = s.settle(ctx)
	}
	if err != nil {
		return errors.Join(err, s.Close())
	}
	m.stage = s
	return nil
}

func (m *mutator) close() error {
	if m.stage == nil {
		return nil
	}
	s := m.stage
	m.stage = nil
	return s.Close()
}

// mutate changes a field, lets the operators do what that asks for, changes it
// back and looks whether everything is again as it was.
func (m *mutator) mutate(ctx context.Context, change mutation) (bool, []Finding, error) {
	object, err := m.target(change.kind)
	if err != nil {
		return false, nil, err
	}
	before, _, err := unstructured.NestedMap(object.Object, "spec")
	if err != nil {
		return false, nil, fmt.Errorf("read spec of %s: %w", object.GetName(), err)
	}
	if !change.changesSpec(before) {
		return false, nil, nil
	}
	after, err := change.apply(before)
	if err != nil {
		return false, nil, err
	}
	claims := m.claims()
	refused, err := m.write(ctx, object, after)
	if err != nil || refused != nil {
		return true, nil, err // refused at once: nothing has happened
	}
	var out []Finding
	if err := m.said(ctx, object); err != nil {
		out = append(out, Finding{Promise: "P11", What: err.Error()})
	}
	m.linger(ctx)
	if halfway, is := change.halfway(before, after); is {
		found, err := m.half(ctx, object, halfway)
		if out = append(out, found...); err != nil {
			return true, out, err
		}
	}
	refused, err = m.write(ctx, object, before)
	if err != nil {
		return true, out, err
	}
	if change.growsVolumes(before) {
		return true, append(out, m.keeps(ctx, object, refused)...), ctx.Err()
	}
	if refused != nil {
		return true, append(out, Finding{Promise: "P7", What: "it cannot be taken back: " + refused.Error()}), nil
	}
	return true, append(out, m.judge(ctx, claims)...), ctx.Err()
}

// half takes a mutation back but for the empty maps that it leaves, and finds that
// the API takes these and a later reader does not.
func (m *mutator) half(ctx context.Context, object *unstructured.Unstructured, spec map[string]any) ([]Finding, error) {
	refused, err := m.write(ctx, object, spec)
	if err != nil || refused != nil {
		return nil, err
	}
	ctx, cancel := withRunningTimeout(ctx, bound, fmt.Errorf("what is left of it is refused for %s", bound))
	defer cancel()
	err = m.stage.Await(ctx, func(o objects.Set) error {
		now := o.Get(object.GetKind(), object.GetName())
		if now == nil {
			return fmt.Errorf("%s %s is gone", object.GetKind(), object.GetName())
		}
		told := false
		for _, c := range objects.Conditions(now) {
			told = told || c.Type == v1alpha1.ConditionReady && c.ObservedGeneration >= object.GetGeneration()
			if c.Type == v1alpha1.ConditionStalled && c.Status == metav1.ConditionTrue {
				return fmt.Errorf("%s", c.Message)
			}
		}
		if !told {
			return errors.New("nothing is said of it")
		}
		return nil
	})
	if err != nil {
		return []Finding{{Promise: "P7", What: "half taken back: " + err.Error()}}, nil
	}
	return nil, nil
}

// onlyGrows is what is said of a size that claims have asked for and that is set back.
const onlyGrows = "spec.volumes[].storage may only grow"

// keeps finds what is not said of a size that is not to be taken back any more: at
// once, or by an object whose groups refuse it.
func (m *mutator) keeps(ctx context.Context, object *unstructured.Unstructured, refused error) []Finding {
	if refused != nil && strings.Contains(refused.Error(), onlyGrows) {
		return nil
	}
	ctx, cancel := withRunningTimeout(ctx, spoken, fmt.Errorf("nothing is said of a size that cannot be taken back within %s", spoken))
	defer cancel()
	err := m.stage.Await(ctx, func(o objects.Set) error {
		if now := o.Get(object.GetKind(), object.GetName()); now == nil || !slices.ContainsFunc(objects.Conditions(now), func(c metav1.Condition) bool {
			return strings.Contains(c.Message, onlyGrows)
		}) {
			return fmt.Errorf("%s %s does not say that %s", object.GetKind(), object.GetName(), onlyGrows)
		}
		return nil
	})
	if err != nil {
		return []Finding{{Promise: "P11", What: err.Error()}}
	}
	return nil
}

// judge finds what is not again as it was.
func (m *mutator) judge(ctx context.Context, claims map[string]types.UID) []Finding {
	arrived, cancel := withRunningTimeout(ctx, bound, fmt.Errorf("it has not come back within %s", bound))
	defer cancel()
	wanted := summarizeOutcome(m.want.Outcome)
	err := m.stage.Await(arrived, func(o objects.Set) error {
		have, err := scenario.Outcome(o, m.stage.Namespace())
		if err != nil {
			return err
		}
		return compareCounts(summarizeOutcome(have), wanted)
	})
	// Pods may have been replaced on the way, as the mutation asked for.
	as := *m.want
	as.Restarts, as.Outcome = scenario.CountRestarts(m.stage.Observed().UIDs), nil
	out := m.stage.judge(ctx, nil, &as)
	if err != nil {
		out = append(out, Finding{Promise: "P5", What: err.Error()})
	}
	now := m.claims()
	for _, name := range sortedKeys(claims) {
		if now[name] != claims[name] {
			out = append(out, Finding{Promise: "P3", What: "claim " + name + " is lost"})
		}
	}
	return out
}

// target returns the object of a kind that a user has made.
func (m *mutator) target(kind string) (*unstructured.Unstructured, error) {
	var out *unstructured.Unstructured
	m.stage.Watcher.Now(func(o objects.Set) {
		for _, name := range o.Names(kind, "") {
			if object := o.Get(kind, name); out == nil && len(object.GetOwnerReferences()) == 0 {
				out = object.DeepCopy()
			}
		}
	})
	if out == nil {
		return nil, fmt.Errorf("no user has made a %s", kind)
	}
	return out, nil
}

// write puts a spec into an object. refused is the API's answer to one that it
// does not take.
func (m *mutator) write(ctx context.Context, object *unstructured.Unstructured, spec map[string]any) (refused, err error) {
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if err := m.stage.User().Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		object.Object["spec"] = spec
		return m.stage.User().Update(ctx, object, owner)
	})
	if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsForbidden(err) {
		return err, nil
	}
	return nil, err
}

// said waits until the operator has said something about an object.
func (m *mutator) said(ctx context.Context, object *unstructured.Unstructured) error {
	key := objects.Key{Kind: object.GetKind(), Name: object.GetName()}
	ctx, cancel := withRunningTimeout(ctx, spoken, fmt.Errorf("nothing is said of it within %s", spoken))
	defer cancel()
	return m.stage.Await(ctx, func(o objects.Set) error {
		now := o.Get(key.Kind, key.Name)
		if now == nil || !slices.ContainsFunc(objects.Conditions(now), func(c metav1.Condition) bool {
			return c.Type == v1alpha1.ConditionReady && c.ObservedGeneration >= object.GetGeneration()
		}) {
			return fmt.Errorf("%s at generation %d", key, object.GetGeneration())
		}
		return nil
	})
}

// linger lets the operators work for a while, less if they have nothing to do.
func (m *mutator) linger(ctx context.Context) {
	ctx, cancel := withRunningTimeout(ctx, dwell, nil)
	defer cancel()
	_ = m.stage.settle(ctx) // both ends will do
}

// claims returns the UIDs of all claims.
func (m *mutator) claims() map[string]types.UID {
	out := map[string]types.UID{}
	m.stage.Watcher.Now(func(o objects.Set) {
		for _, name := range o.Names("PersistentVolumeClaim", "") {
			out[name] = o.Get("PersistentVolumeClaim", name).GetUID()
		}
	})
	return out
}

// summarizeOutcome is what of an outcome has to be the same after a mutation was taken back:
// the groups and their Services; of members how many there are, of which
// revision and in what condition, but not their names, for a slot whose claim is
// kept is not given to another member; not what is kept of the past.
func summarizeOutcome(outcome []scenario.Object) map[string]int {
	out := map[string]int{}
	for _, o := range outcome {
		switch o.Key.Kind {
		case "PersistentVolumeClaim", "ConfigMap", "ControllerRevision", "Lease":
		case v1alpha1.KindInstance, "Pod":
			revision := o.Labels[v1alpha1.LabelRevision]
			if spec, ok := o.Spec.(map[string]any); ok && revision == "" {
				revision, _, _ = unstructured.NestedString(spec, "spec", "revision")
			}
			out[fmt.Sprintf("%s of %s at %s %v", o.Key.Kind, o.Labels[v1alpha1.LabelGroup], revision, o.Conditions)]++
		default:
			out[fmt.Sprintf("%s %v %v", o.Key, o.Spec, o.Conditions)]++
		}
	}
	return out
}

// compareCounts says what is there in other numbers than wanted.
func compareCounts(have, want map[string]int) error {
	both := maps.Clone(have)
	maps.Copy(both, want)
	var out []string
	for _, what := range sortedKeys(both) {
		if have[what] != want[what] {
			out = append(out, fmt.Sprintf("%d instead of %d × %s", have[what], want[what], what))
		}
	}
	if len(out) == 0 {
		return nil
	}
	return errors.New(strings.Join(out, "; "))
}
