package architecture

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/e2e/scenario"
	"github.com/tidb-groups/tidb-groups/shared/testkit/binaries"
)

// bears returns what each scenario says that it bears on.
func bears(t *testing.T) map[string][]string {
	t.Helper()
	all, err := scenario.Load()
	require.NoError(t, err)
	require.NotEmpty(t, all)
	out := map[string][]string{}
	for _, s := range all {
		out[s.Name] = s.Bears
	}
	return out
}

// wrong says what is wrong with a behaviour's entry.
func wrong(b Behaviour, tests Places, scenarios map[string][]string) []string {
	var out []string
	say := func(bad bool, what string) {
		if bad {
			out = append(out, b.ID+": "+what)
		}
	}
	evidence := len(b.Tests)+len(b.Scenarios) > 0
	say(b.Does == "", "it does not say what the behaviour is")
	say(!slices.Contains([]string{works, partly, absent}, b.State), "its state is "+b.State)
	say(b.State != absent && !evidence, "it is said to be there, without evidence")
	say(b.State == absent && evidence, "it is said to be absent, with evidence")
	say((b.State == partly || b.State == absent) && b.Lacks == "", "it does not say what is missing")
	say(b.State == works && b.Lacks != "", "it works and lacks something: then it works partly")
	for _, name := range b.Tests {
		place, err := tests.Find(name)
		if err != nil {
			out = append(out, b.ID+": "+err.Error())
			continue
		}
		say(!place.Asserts, name+" asserts nothing")
	}
	for _, name := range b.Scenarios {
		of, ok := scenarios[name]
		say(!ok, "there is no scenario "+name)
		say(ok && !slices.Contains(of, b.ID), "scenario "+name+" does not bear on it")
	}
	return out
}

func TestEveryBehaviourHasEvidenceOrIsMarkedMissing(t *testing.T) {
	root, err := binaries.Root()
	require.NoError(t, err)
	all, err := ReadParity(root)
	require.NoError(t, err)
	tests, err := FindTests(root)
	require.NoError(t, err)
	scenarios := bears(t)
	var listed []string
	count := map[string]int{}
	for _, b := range all {
		listed = append(listed, b.ID)
		count[b.State]++
		for _, what := range wrong(b, tests, scenarios) {
			t.Error(what)
		}
	}
	require.Len(t, behaviourIDs(), 120)
	assert.Equal(t, behaviourIDs(), listed, "each behaviour once, in order")
	for name, of := range scenarios {
		for _, id := range of {
			assert.True(t, slices.Contains(listed, id) || strings.HasPrefix(id, "P") && !strings.Contains(id, "-"), "scenario %s bears on %s, which is no promise and no behaviour", name, id)
		}
	}
	t.Logf("%d behaviours: %v", len(all), count)

	page, err := RenderPage(all, tests)
	require.NoError(t, err)
	tree, err := os.ReadFile(filepath.Join(root, "docs", "parity.md"))
	require.NoError(t, err)
	assert.Equal(t, page, string(tree), `docs/parity.md is not what parity.yaml says: run "make generate"`)
}

func TestTheEntryOfABehaviourIsVerified(t *testing.T) {
	tests := Places{"TestA": {{File: "a/a_test.go", Asserts: true}}, "TestHollow": {{File: "a/a_test.go"}}, "TestTwice": {{File: "x/a/a_test.go", Asserts: true}, {File: "x/b/b_test.go", Asserts: true}}}
	scenarios := map[string][]string{"story": {"PD-01"}, "other": {"P1"}}
	for name, c := range map[string]struct {
		entry Behaviour
		says  string
	}{
		"it works":                     {Behaviour{State: works, Tests: []string{"TestA"}, Scenarios: []string{"story"}}, ""},
		"some of it does":              {Behaviour{State: partly, Tests: []string{"TestA"}, Lacks: "more"}, ""},
		"nothing of it":                {Behaviour{State: absent, Lacks: "all"}, ""},
		"one of two of a name":         {Behaviour{State: works, Tests: []string{"a.TestTwice"}}, ""},
		"works without evidence":       {Behaviour{State: works}, "without evidence"},
		"partly without evidence":      {Behaviour{State: partly, Lacks: "more"}, "without evidence"},
		"partly, and nothing missing":  {Behaviour{State: partly, Tests: []string{"TestA"}}, "what is missing"},
		"absent, without a word":       {Behaviour{State: absent}, "what is missing"},
		"absent, with evidence":        {Behaviour{State: absent, Tests: []string{"TestA"}, Lacks: "all"}, "absent, with evidence"},
		"works and lacks":              {Behaviour{State: works, Tests: []string{"TestA"}, Lacks: "more"}, "works partly"},
		"another state":                {Behaviour{State: "done", Tests: []string{"TestA"}}, "its state is done"},
		"a test that is not there":     {Behaviour{State: works, Tests: []string{"TestB"}}, "no test TestB"},
		"a test that asserts nothing":  {Behaviour{State: works, Tests: []string{"TestHollow"}}, "asserts nothing"},
		"a name that two have":         {Behaviour{State: works, Tests: []string{"TestTwice"}}, "2 tests are called"},
		"a folder that it is not in":   {Behaviour{State: works, Tests: []string{"c.TestTwice"}}, "no test TestTwice"},
		"a scenario that is not there": {Behaviour{State: works, Scenarios: []string{"tale"}}, "no scenario tale"},
		"a scenario of something else": {Behaviour{State: works, Scenarios: []string{"other"}}, "does not bear on it"},
	} {
		t.Run(name, func(t *testing.T) {
			c.entry.ID, c.entry.Does = "PD-01", "something"
			said := wrong(c.entry, tests, scenarios)
			if c.says == "" {
				assert.Empty(t, said)
				return
			}
			require.Len(t, said, 1)
			assert.Contains(t, said[0], c.says)
		})
	}
}

// What counts as a test is a function that asserts, not its name or a comment.
func TestTestsAreFoundByTheirBodies(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(root, "a_test.go"), []byte(`package a
// TestComment asserts much: assert.Equal(t, 1, 1)
func TestAsserts(t *testing.T) { t.Run("x", func(t *testing.T) { assert.Equal(t, 1, 1) }) }
func TestFails(t *testing.T) { t.Fatal("x") }
func TestHollow(t *testing.T) { t.Log("assert") }
func TestMain(m *testing.M) { assert.Equal(t, 1, 1) }
func (s suite) TestMethod(t *testing.T) { assert.Equal(t, 1, 1) }
func TestHelped(t *testing.T) { helper(t) }
func TestRound(t *testing.T) { round(t) }
func helper(t *testing.T) { require.True(t, true) }
func round(t *testing.T) { round(t) }
`), 0o600))
	tests, err := FindTests(root)
	require.NoError(t, err)
	assert.Equal(t, Places{
		"TestAsserts": {{File: "a_test.go", Asserts: true}},
		"TestFails":   {{File: "a_test.go", Asserts: true}},
		"TestHelped":  {{File: "a_test.go", Asserts: true}},
		"TestHollow":  {{File: "a_test.go"}},
		"TestRound":   {{File: "a_test.go"}},
	}, tests)
}
