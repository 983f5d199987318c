package persisted_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/operators/pdgroup/persisted"
)

// What a real PD of the v8.1 line shows, of which some was changed.
func shown() map[string]string {
	return map[string]string{
		"schedule.leader-schedule-limit": "4", "schedule.max-store-down-time": `"30m0s"`, "schedule.low-space-ratio": "0.8",
		"schedule.enable-debug-metrics": `"false"`, "replication.location-labels": `"zone,host"`, "replication.max-replicas": "3",
		"replication-mode.dr-auto-sync.label-key": `""`, "keyspace.pre-alloc": "null", "keyspace.wait-region-split": "true",
		"pd-server.dashboard-address": `"http://a-0:2379"`,
	}
}

// PD-21.
func TestPD21ItemsThatPDHasAlreadyAreNotSent(t *testing.T) {
	for name, file := range map[string]string{
		"nothing":                             "",
		"other tables":                        "lease = 5\n[log]\nlevel = \"warn\"\n",
		"the same number":                     "[schedule]\nleader-schedule-limit = 4\nlow-space-ratio = 0.8\n",
		"the same time in other words":        "[schedule]\nmax-store-down-time = \"1800s\"\n",
		"the same truth":                      "[schedule]\nenable-debug-metrics = false\n[keyspace]\nwait-region-split = true\n",
		"the same labels":                     "[replication]\nlocation-labels = [\"zone\", \"host\"]\n",
		"a truth that PD leaves out":          "[schedule]\nhalt-scheduling = false\n",
		"no entries of a list":                "[keyspace]\npre-alloc = []\n",
		"a member that PD is to choose":       "[pd-server]\ndashboard-address = \"auto\"\n",
		"what counts when it bootstraps only": "[schedule.store-limit.1]\nadd-peer = 5\n",
		"a rate that PD has no call for":      "[schedule]\nstore-balance-rate = 60\n",
		"no TOML, of which others complain":   "[schedule",
		"a key with dots":                     "replication.max-replicas = 3\n",
		"an item that has none by its table":  "[replication-mode.dr-auto-sync]\nlabel-key = \"\"\n",
	} {
		t.Run(name, func(t *testing.T) { assert.Empty(t, persisted.FindMissing(persisted.ParseItems(file), shown())) })
	}
}

// PD-21: PD shows 10,000 keys for each MiB of max-merge-region-size where max-merge-region-keys is 0.
func TestPD21KeysThatFollowTheSizeAreNotSentAgain(t *testing.T) {
	items := persisted.ParseItems("schedule.max-merge-region-keys = 0\n")
	for has, missing := range map[string]int{"540000": 0, "0": 0, "200000": 1} {
		shown := map[string]string{"schedule.max-merge-region-size": "54", "schedule.max-merge-region-keys": has}
		assert.Len(t, persisted.FindMissing(items, shown), missing, has)
	}
	assert.Len(t, persisted.FindMissing(items, map[string]string{"schedule.max-merge-region-keys": "540000"}), 1)
}

// PD-21.
func TestPD21MissingItemsAreSentInTheFormatOfPD(t *testing.T) {
	for file, want := range map[string]struct {
		text string
		send any
		has  string
	}{
		"[schedule]\nleader-schedule-limit = 8\n":                 {"schedule.leader-schedule-limit = 8", int64(8), "4"},
		"[schedule]\nleader-schedule-limit = \"many\"\n":          {`schedule.leader-schedule-limit = "many"`, "many", "4"},
		"[schedule]\nmax-store-down-time = \"1h\"\n":              {`schedule.max-store-down-time = "1h"`, "1h", `"30m0s"`},
		"[schedule]\nenable-debug-metrics = true\n":               {"schedule.enable-debug-metrics = true", "true", `"false"`},
		"[schedule]\nhalt-scheduling = true\n":                    {"schedule.halt-scheduling = true", "true", ""},
		"[schedule]\nno-such-item = 1\n":                          {"schedule.no-such-item = 1", int64(1), ""},
		"[replication]\nlocation-labels = [\"zone\"]\n":           {`replication.location-labels = ["zone"]`, "zone", `"zone,host"`},
		"[replication-mode.dr-auto-sync]\nlabel-key = \"zone\"\n": {`replication-mode.dr-auto-sync.label-key = "zone"`, "zone", `""`},
		"[keyspace]\nwait-region-split = false\n":                 {"keyspace.wait-region-split = false", false, "true"},
		"[pd-server]\ndashboard-address = \"none\"\n":             {`pd-server.dashboard-address = "none"`, "none", `"http://a-0:2379"`},
	} {
		t.Run(want.text, func(t *testing.T) {
			lacks := persisted.FindMissing(persisted.ParseItems(file), shown())
			require.Len(t, lacks, 1)
			assert.Equal(t, want.text, lacks[0].String())
			assert.Equal(t, want.send, lacks[0].Send)
			assert.Equal(t, want.has, lacks[0].Has)
		})
	}
}

// PD-21: PD does not start with a file that has a value of another type than its item, also where it
// takes that while it runs, or has what it says.
func TestPD21ItemsOfTheWrongTypeAreFound(t *testing.T) {
	const unquoted, whole, list = "without quotation marks", "without a fraction", "as a list"
	for item, rewrite := range map[string]string{
		"schedule.leader-schedule-limit = \"8\"":             unquoted,
		"schedule.leader-schedule-limit = \"4\"":             unquoted,
		"schedule.leader-schedule-limit = 4.0":               whole,
		"schedule.leader-schedule-limit = 1e1":               whole,
		"schedule.leader-schedule-limit = 4.5":               "", // which PD refuses
		"schedule.enable-debug-metrics = \"false\"":          unquoted,
		"schedule.enable-debug-metrics = true":               "",
		"schedule.max-store-down-time = \"1h\"":              "",
		"schedule.low-space-ratio = 0.9":                     "",
		"schedule.low-space-ratio = 1.0":                     "",
		"schedule.low-space-ratio = 1":                       "as 1.0",
		"schedule.tolerant-size-ratio = 5":                   "as 5.0",
		"pd-server.gc-tuner-threshold = 0":                   "as 0.0", // what it has
		"pd-server.gc-tuner-threshold = 1.0":                 "",
		"schedule.no-such-item = \"1\"":                      "",
		"schedule.leader-schedule-limit = 5":                 "",
		"schedule.low-space-ratio = \"0.8\"":                 unquoted,
		"schedule.enable-debug-metrics = \"perhaps\"":        "",
		"replication.location-labels = \"zone,host\"":        list,
		"replication.location-labels = \"zone\"":             list,
		"replication.location-labels = [\"zone\"]":           "",
		"pd-server.runtime-services = \"\"":                  list,
		"replication-mode.dr-auto-sync.label-key = \"zone\"": "",
	} {
		shown := shown()
		shown["pd-server.gc-tuner-threshold"], shown["pd-server.runtime-services"], shown["schedule.tolerant-size-ratio"] = "0", `""`, "0"
		lacks := persisted.FindMissing(persisted.ParseItems(item), shown)
		require.Len(t, lacks, 1, item)
		assert.Equal(t, rewrite, lacks[0].Rewrite, item)
	}
}

// PD-21.
func TestPD21StoredItemsRestartNoMember(t *testing.T) {
	const base = "initial-cluster-token = \"u\"\nlease = 3\n[schedule]\nleader-schedule-limit = 4\n"
	for wanted, why := range map[string]string{
		base: "",
		base + "high-space-ratio = 0.5\n[replication]\nlocation-labels = [\"zone\"]\n": "",
		"initial-cluster-token = \"u\"\nlease = 3\n":                                   "", // taken away: PD keeps it
		// PD has no call for these, and does not start with a file that has them so.
		base + "store-limit = 5\n":                                                          "schedule.store-limit is changed",
		"initial-cluster-token = \"u\"\nlease = 3\nschedule = 5\n":                          "schedule is changed",
		base + "[log]\nlevel = \"warn\"\n":                                                  "log is changed",
		"initial-cluster-token = \"u\"\nlease = 5\n[schedule]\nleader-schedule-limit = 8\n": "lease is changed",
	} {
		assert.Equal(t, why, persisted.AppliesOnline("pd.toml", map[string]string{"pd.toml": base}, map[string]string{"pd.toml": wanted}).Reason(), wanted)
	}
	const limit = "[schedule.store-limit.1]\nadd-peer = 5\n"
	assert.Empty(t, persisted.AppliesOnline("pd.toml", map[string]string{"pd.toml": base + limit}, map[string]string{"pd.toml": base + "region-schedule-limit = 4\n" + limit}).Reason(), "it stays")
	assert.Empty(t, persisted.AppliesOnline("pd.toml", map[string]string{"pd.toml": base + limit}, map[string]string{"pd.toml": base}).Reason(), "taken away")
	assert.Equal(t, "file other", persisted.AppliesOnline("pd.toml", map[string]string{"pd.toml": base}, map[string]string{"pd.toml": base, "other": "x"}).Reason())
}
