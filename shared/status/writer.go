package status

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/apply"
	"github.com/tidb-groups/tidb-groups/shared/conditions"
)

// Writer writes status as one field owner.
type Writer struct {
	// Apply writes as the field owner, which is the operator.
	Apply apply.Writer
	// Recorder of Events.
	Recorder events.EventRecorder
	// Version of the operator, which every status that it writes says.
	Version string
	// Words that wait to be written; nil lets none wait.
	Words *Words
}

// Versioned is a pointer to a status that says which version of the operator wrote it.
type Versioned interface{ SetOperatorVersion(version string) }

// Write applies the whole status of an object whose only writer this is. before
// points to the status that the object carries, after to the new one, a [Versioned],
// which gets the operator's version. Transitions become Events once the status has
// been written. A new status that differs in words alone is not written yet: Write returns
// how soon it is to be called again.
func (w Writer) Write(ctx context.Context, object client.Object, before, after any, transitions []metav1.Condition) (time.Duration, error) {
	return w.write(ctx, w.Apply.Status, change{object, before, after, transitions})
}

// WriteSeen is Write that is refused with a conflict if the object is not the
// newest version any more: for statuses that hold what is written once.
func (w Writer) WriteSeen(ctx context.Context, object client.Object, before, after any, transitions []metav1.Condition) (time.Duration, error) {
	return w.write(ctx, w.Apply.StatusIfLatest, change{object, before, after, transitions})
}

// send applies a status.
type send func(ctx context.Context, live client.Object, status any) (apply.Result, error)

// change is the status of an object as it is and as it is to be.
type change struct {
	object        client.Object
	before, after any
	transitions   []metav1.Condition
}

func (w Writer) write(ctx context.Context, send send, c change) (time.Duration, error) {
	versioned, ok := c.after.(Versioned)
	if !ok {
		return 0, fmt.Errorf("status.Writer: a %T does not say which version of the operator wrote it", c.after)
	}
	versioned.SetOperatorVersion(w.Version)
	same := equality.Semantic.DeepEqual(c.before, c.after)
	if wait := w.Words.wait(c.object.GetUID(), !same && len(c.transitions) == 0 && differsInWordsOnly(c.before, c.after), chooseDelayFactor(c.after)); wait > 0 {
		return wait, nil
	}
	if same {
		return 0, nil
	}
	if _, err := send(ctx, c.object, c.after); err != nil {
		return 0, client.IgnoreNotFound(err)
	}
	for _, t := range c.transitions {
		if c.isPartOfStart(t) {
			Note(logr.FromContextOrDiscard(ctx), About{Object: c.object, Reason: t.Reason}, "%s is %s: %s", t.Type, t.Status, t.Message)
			continue
		}
		w.recordTransition(ctx, c.object, t)
	}
	return 0, nil
}

// beginning is how soon after it was made an object says for the first time what it waits for.
const beginning = 10 * time.Second

// isPartOfStart reports whether a condition that has turned is part of a start, of which the Event
// that the object is Ready tells: it turned True with Ready, or the object is Ready already and
// has not matched its spec since it was made.
func (c change) isPartOfStart(t metav1.Condition) bool {
	info, _ := v1alpha1.LookupCondition(t.Type)
	if t.Type == v1alpha1.ConditionReady || t.Status != metav1.ConditionTrue || info.Polarity == v1alpha1.NegativePolarity {
		return false
	}
	if meta.IsStatusConditionTrue(c.transitions, v1alpha1.ConditionReady) {
		return true
	}
	was := meta.FindStatusCondition(conditions.FromObject(c.object), v1alpha1.ConditionUpToDate)
	return t.Type == v1alpha1.ConditionUpToDate && was != nil && meta.IsStatusConditionTrue(conditions.FromObject(c.object), v1alpha1.ConditionReady) &&
		was.LastTransitionTime.Sub(c.object.GetCreationTimestamp().Time) < beginning
}

// recordTransition records an Event for a condition that changed.
func (w Writer) recordTransition(ctx context.Context, object client.Object, c metav1.Condition) {
	if c.Type == v1alpha1.ConditionReconciling {
		return
	}
	if _, member := object.(*v1alpha1.Instance); member && (c.Type == v1alpha1.ConditionReady || c.Status == metav1.ConditionTrue && c.Type == v1alpha1.ConditionUpToDate) {
		// Else a roll of the group would cause an Event for each member; Events of what is done to a member remain.
		Note(logr.FromContextOrDiscard(ctx), About{Object: object, Reason: c.Reason}, "%s is %s: %s", c.Type, c.Status, c.Message)
		return
	}
	info, known := v1alpha1.LookupCondition(c.Type)
	bad := c.Status != metav1.ConditionTrue
	if known && info.Polarity == v1alpha1.NegativePolarity {
		bad = !bad
	}
	eventType := corev1.EventTypeNormal
	if bad && (c.Type == v1alpha1.ConditionStalled || c.Reason == v1alpha1.ReasonQuorumLost || c.Reason == v1alpha1.ReasonPodUnschedulable) {
		eventType = corev1.EventTypeWarning
	}
	w.Recorder.Eventf(object, nil, eventType, c.Reason, c.Type, "%s is %s: %s", c.Type, c.Status, c.Message)
}

// memberPart is what a group's operator owns in the status of an Instance.
type memberPart struct {
	Conditions []metav1.Condition     `json:"conditions,omitempty"`
	Member     *v1alpha1.MemberStatus `json:"member,omitempty"`
}

// WriteMember applies the group operator's part of an Instance's status: the
// member and the member conditions. That a new member does not serve yet waits, and so does its
// state, which no operator acts on: WriteMember returns how soon it is to be called again.
func (w Writer) WriteMember(ctx context.Context, instance *v1alpha1.Instance, member *v1alpha1.MemberStatus, said []metav1.Condition) (time.Duration, error) {
	before := memberPart{Member: instance.Status.Member}
	for _, c := range said {
		if have := meta.FindStatusCondition(instance.Status.Conditions, c.Type); have != nil {
			before.Conditions = append(before.Conditions, *have)
		}
	}
	for _, kind := range []string{v1alpha1.ConditionJoined, v1alpha1.ConditionHealthy, v1alpha1.ConditionDrained} {
		// One that no longer holds is removed, as when a removal is withdrawn.
		have := meta.FindStatusCondition(instance.Status.Conditions, kind)
		if have != nil && meta.FindStatusCondition(said, kind) == nil {
			before.Conditions = append(before.Conditions, *have)
		}
	}
	after := memberPart{Conditions: said, Member: member}
	same := equality.Semantic.DeepEqual(before, after)
	if wait := w.Words.waitForMember(instance, !same && (before.isEmpty() && after.isStarting() || before.equalsButState(after))); wait > 0 {
		return wait, nil
	}
	if same {
		return 0, nil
	}
	write := w.Apply.Status
	if meta.IsStatusConditionTrue(before.Conditions, v1alpha1.ConditionDrained) && !meta.IsStatusConditionTrue(said, v1alpha1.ConditionDrained) {
		// It may have been released since, and then it has left for good.
		write = w.Apply.StatusIfLatest
	}
	_, err := write(ctx, instance, after)
	return 0, client.IgnoreNotFound(err)
}

// isEmpty reports whether the status has nothing about a member.
func (p memberPart) isEmpty() bool { return p.Member == nil && len(p.Conditions) == 0 }

// isStarting reports whether no more is said of a member than that it does not serve yet. Of one
// that the database keeps no list of, its state alone says so.
func (p memberPart) isStarting() bool {
	return meta.FindStatusCondition(p.Conditions, v1alpha1.ConditionDrained) == nil &&
		(p.Member != nil && p.Member.State == v1alpha1.MemberStarting ||
			slices.ContainsFunc(p.Conditions, func(c metav1.Condition) bool { return c.Status != metav1.ConditionTrue }))
}

// equalsButState reports whether of a member that is known no more differs than its state.
func (p memberPart) equalsButState(other memberPart) bool {
	if p.Member == nil || other.Member == nil || !equality.Semantic.DeepEqual(p.Conditions, other.Conditions) {
		return false
	}
	was, is := *p.Member, *other.Member
	was.State, is.State = "", ""
	return was == is
}
