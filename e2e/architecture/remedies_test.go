package architecture

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/e2e/remedy"
	"github.com/tidb-groups/tidb-groups/e2e/scenario"
	"github.com/tidb-groups/tidb-groups/shared/testkit/binaries"
)

// P11: a command that a message tells to paste is one that works. Each has to have been
// tried, or remedies.yaml says why it cannot be.
func TestP11EveryCommandOfAMessageIsProvedToBeRight(t *testing.T) {
	root, err := binaries.Root()
	require.NoError(t, err)
	printed, err := remedy.ListTexts(root)
	require.NoError(t, err)
	require.NotEmpty(t, printed)
	all, err := remedy.ListEvidence()
	require.NoError(t, err)
	tests, err := FindTests(root)
	require.NoError(t, err)
	scenarios, err := scenario.Load()
	require.NoError(t, err)
	inRig := map[string]bool{}
	for _, s := range scenarios {
		inRig[s.Name] = s.RunsIn(scenario.Rig)
	}
	known, count := map[string]bool{}, map[string]int{}
	for _, e := range all {
		assert.False(t, known[e.Says], "e2e/remedy/remedies.yaml has it twice: %q", e.Says)
		known[e.Says] = true
		count[e.How]++
		for _, what := range checkEvidence(root, e, tests, inRig) {
			t.Error(what)
		}
	}
	there := map[string]bool{}
	for _, text := range printed {
		there[text.Format] = true
		assert.True(t, known[text.Format], "%s tells a user to run a command that no test has tried: paste it in a scenario, or have one print it, and add it to e2e/remedy/remedies.yaml: %q", text.File, text.Format)
	}
	for _, e := range all {
		assert.True(t, there[e.Says], "no operator says it any more, take it out of e2e/remedy/remedies.yaml: %q", e.Says)
	}
	t.Logf("%d texts with commands: %v", len(all), count)
}

func TestTheEvidenceOfACommandIsVerified(t *testing.T) {
	root, err := binaries.Root()
	require.NoError(t, err)
	tests := Places{"TestTheEvidenceOfACommandIsVerified": {{File: "e2e/architecture/remedies_test.go", Asserts: true}}}
	const says = "pod %s is in the way of it: kubectl -n %s delete pod %s"
	quoting := []string{"TestTheEvidenceOfACommandIsVerified"}
	for name, c := range map[string]struct {
		e    remedy.Evidence
		says string
	}{
		"pasted":                     {remedy.Evidence{How: remedy.Pasted, Scenarios: []string{"story"}}, ""},
		"printed by a test":          {remedy.Evidence{How: remedy.Taken, Tests: quoting, Why: "no pod"}, ""},
		"printed by nothing we have": {remedy.Evidence{How: remedy.Taken, Why: "no pod"}, ""},
		"without a reason":           {remedy.Evidence{How: remedy.Taken, Tests: quoting}, "why no scenario"},
		"a way that there is not":    {remedy.Evidence{How: "guessed", Scenarios: []string{"story"}}, "proved by guessed"},
		"run by no scenario":         {remedy.Evidence{How: remedy.Run, Tests: quoting}, "a scenario tries"},
		"taken although it is run":   {remedy.Evidence{How: remedy.Taken, Scenarios: []string{"story"}, Why: "no pod"}, "a scenario tries"},
		"a scenario of containers":   {remedy.Evidence{How: remedy.Run, Scenarios: []string{"real"}}, "no scenario real"},
		"a test that there is not":   {remedy.Evidence{How: remedy.Taken, Tests: []string{"TestB"}, Why: "no pod"}, "no test TestB"},
	} {
		t.Run(name, func(t *testing.T) {
			c.e.Says = says
			said := checkEvidence(root, c.e, tests, map[string]bool{"story": true, "real": false})
			if c.says == "" {
				assert.Empty(t, said)
				return
			}
			require.Len(t, said, 1)
			assert.Contains(t, said[0], c.says)
		})
	}
	assert.Contains(t, checkEvidence(root, remedy.Evidence{Says: "kubectl %s", How: remedy.Taken, Tests: []string{"TestTroubleshootingTellsWhatToDoAboutEveryReason"}, Why: "x"},
		Places{"TestTroubleshootingTellsWhatToDoAboutEveryReason": {{File: "e2e/architecture/reasons_test.go"}}}, nil)[0], "does not look for it")
}
