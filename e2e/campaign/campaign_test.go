package campaign

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/e2e/faults"
	"github.com/tidb-groups/tidb-groups/e2e/overlay"
	"github.com/tidb-groups/tidb-groups/e2e/scenario"
	"github.com/tidb-groups/tidb-groups/shared/testkit/binaries"
)

// The groups of one cluster, one member each.
const small = "groups-in-every-order/pd,tikv,tidb,tiflash"

// P1, P2, P3, P4, P5, P6, P7, P8, P9, P10, P12: the same sample of every campaign each time;
// "make campaign" makes all attempts.
// GRP-05.
func TestASampleOfEachCampaignBreaksNoPromise(t *testing.T) {
	for _, sample := range []struct {
		campaigns []string
		attempts  int
	}{{[]string{Crash, Drop, Stale, Fault, Upgrade, Kill, Delete}, 2}, {[]string{Mutate}, 6}, {[]string{HostilePD, Tenant}, 2}} {
		records, err := Run(t.Context(), plane, Options{
			Campaigns: sample.campaigns, Scenarios: []string{small}, Sample: sample.attempts, Seed: 1,
			Parallel: 4, References: 1, CRDs: crds, Commit: "test", Out: t.Output(),
		})
		require.NoError(t, err)
		require.Len(t, records, sample.attempts*len(sample.campaigns))
		struck := map[string]int{}
		for _, r := range records {
			assert.Empty(t, r.Broken, r.Replay())
			assert.Empty(t, r.Findings, r.Replay())
			if r.Struck {
				struck[r.Campaign]++
			}
		}
		for _, campaign := range sample.campaigns {
			assert.Positive(t, struck[campaign], "attempts of %s that came by their point", campaign)
		}
	}
}

func TestTheNextVersionsEditsFitTheTree(t *testing.T) {
	root, err := binaries.Root()
	require.NoError(t, err)
	_, err = overlay.Apply(root, nextEdits())
	assert.NoError(t, err)
}

func TestShardsTogetherAreAllAndSamplesStayTheSame(t *testing.T) {
	var all []Attempt
	for _, n := range strings.Split("abcdefghijklmnopqrstuvwxyz", "") {
		all = append(all, Attempt{Campaign: Crash, Scenario: "bootstrap", Fault: "crash:" + n})
	}
	var together []Attempt
	for shard := 1; shard <= 3; shard++ {
		part := selectAttempts(all, shard, 3, 0, 0)
		assert.NotEmpty(t, part)
		together = append(together, part...)
	}
	assert.ElementsMatch(t, all, together)
	assert.Len(t, selectAttempts(all, 0, 0, 5, 1), 5)
	assert.Subset(t, selectAttempts(all[3:], 0, 0, 26, 1), all[3:])
	few := selectAttempts(all, 0, 0, 5, 1)
	assert.Equal(t, few, selectAttempts(append([]Attempt(nil), all...), 0, 0, 5, 1))
	assert.NotEqual(t, few, selectAttempts(all, 0, 0, 5, 2))
}

func TestAnInterruptedCampaignGoesOnWhereItWas(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sub", "journal.jsonl")
	j, err := OpenJournal(path)
	require.NoError(t, err)
	done, broken := Attempt{Drop, "bootstrap", "drop:a/b/c/1"}, Attempt{Drop, "bootstrap", "drop:a/b/c/2"}
	require.NoError(t, j.Add(Record{Attempt: done, Commit: "one", Struck: true}))
	require.NoError(t, j.Add(Record{Attempt: broken, Commit: "one", Broken: "no room"}))
	require.NoError(t, j.Close())
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, append(text, `{"campaign":"DR`...), 0o600), "it was killed while it wrote")

	j, err = OpenJournal(path)
	require.NoError(t, err)
	assert.True(t, j.HasDone("one", done))
	assert.False(t, j.HasDone("two", done), "another commit")
	assert.False(t, j.HasDone("one", broken), "what could not be made is made again")
	require.NoError(t, j.Add(Record{Attempt: broken, Commit: "one"}))
	require.NoError(t, j.Close())
	all, err := ReadJournal(path)
	require.NoError(t, err)
	assert.Len(t, all, 3)
}

func TestFiguresArePutIntoADocument(t *testing.T) {
	dir := t.TempDir()
	file, document := filepath.Join(dir, "figures.json"), filepath.Join(dir, "page.md")
	require.NoError(t, os.WriteFile(document, []byte("# Page\n\n<!-- written by "+writer+": begin -->\nold\n<!-- written by "+writer+": end -->\n\nmore\n"), 0o600))
	record := func(campaign, fault string, struck bool, findings ...Finding) Record {
		return Record{Attempt: Attempt{campaign, "bootstrap", fault}, Commit: "abc", Struck: struck, Findings: findings, Took: 2 * time.Second}
	}
	lost := Finding{Promise: "P3", What: "claim x is lost"}
	require.NoError(t, Write(Summarize([]Record{record(Crash, "a", true)}), file, document))
	require.NoError(t, Write(Summarize([]Record{
		record(Drop, "a", true), record(Drop, "b", true, lost), record(Drop, "b", true), record(Drop, "c", false), record(Drop, "d", true, lost, lost),
	}), file, document))
	text, err := os.ReadFile(document)
	require.NoError(t, err)
	assert.Contains(t, string(text), "| P3 | 4 | 1 | CRASH, DROP |")
	assert.Contains(t, string(text), "| P6 | 4 | 0 | CRASH, DROP |")
	assert.Contains(t, string(text), "| CRASH | bootstrap | 1 | 0 | 0 | 0 | 0 | abc |")
	assert.Contains(t, string(text), "| DROP | bootstrap | 3 | 1 | 1 | 0 | 0 | abc |", "of two records of one attempt the last counts")
	assert.NotContains(t, string(text), "old")
	assert.True(t, strings.HasSuffix(string(text), "\n\nmore\n"))
	assert.Error(t, Write(nil, file, file), "a document without the lines")

	sample, sweep := record(Drop, "a", true), []Record{record(Drop, "a", true), record(Drop, "b", true), record(Drop, "c", true)}
	sample.Commit = "def"
	for n := range sweep {
		sweep[n].Commit = "ghi"
	}
	rows := func() string {
		text, err := os.ReadFile(document)
		require.NoError(t, err)
		return string(text)
	}
	require.NoError(t, Write(Summarize([]Record{sample}), file, document))
	assert.Contains(t, rows(), "| DROP | bootstrap | 3 | 1 | 1 | 0 | 0 | abc |", "a sample does not replace a sweep")
	assert.Contains(t, rows(), "| DROP | bootstrap | 1 | 0 | 0 | 0 | 0 | def |")
	require.NoError(t, Write(Summarize(sweep), file, document))
	assert.Contains(t, rows(), "| DROP | bootstrap | 3 | 0 | 0 | 0 | 0 | ghi |")
	assert.NotContains(t, rows(), "| DROP | bootstrap | 1 ")
	require.NoError(t, Write([]Sum{{Campaign: Kill, Scenario: "bootstrap", Commit: "jkl", Gone: true, Attempts: 7}}, file, document))
	require.NoError(t, Write(nil, file, document))
	assert.Contains(t, rows(), "| KILL | bootstrap | 7 | 0 | 0 | 0 | 0 | jkl, which is gone |")
	assert.Contains(t, rows(), "| P6 | 4 | 0 | CRASH, DROP |", "it counts for no promise")
}

func TestEveryPointOfAReferenceIsAnAttempt(t *testing.T) {
	want := Reference{
		Writes: []faults.Write{{Operator: "instance", Verb: "create", Resource: "persistentvolumeclaims", Name: "a", Nth: 1}, {Operator: "instance", Verb: "create", Resource: "pods", Name: "a", Nth: 1}, {Operator: "instance", Verb: "create", Resource: "pods", Name: "b", Nth: 1}},
		Events: []faults.Event{{Operator: "instance", Resource: "pods", Name: "a", Nth: 1}},
	}
	for campaign, n := range map[string]int{Crash: 6, Drop: 1, Stale: 1, Fault: 18, Kill: 2, Delete: 3, Mutate: 0} {
		points := want.points(campaign, "bootstrap")
		assert.Len(t, points, n, campaign)
		for _, a := range points {
			_, err := faults.Parse(a.Fault)
			assert.NoError(t, err)
			assert.Equal(t, campaign, campaignOf(a.Fault))
		}
	}
}

func TestEverythingIsDeletedInManyOrders(t *testing.T) {
	orders, cascades := map[string]bool{}, map[metav1.DeletionPropagation]bool{}
	for which := range uint64(100) {
		w := wayOf(which)
		assert.Equal(t, w, wayOf(which), "an attempt is made again in the same way")
		assert.ElementsMatch(t, append(v1alpha1.ClusterKinds(), "Pod"), w.kinds)
		orders[strings.Join(w.kinds, ",")], cascades[w.cascade] = true, true
	}
	assert.Greater(t, len(orders), 90)
	assert.Len(t, cascades, 2)
}

func TestARelaxedScenarioAllowsRestarts(t *testing.T) {
	story, err := scenario.Find("initial-members")
	require.NoError(t, err)
	for _, step := range relaxScenario(story).Steps {
		if step.Expect != nil {
			assert.Nil(t, step.Expect.Restarts)
			assert.NotNil(t, step.Expect.Bootstraps)
		}
	}
	again, err := scenario.Find("initial-members")
	require.NoError(t, err)
	assert.Equal(t, story, again, "the scenario itself is as it was")
}

func TestUndisturbedRunsMustNotDiffer(t *testing.T) {
	one := Reference{Bootstraps: map[string]int{"a": 1}, Writes: []faults.Write{{Name: "a", Nth: 1}}, Took: time.Second}
	other := Reference{Bootstraps: map[string]int{"a": 1}, Writes: []faults.Write{{Name: "a", Nth: 1}, {Name: "a", Nth: 2}}, Took: 2 * time.Second}
	require.NoError(t, one.merge(other))
	assert.Len(t, one.Writes, 2)
	assert.Equal(t, 2*time.Second, one.Took)
	other.Bootstraps = map[string]int{"a": 2}
	assert.Error(t, one.merge(other))
}

func TestTheSummaryOfAnOutcomeIgnoresNamesAndHistoryButNotCounts(t *testing.T) {
	instance := func(name string, conditions ...string) scenario.Object {
		return scenario.Object{Key: key("Instance " + name), Labels: map[string]string{"groups.tidb.dev/group": "a"}, Conditions: conditions}
	}
	want := summarizeOutcome([]scenario.Object{instance("a-0", "Ready=True(Ready)"), instance("a-1", "Ready=True(Ready)")})
	assert.NoError(t, compareCounts(summarizeOutcome([]scenario.Object{instance("a-1", "Ready=True(Ready)"), instance("a-3", "Ready=True(Ready)"), {Key: key("ControllerRevision x")}}), want))
	assert.Error(t, compareCounts(summarizeOutcome([]scenario.Object{instance("a-0", "Ready=True(Ready)")}), want))
	assert.Error(t, compareCounts(summarizeOutcome([]scenario.Object{instance("a-0", "Ready=True(Ready)"), instance("a-1", "Ready=False(PodPending)")}), want))
}
