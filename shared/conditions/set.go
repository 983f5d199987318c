package conditions

import (
	"slices"
	"strings"
	"time"
	"unicode"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

// maxMessage is how long a message may get; the API allows 32768 characters, and 1024 in
// the note of an Event, in which "UpToDate is False: " stands before it.
const maxMessage = 960

// clockSkew is by how much the clock of a node may be ahead of the operator's and still be believed.
const clockSkew = time.Minute

// Set is the conditions that one operator owns on one object, under
// construction.
type Set struct {
	old        []metav1.Condition
	list       []metav1.Condition
	generation int64
	now        metav1.Time
}

// New returns an empty Set for an object of a generation that carries old.
func New(old []metav1.Condition, generation int64, now time.Time) *Set {
	return &Set{old: old, generation: generation, now: metav1.NewTime(now)}
}

// NewMember returns an empty Set for what the database reports of the member of an Instance
// that carries old. That rests on no spec, so these conditions have no generation, and an edit
// that changes nothing of them has none of them written again.
func NewMember(old []metav1.Condition, now time.Time) *Set { return New(old, 0, now) }

// SetCondition sets a condition. The transition time is kept while the status is.
func (s *Set) SetCondition(conditionType string, status metav1.ConditionStatus, reason, message string) {
	c := metav1.Condition{
		Type: conditionType, Status: status, Reason: reason, Message: formatMessage(message),
		ObservedGeneration: s.generation, LastTransitionTime: s.now,
	}
	if before := meta.FindStatusCondition(s.old, conditionType); before != nil && before.Status == status {
		c.LastTransitionTime = before.LastTransitionTime
	}
	if at := slices.IndexFunc(s.list, func(x metav1.Condition) bool { return x.Type == conditionType }); at >= 0 {
		s.list[at] = c
		return
	}
	s.list = append(s.list, c)
}

// NotBefore moves the transition time of a condition of the Set forward to a time
// before which it cannot have been, because what it reports has turned there and
// back unseen. A time that is to come is of a clock that is wrong, and tells nothing.
func (s *Set) NotBefore(conditionType string, since metav1.Time) {
	if c := meta.FindStatusCondition(s.list, conditionType); c != nil && c.LastTransitionTime.Before(&since) && since.Sub(s.now.Time) <= clockSkew {
		c.LastTransitionTime = since
	}
}

// MarkTrue sets a condition to True.
func (s *Set) MarkTrue(conditionType, reason, message string) {
	s.SetCondition(conditionType, metav1.ConditionTrue, reason, message)
}

// MarkFalse sets a condition to False.
func (s *Set) MarkFalse(conditionType, reason, message string) {
	s.SetCondition(conditionType, metav1.ConditionFalse, reason, message)
}

// MarkUnknown sets a condition to Unknown.
func (s *Set) MarkUnknown(conditionType, reason, message string) {
	s.SetCondition(conditionType, metav1.ConditionUnknown, reason, message)
}

// Is reports whether the Set has the condition at True.
func (s *Set) Is(conditionType string) bool {
	return meta.IsStatusConditionTrue(s.list, conditionType)
}

// Get returns a condition of the Set; the zero Condition if it has none.
func (s *Set) Get(conditionType string) metav1.Condition {
	if c := meta.FindStatusCondition(s.list, conditionType); c != nil {
		return *c
	}
	return metav1.Condition{}
}

// Was reports whether the object carried the condition at True before.
func (s *Set) Was(conditionType string) bool {
	return meta.IsStatusConditionTrue(s.old, conditionType)
}

// List returns the conditions in the order of the table.
func (s *Set) List() []metav1.Condition {
	types := v1alpha1.ConditionTypes()
	rank := func(c metav1.Condition) int { return slices.Index(types, c.Type) }
	out := slices.Clone(s.list)
	slices.SortStableFunc(out, func(a, b metav1.Condition) int { return rank(a) - rank(b) })
	return out
}

// eventConditions lists the conditions whose changes are worth an Event: the rest follow from
// them or lead to them, and can be read in status.
func eventConditions() []string {
	return []string{v1alpha1.ConditionReady, v1alpha1.ConditionUpToDate, v1alpha1.ConditionStalled, v1alpha1.ConditionPaused, v1alpha1.ConditionBootstrapped, v1alpha1.ConditionQuorumHealthy}
}

// eventReasons lists the reasons of an UpToDate that is not True which cause an Event although
// nothing is done: a user has put it off, or has to make room.
func eventReasons() []string {
	return []string{v1alpha1.ReasonUpdateHeld, v1alpha1.ReasonPodUnschedulable}
}

// Transitions returns the conditions of told whose status differs from what the
// object carried before; one that begins bad is no news.
func (s *Set) Transitions() []metav1.Condition {
	var out []metav1.Condition
	for _, c := range s.List() {
		if !slices.Contains(eventConditions(), c.Type) {
			continue
		}
		before := meta.FindStatusCondition(s.old, c.Type)
		switch {
		case c.Type == v1alpha1.ConditionUpToDate && c.Status != metav1.ConditionTrue:
			// The steps of a roll cause Events; what blocks it does not.
			if slices.Contains(eventReasons(), c.Reason) && (before == nil || before.Reason != c.Reason) {
				out = append(out, c)
			}
		case before != nil && before.Status == c.Status && before.Reason == c.Reason:
		case before == nil && c.Status != metav1.ConditionTrue:
		case before != nil && before.Status == c.Status && c.Type != v1alpha1.ConditionStalled:
		default:
			out = append(out, c)
		}
	}
	return out
}

// formatMessage makes a message a single line of bounded length, fit for a terminal: it may quote
// what a PD or a pod says, which is any program of its namespace.
func formatMessage(message string) string {
	return CutText(SanitizeText(strings.Join(strings.Fields(message), " ")), maxMessage)
}

// CutText cuts a text that has more bytes than it may have.
func CutText(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return trimCutCommand(strings.ToValidUTF8(text[:most-3], "")) + "..."
}

// trimCutCommand takes the command off that a message was cut in: a part of one must not be there
// to be pasted.
func trimCutCommand(cut string) string {
	if at := strings.LastIndex(cut, "kubectl "); at > 0 && !strings.ContainsAny(cut[at:], ";)") {
		return cut[:at]
	}
	return strings.TrimSuffix(cut, "kubectl")
}

// SanitizeText replaces what a terminal would obey or hide rather than show: control characters,
// and those that turn the direction of writing.
func SanitizeText(text string) string {
	return strings.Map(func(r rune) rune {
		if r != ' ' && !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, text)
}
