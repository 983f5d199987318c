package deploy_test

import (
	"slices"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// sample is a series and its value.
type sample struct {
	labels map[string]string
	value  float64
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

// operator makes what Prometheus says of the operator of PDGroups.
func operator(up float64) sample {
	return series("up", up, "job", "tidb-groups", "namespace", "tidb-groups-system", "service", "pdgroup-operator-metrics")
}

func TestAlertsFireForTroubleAlone(t *testing.T) {
	rules := alertRules(t)
	desired := func(n float64) sample { return ofGroup("tidb_groups_members", n, "state", "desired") }
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
		"two replicas of an operator say the same":        {"TiDBNotReady", nil, []sample{says("Ready", "False", "QuorumLost"), says("Ready", "False", "QuorumLost"), desired(3)}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			at := slices.IndexFunc(rules, func(r rule) bool { return r.Alert == c.alert })
			require.GreaterOrEqual(t, at, 0)
			expr, err := parser.NewParser(parser.Options{}).ParseExpr(rules[at].Expr)
			require.NoError(t, err)
			assert.Len(t, moment{past: c.past, now: c.now}.evaluate(t, expr), c.want)
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

// moment has what Prometheus knows: the series of now, and those of before.
type moment struct{ past, now []sample }

// evaluate evaluates an expression as Prometheus does, as far as alerts need it.
func (m moment) evaluate(t *testing.T, expr parser.Expr) []sample {
	t.Helper()
	switch e := expr.(type) {
	case *parser.ParenExpr:
		return m.evaluate(t, e.Expr)
	case *parser.VectorSelector:
		return selectSeries(e, m.now)
	case *parser.Call:
		require.Equal(t, "max_over_time", e.Func.Name)
		return selectSeries(e.Args[0].(*parser.MatrixSelector).VectorSelector.(*parser.VectorSelector), slices.Concat(m.past, m.now))
	case *parser.AggregateExpr:
		require.Equal(t, parser.MAX, int(e.Op))
		var out []sample
		for _, one := range m.evaluate(t, e.Expr) {
			at := slices.IndexFunc(out, func(other sample) bool { return hasLabelsOf(one, other, e.Grouping) })
			if at < 0 {
				out = append(out, one)
			} else {
				out[at].value = max(out[at].value, one.value)
			}
		}
		return out
	case *parser.BinaryExpr:
		left := m.evaluate(t, e.LHS)
		if e.Op == parser.LUNLESS {
			right := m.evaluate(t, e.RHS)
			require.True(t, e.VectorMatching.On)
			return slices.DeleteFunc(left, func(one sample) bool {
				return slices.ContainsFunc(right, func(other sample) bool { return hasLabelsOf(one, other, e.VectorMatching.MatchingLabels) })
			})
		}
		return slices.DeleteFunc(left, func(one sample) bool { return !isWithin(t, e, one.value) })
	}
	require.Failf(t, "not known", "%T", expr)
	return nil
}

// isWithin reports whether a value is as an expression asks.
func isWithin(t *testing.T, e *parser.BinaryExpr, value float64) bool {
	t.Helper()
	bound := e.RHS.(*parser.NumberLiteral).Val
	if e.Op == parser.GTR {
		return value > bound
	}
	require.Equal(t, parser.EQLC, int(e.Op))
	return value == bound
}

// selectSeries returns the series that a selector matches.
func selectSeries(selector *parser.VectorSelector, all []sample) []sample {
	var out []sample
	for _, one := range all {
		matches := true
		for _, m := range selector.LabelMatchers {
			matches = matches && m.Matches(one.labels[m.Name])
		}
		if matches {
			out = append(out, one)
		}
	}
	return out
}

// hasLabelsOf reports whether two series have the same values of labels.
func hasLabelsOf(a, b sample, labels []string) bool {
	return !slices.ContainsFunc(labels, func(label string) bool { return a.labels[label] != b.labels[label] })
}
