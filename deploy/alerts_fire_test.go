package deploy_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	promlabels "github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/index"
	"github.com/prometheus/prometheus/util/annotations"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// sample is a series and its value, and those of the minutes before, the newest last.
type sample struct {
	labels map[string]string
	value  float64
	before []float64
}

// series makes a sample of a metric, from names and values of labels.
func series(metric string, value float64, labels ...string) sample {
	out := sample{labels: map[string]string{"__name__": metric}, value: value}
	for pair := range slices.Chunk(labels, 2) {
		out.labels[pair[0]] = pair[1]
	}
	return out
}

// ofGroup makes a sample of a metric about TiKVGroup a.
func ofGroup(metric string, value float64, labels ...string) sample {
	return series(metric, value, append([]string{"kind", "TiKVGroup", "namespace", "shop", "name", "a", "cluster", "a"}, labels...)...)
}

// says makes a condition of TiKVGroup a.
func says(condition, status, reason string) sample {
	return ofGroup("tidb_groups_condition", 1, "condition", condition, "status", status, "reason", reason)
}

// isIn makes a state of a member of TiKVGroup a.
func isIn(state string) sample {
	return ofGroup("tidb_groups_member_state", 1, "member", "a-0", "state", state)
}

// operator makes what Prometheus says of the operator of PDGroups, now and in the minutes before.
func operator(up float64, before ...float64) sample {
	out := series("up", up, "job", "tidb-groups", "namespace", "tidb-groups-system", "service", "pdgroup-operator-metrics")
	out.before = before
	return out
}

// leads makes what a replica of that operator says of itself.
func leads(value float64) sample {
	return series("leader_election_master_status", value, "job", "tidb-groups", "namespace", "tidb-groups-system", "service", "pdgroup-operator-metrics", "name", "tidb-groups-pdgroup")
}

// stalls makes a condition of an object of backups that a user must act on.
func stalls(kind, name string) sample {
	return series("tidb_groups_condition", 1, "kind", kind, "namespace", "shop", "name", name, "cluster", "shop", "condition", "Stalled", "status", "True", "reason", "RunFailed")
}

// umbrella makes a condition of TidbCluster shop.
func umbrella(condition, reason string) sample {
	return series("tidb_groups_condition", 1, "kind", "TidbCluster", "namespace", "shop", "name", "shop", "cluster", "shop", "condition", condition, "status", "False", "reason", reason)
}

// ageOf makes the age of a backup of a kind, of cluster shop.
func ageOf(metric, kind string, seconds float64) sample {
	return series(metric, seconds, "kind", kind, "namespace", "shop", "name", "daily", "cluster", "shop")
}

// suspends says that the PDGroup of a cluster is suspended.
func suspends(cluster string) sample {
	return series("tidb_groups_condition", 1, "kind", "PDGroup", "namespace", "shop", "name", cluster+"-pd", "cluster", cluster, "condition", "Ready", "status", "False", "reason", "Suspended")
}

// holds says that a group of a cluster waits for another one whose change is put off.
func holds(cluster string) sample {
	return series("tidb_groups_condition", 1, "kind", "PDGroup", "namespace", "shop", "name", cluster+"-pd", "cluster", cluster, "condition", "UpToDate", "status", "False", "reason", "WaitingForGroups")
}

func TestAlertsFireForTroubleAlone(t *testing.T) {
	rules := alertRules(t)
	desired := func(n float64) sample { return ofGroup("tidb_groups_members", n, "state", "desired") }
	old := ageOf("tidb_groups_last_backup_seconds", "BackupSchedule", 3*86400)
	behind := ageOf("tidb_groups_log_backup_checkpoint_seconds", "LogBackup", 3*86400)
	for name, c := range map[string]struct {
		alert     string
		past, now []sample
		want      int
	}{
		"a group does not serve":                          {"TiDBNotReady", nil, []sample{says("Ready", "False", "PodNotReady"), desired(3)}, 1},
		"a group of no members does not serve":            {"TiDBNotReady", nil, []sample{says("Ready", "False", "NotReady"), desired(0)}, 0},
		"a group is suspended":                            {"TiDBNotReady", nil, []sample{says("Ready", "False", "Suspended"), desired(3)}, 0},
		"a group serves":                                  {"TiDBNotReady", nil, []sample{says("Ready", "True", "Ready"), desired(3)}, 0},
		"a change cannot be made":                         {"TiDBNotUpToDate", nil, []sample{says("UpToDate", "False", "Unsafe"), ofGroup("tidb_groups_unconverged_seconds", 4000)}, 1},
		"a change waits for its window":                   {"TiDBNotUpToDate", nil, []sample{says("UpToDate", "False", "UpdateHeld"), ofGroup("tidb_groups_unconverged_seconds", 90000)}, 0},
		"a change waits for a group whose change is held": {"TiDBNotUpToDate", nil, []sample{says("UpToDate", "False", "WaitingForGroups"), ofGroup("tidb_groups_unconverged_seconds", 90000)}, 0},
		"a new operator would render pods differently":    {"TiDBNotUpToDate", nil, []sample{says("UpToDate", "False", "NewRendering"), ofGroup("tidb_groups_unconverged_seconds", 90000)}, 0},
		"a store is away":                                 {"TiDBStoreNotUp", nil, []sample{isIn("Down"), says("Ready", "True", "Ready")}, 1},
		"a store of a suspended group is away":            {"TiDBStoreNotUp", nil, []sample{isIn("Down"), says("Ready", "False", "Suspended")}, 0},
		"a store is Up":                                   {"TiDBStoreNotUp", nil, []sample{isIn("Up"), says("Ready", "True", "Ready")}, 0},
		"an operator does not answer":                     {"TiDBOperatorAbsent", nil, []sample{operator(0)}, 1},
		"an operator has no pod any more":                 {"TiDBOperatorAbsent", []sample{operator(1)}, nil, 1},
		"one of two replicas answers":                     {"TiDBOperatorAbsent", nil, []sample{operator(0), operator(1)}, 0},
		"an operator of another owner does not answer":    {"TiDBOperatorAbsent", nil, []sample{series("up", 0, "job", "vault-operator-metrics", "namespace", "vault", "service", "vault-operator-metrics")}, 0},
		"an operator that was away for a moment is back":  {"TiDBOperatorAbsent", []sample{operator(0)}, []sample{operator(1)}, 0},
		"an operator crashes again and again":             {"TiDBOperatorAbsent", nil, []sample{operator(1, 0, 0, 0, 0, 1, 0, 0, 0, 0)}, 1},
		"an operator was replaced":                        {"TiDBOperatorAbsent", []sample{operator(1)}, []sample{operator(1, 1)}, 0},
		"an operator has missed one scrape":               {"TiDBOperatorAbsent", nil, []sample{operator(1, 1, 1, 1, 1, 1, 0, 1, 1, 1)}, 0},
		"no replica leads":                                {"TiDBOperatorWithoutLeader", nil, []sample{operator(1), operator(1), leads(0), leads(0)}, 1},
		"one of two replicas leads":                       {"TiDBOperatorWithoutLeader", nil, []sample{operator(1), operator(1), leads(0), leads(1)}, 0},
		"another operator has no leader":                  {"TiDBOperatorWithoutLeader", nil, []sample{series("leader_election_master_status", 0, "job", "vault", "namespace", "vault", "name", "vault")}, 0},
		"a Backup by hand has failed":                     {"TiDBStalled", nil, []sample{stalls("Backup", "before-upgrade")}, 1},
		"an old Backup of a schedule has failed":          {"TiDBStalled", nil, []sample{stalls("Backup", "daily-20261129-030000")}, 0},
		"a schedule is stalled by its Backup":             {"TiDBStalled", nil, []sample{stalls("Backup", "daily-20261129-030000"), stalls("BackupSchedule", "daily")}, 1},
		"the groups of a cluster cannot be written":       {"TiDBNotUpToDate", nil, []sample{umbrella("UpToDate", "RequestFailed"), holds("shop")}, 1},
		"an operator does not look at its group":          {"TiDBNotUpToDate", nil, []sample{umbrella("UpToDate", "WaitingForGroups"), holds("other")}, 1},
		"a cluster repeats that a group waits its turn":   {"TiDBNotUpToDate", nil, []sample{umbrella("UpToDate", "WaitingForGroups"), holds("shop")}, 0},
		"a cluster waits for its group":                   {"TiDBNotUpToDate", nil, []sample{umbrella("UpToDate", "Restarting")}, 0},
		"a certificate was not renewed":                   {"TiDBCertificateExpires", nil, []sample{ofGroup("tidb_groups_certificate_days_left", 6), ofGroup("tidb_groups_certificate_lifetime_days", 90)}, 1},
		"a certificate of a day is new":                   {"TiDBCertificateExpires", nil, []sample{ofGroup("tidb_groups_certificate_days_left", 0.4), ofGroup("tidb_groups_certificate_lifetime_days", 1)}, 0},
		"a certificate of a day was not renewed":          {"TiDBCertificateExpires", nil, []sample{ofGroup("tidb_groups_certificate_days_left", 0.05), ofGroup("tidb_groups_certificate_lifetime_days", 1)}, 1},
		"there is no good backup":                         {"TiDBNoGoodBackup", nil, []sample{old, suspends("other")}, 1},
		"a suspended cluster has no good backup":          {"TiDBNoGoodBackup", nil, []sample{old, suspends("shop")}, 0},
		"a cluster that was resumed has none yet":         {"TiDBNoGoodBackup", []sample{suspends("shop")}, []sample{old}, 0},
		"a log is behind":                                 {"TiDBLogBackupBehind", nil, []sample{behind, suspends("other")}, 1},
		"a log of a suspended cluster is behind":          {"TiDBLogBackupBehind", nil, []sample{behind, suspends("shop")}, 0},
		"a log is behind an hour after a cluster resumed": {"TiDBLogBackupBehind", []sample{suspends("shop")}, []sample{behind}, 1},
		"two replicas of an operator say the same":        {"TiDBNotReady", nil, []sample{says("Ready", "False", "QuorumLost"), says("Ready", "False", "QuorumLost"), desired(3)}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			at := slices.IndexFunc(rules, func(r rule) bool { return r.Alert == c.alert })
			require.GreaterOrEqual(t, at, 0)
			assert.Len(t, moment{past: c.past, now: c.now}.evaluate(t, rules[at].Expr), c.want)
		})
	}
}

// Alerts know the operators by the label job, which the monitor has Prometheus take from their
// Services.
func TestTheMonitorGivesTheOperatorsTheirJob(t *testing.T) {
	rendered := renderPrometheus(t)
	at := slices.IndexFunc(rendered, func(o *unstructured.Unstructured) bool { return o.GetKind() == "ServiceMonitor" })
	require.GreaterOrEqual(t, at, 0)
	label, _, err := unstructured.NestedString(rendered[at].Object, "spec", "jobLabel")
	require.NoError(t, err)
	services := 0
	for _, o := range rendered {
		if o.GetKind() == "Service" {
			services++
			assert.Equal(t, "tidb-groups", o.GetLabels()[label], o.GetName())
		}
	}
	assert.NotZero(t, services)
}

// moment has what Prometheus knows: the series of now, and those that ended an hour ago.
type moment struct{ past, now []sample }

// evaluate evaluates an expression as Prometheus does.
func (m moment) evaluate(t *testing.T, expr string) promql.Vector {
	t.Helper()
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	var all []storage.Series
	for at, samples := range map[time.Time][]sample{now.Add(-time.Hour): m.past, now: m.now} {
		for n, one := range samples {
			// Each comes from a pod of its own, as of two replicas.
			metric := promlabels.NewBuilder(promlabels.FromMap(one.labels)).Set("pod", fmt.Sprint(at.Unix(), "-", n)).Labels()
			var points []promql.FPoint
			for minute, value := range append(slices.Clone(one.before), one.value) {
				points = append(points, promql.FPoint{T: at.Add(time.Duration(minute-len(one.before)) * time.Minute).UnixMilli(), F: value})
			}
			all = append(all, promql.NewStorageSeries(promql.Series{Metric: metric, Floats: points}))
		}
	}
	data := &storage.MockQueryable{MockQuerier: &storage.MockQuerier{SelectMockFunction: func(_ bool, _ *storage.SelectHints, matchers ...*promlabels.Matcher) storage.SeriesSet {
		var refs []storage.SeriesRef
		for n, one := range all {
			if !slices.ContainsFunc(matchers, func(by *promlabels.Matcher) bool { return !by.Matches(one.Labels().Get(by.Name)) }) {
				refs = append(refs, storage.SeriesRef(n))
			}
		}
		return found{index.NewListPostings(refs), all}
	}}}
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 1000, Timeout: time.Minute, Parser: parser.NewParser(parser.Options{})})
	query, err := engine.NewInstantQuery(t.Context(), data, nil, expr, now)
	require.NoError(t, err)
	defer query.Close()
	vector, err := query.Exec(t.Context()).Vector()
	require.NoError(t, err)
	return vector
}

// found are the series that a selector matches, by their places among all.
type found struct {
	index.Postings
	all []storage.Series
}

func (f found) At() storage.Series                { return f.all[f.Postings.At()] }
func (f found) Warnings() annotations.Annotations { return nil }
