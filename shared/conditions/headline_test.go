package conditions_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/conditions"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// What kubectl get shows of a state that Ready alone calls good (U 4).
func TestTheHeadlineTellsWhatTheColumnReadyDoesNot(t *testing.T) {
	wait := func(reason string) step.Outcome { return step.Wait("x", time.Minute, reason, "why "+reason) }
	for name, c := range map[string]struct {
		verdict         conditions.Verdict
		reason, message string
	}{
		"all is well":                {conditions.Verdict{Serving: true, Summary: "3 of 3", Outcome: step.Done()}, "", "3 of 3"},
		"a scale-in":                 {conditions.Verdict{Serving: true, Outcome: wait("Draining")}, "Draining", "why Draining"},
		"a refusal":                  {conditions.Verdict{Serving: true, Outcome: step.Stall("ScaleInRefused", "too few")}, "ScaleInRefused", "too few"},
		"a hold":                     {conditions.Verdict{Serving: true, Outcome: wait("UpdateHeld")}, "UpdateHeld", "why UpdateHeld"},
		"an evicted store":           {conditions.Verdict{Serving: true, Outcome: step.Done(), NoteReason: "LeadersEvicted", Note: "no leaders on a"}, "LeadersEvicted", "no leaders on a"},
		"a note beside a roll":       {conditions.Verdict{Serving: true, Outcome: wait("Restarting"), NoteReason: "LeadersEvicted", Note: "no leaders on a"}, "Restarting", "why Restarting"},
		"it does not serve":          {conditions.Verdict{Summary: "spec.replicas is 0", Outcome: step.Done()}, "NotReady", "spec.replicas is 0"},
		"a pause":                    {conditions.Verdict{Serving: true, Paused: true, Outcome: step.Done()}, "Paused", "paused: set spec.paused to false to go on"},
		"a pause that holds much":    {conditions.Verdict{Serving: true, Paused: true, Outcome: wait("Restarting")}, "Paused", "why Restarting"},
		"a pause while time goes on": {conditions.Verdict{Serving: true, Paused: true, Outcome: step.Done(), NoteReason: v1alpha1.ReasonCertificateExpiring, Note: "it expires"}, v1alpha1.ReasonCertificateExpiring, "it expires"},
		"a stop":                     {conditions.Verdict{Suspended: true, Outcome: wait("Draining")}, "Suspended", "why Draining"},
	} {
		t.Run(name, func(t *testing.T) {
			set := conditions.New(nil, 3, clock())
			set.Finish(c.verdict)
			reason, message := set.Headline()
			assert.Equal(t, c.reason, reason)
			assert.Equal(t, c.message, message)
		})
	}
}

func TestTheHeadlineFitsATerminal(t *testing.T) {
	set := conditions.New(nil, 3, clock())
	set.Finish(conditions.Verdict{Outcome: step.Stall(v1alpha1.ReasonInvalidSpec, strings.Repeat("wörd ", 40))})
	_, message := set.Headline()
	assert.LessOrEqual(t, utf8.RuneCountInString(message), 80)
	assert.True(t, strings.HasSuffix(message, "wörd…"), message)
}

func TestTheHeadlineHasWholeCommandsOnly(t *testing.T) {
	for said, want := range map[string]string{
		"claim data-a-1 is being deleted: have it replaced: kubectl -n db delete instance a-1 and more of this":  "claim data-a-1 is being deleted: have it replaced…",
		"claim data-a-1 is being deleted and goes away when its pod does: to go on now: kubectl delete it":       "claim data-a-1 is being deleted and goes away when its pod does: to go on now…",
		"it takes no pods: kubectl uncordon a; then wait for it: the scheduler tries again in a while by itself": "it takes no pods: kubectl uncordon a; then wait for it: the scheduler tries…",
		"it takes no pods: kubectl uncordon a": "it takes no pods: kubectl uncordon a",
	} {
		set := conditions.New(nil, 3, clock())
		set.Finish(conditions.Verdict{Outcome: step.Stall(v1alpha1.ReasonInvalidSpec, said)})
		_, message := set.Headline()
		assert.Equal(t, want, message)
	}
}
