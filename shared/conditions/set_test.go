package conditions_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/conditions"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/testkit/invariants"
)

func clock() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

// check holds conditions to the invariants of every status.
func check(t *testing.T, list []metav1.Condition) {
	t.Helper()
	g := &v1alpha1.PDGroup{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion().String(), Kind: v1alpha1.KindPDGroup}}
	g.Name, g.Generation, g.Status.Conditions = "basic-pd", 3, list
	raw, err := json.Marshal(g)
	require.NoError(t, err)
	object := &unstructured.Unstructured{}
	require.NoError(t, object.UnmarshalJSON(raw))
	assert.Empty(t, invariants.Check(object))
}

// TestFinish enumerates every verdict.
func TestFinish(t *testing.T) {
	outcomes := []step.Outcome{
		step.Done(),
		step.Wait("PD", time.Minute, v1alpha1.ReasonQuorumLost, "start the members again"),
		step.Wait("PD", time.Minute, "", "no reason was given"),
		step.RetryAfter(time.Second, v1alpha1.ReasonMissingReference, "create it"),
		step.Fail(v1alpha1.ReasonRequestFailed, errors.New("boom\nand more")),
		step.Stall(v1alpha1.ReasonInvalidSpec, "correct it"),
	}
	for _, serving := range []bool{false, true} {
		for _, paused := range []bool{false, true} {
			for _, suspended := range []bool{false, true} {
				for _, o := range outcomes {
					name := fmt.Sprintf("serving %v, paused %v, suspended %v, %s %s", serving, paused, suspended, o.Kind, o.Reason)
					t.Run(name, func(t *testing.T) {
						set := conditions.New(nil, 3, clock())
						set.Finish(conditions.Verdict{Serving: serving, Summary: "3 of 3 Instances are ready", Outcome: o, Paused: paused, Suspended: suspended})
						list := set.List()
						check(t, list)
						is := func(kind string) bool { return meta.IsStatusConditionTrue(list, kind) }
						assert.Equal(t, serving && !suspended, is(v1alpha1.ConditionReady))
						assert.Equal(t, o.Kind == step.KindDone, is(v1alpha1.ConditionUpToDate))
						assert.Equal(t, paused, is(v1alpha1.ConditionPaused))
						assert.Equal(t, o.Kind == step.KindStall && !paused, is(v1alpha1.ConditionStalled))
						assert.Equal(t, o.Kind != step.KindDone && o.Kind != step.KindStall && !paused, is(v1alpha1.ConditionReconciling))
						if suspended {
							assert.Equal(t, v1alpha1.ReasonSuspended, set.Get(v1alpha1.ConditionReady).Reason)
						}
					})
				}
			}
		}
	}
}

// P9: a paused group that is to be suspended and does not serve reports the reason Suspended, and is
// not resumed at every look.
func TestP9ReadyBeginsAgainOnceWhenAnObjectIsResumed(t *testing.T) {
	stopping := step.Wait("Instance", time.Minute, v1alpha1.ReasonSuspended, "pod a-0 is still stopping")
	starting := step.Wait("Instance", time.Minute, v1alpha1.ReasonPodPending, "pod a-0 is pulling its image")
	old := []metav1.Condition(nil)
	for n, c := range []struct {
		verdict conditions.Verdict
		since   int
	}{
		{conditions.Verdict{Paused: true, Outcome: stopping}, 0},
		{conditions.Verdict{Paused: true, Outcome: stopping}, 0},
		{conditions.Verdict{Suspended: true, Outcome: stopping}, 0},
		{conditions.Verdict{Suspended: true, Outcome: step.Done()}, 0},
		{conditions.Verdict{Outcome: starting}, 4},
		{conditions.Verdict{Outcome: starting}, 4},
	} {
		set := conditions.New(old, 3, clock().Add(time.Duration(n)*time.Minute))
		set.Finish(c.verdict)
		assert.Equal(t, clock().Add(time.Duration(c.since)*time.Minute), set.Get(v1alpha1.ConditionReady).LastTransitionTime.Time, "look %d", n)
		old = set.List()
	}
}

func TestTheTransitionTimeFollowsTheStatusAlone(t *testing.T) {
	first := conditions.New(nil, 3, clock())
	first.MarkFalse(v1alpha1.ConditionReady, v1alpha1.ReasonCreating, "creating")
	second := conditions.New(first.List(), 4, clock().Add(time.Hour))
	second.MarkFalse(v1alpha1.ConditionReady, v1alpha1.ReasonPodPending, "pending")
	got := second.Get(v1alpha1.ConditionReady)
	assert.Equal(t, clock(), got.LastTransitionTime.Time)
	assert.EqualValues(t, 4, got.ObservedGeneration)
	third := conditions.New(second.List(), 4, clock().Add(2*time.Hour))
	third.MarkTrue(v1alpha1.ConditionReady, v1alpha1.ReasonReady, "ready")
	assert.Equal(t, clock().Add(2*time.Hour), third.Get(v1alpha1.ConditionReady).LastTransitionTime.Time)
	assert.True(t, third.Is(v1alpha1.ConditionReady))
	assert.False(t, third.Was(v1alpha1.ConditionReady))
	assert.Zero(t, third.Get(v1alpha1.ConditionStalled))
}

func TestConditionsAreInTheOrderOfTheTable(t *testing.T) {
	set := conditions.New(nil, 3, clock())
	set.MarkTrue(v1alpha1.ConditionQuorumHealthy, v1alpha1.ReasonQuorumHealthy, "x")
	set.MarkTrue(v1alpha1.ConditionBootstrapped, v1alpha1.ReasonBootstrapped, "x")
	set.MarkUnknown(v1alpha1.ConditionQuorumHealthy, v1alpha1.ReasonPDUnreachable, "put twice, kept once")
	set.Finish(conditions.Verdict{Serving: true, Summary: "x", Outcome: step.Done()})
	var got []string
	for _, c := range set.List() {
		got = append(got, c.Type)
	}
	assert.Equal(t, []string{"Ready", "UpToDate", "Bootstrapped", "QuorumHealthy"}, got)
}

func TestAMessageIsOneLineOfBoundedLength(t *testing.T) {
	set := conditions.New(nil, 3, clock())
	set.MarkTrue(v1alpha1.ConditionReady, v1alpha1.ReasonReady, "one\n\ttwo  three")
	assert.Equal(t, "one two three", set.Get(v1alpha1.ConditionReady).Message)
	set.MarkTrue(v1alpha1.ConditionReady, v1alpha1.ReasonReady, "PD said \"\x1b[31m\x00 \u202e no\" \xff")
	assert.Equal(t, `PD said "?[31m? ? no" `+"\ufffd", set.Get(v1alpha1.ConditionReady).Message, "P12: what a program of the namespace says is no command to a terminal")
	set.MarkTrue(v1alpha1.ConditionReady, v1alpha1.ReasonReady, strings.Repeat("é", 1000))
	long := set.Get(v1alpha1.ConditionReady).Message
	assert.LessOrEqual(t, len(long), 960)
	assert.True(t, strings.HasSuffix(long, "é..."))
}

func TestALongMessageHasWholeCommandsOnly(t *testing.T) {
	set := conditions.New(nil, 3, clock())
	first, last := "kubectl -n db edit tidbcluster x; ", "kubectl -n db annotate tidbcluster x 'groups.tidb.dev/allow-removal="+strings.Repeat("x", 300)+"'"
	set.MarkTrue(v1alpha1.ConditionReady, v1alpha1.ReasonReady, strings.Repeat("é ", 270)+first+"or consent: "+last)
	message := set.Get(v1alpha1.ConditionReady).Message
	assert.LessOrEqual(t, len(message), 960)
	assert.True(t, strings.HasSuffix(message, first+"or consent: ..."), message)
}

func TestOnlyTransitionsThatMatterToAUserAreListed(t *testing.T) {
	put := func(status metav1.ConditionStatus, kind, reason string) func(*conditions.Set) {
		return func(s *conditions.Set) { s.SetCondition(kind, status, reason, "m") }
	}
	nothing := func(*conditions.Set) {}
	for name, c := range map[string]struct {
		before, after func(*conditions.Set)
		told          bool
	}{
		"a condition that turns good":           {put("False", "Ready", "Creating"), put("True", "Ready", "Ready"), true},
		"a condition that turns bad":            {put("True", "Ready", "Ready"), put("False", "Ready", "QuorumLost"), true},
		"a condition that appears good":         {nothing, put("True", "Ready", "Ready"), true},
		"not one that begins bad":               {nothing, put("False", "Ready", "Creating"), false},
		"not another reason of the same status": {put("False", "Ready", "Creating"), put("False", "Ready", "PodPending"), false},
		"not the same again":                    {put("True", "Ready", "Ready"), put("True", "Ready", "Ready"), false},
		"another reason to be stalled":          {put("True", "Stalled", "InvalidSpec"), put("True", "Stalled", "NameConflict"), true},
		"a rollout that is over":                {put("False", "UpToDate", "Restarting"), put("True", "UpToDate", "UpToDate"), true},
		"not a step of it":                      {put("True", "UpToDate", "UpToDate"), put("False", "UpToDate", "Restarting"), false},
		"an update that is held":                {put("False", "UpToDate", "Restarting"), put("False", "UpToDate", "UpdateHeld"), true},
		"not that it still is":                  {put("False", "UpToDate", "UpdateHeld"), put("False", "UpToDate", "UpdateHeld"), false},
		"a pod that fits nowhere":               {put("True", "UpToDate", "UpToDate"), put("False", "UpToDate", "PodUnschedulable"), true},
		"a stall":                               {nothing, put("True", "Stalled", "InvalidSpec"), true},
	} {
		t.Run(name, func(t *testing.T) {
			old := conditions.New(nil, 3, clock())
			c.before(old)
			set := conditions.New(old.List(), 3, clock())
			c.after(set)
			assert.Equal(t, c.told, len(set.Transitions()) == 1)
		})
	}
}

func TestTheOrderOfAStatusIsTheOrderOfTheTable(t *testing.T) {
	var table []string
	for _, row := range v1alpha1.ConditionTable() {
		table = append(table, row.Type)
	}
	assert.Equal(t, table, v1alpha1.ConditionTypes())
}
