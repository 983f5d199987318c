package deploy_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	promlabels "github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/metrics"
)

// prometheusKinds are the kinds of the Prometheus Operator that components/prometheus has.
func prometheusKinds() []string { return []string{"PodMonitor", "PrometheusRule", "ServiceMonitor"} }

// rule is an alert of a PrometheusRule.
type rule struct {
	Alert       string            `json:"alert"`
	Expr        string            `json:"expr"`
	Annotations map[string]string `json:"annotations"`
}

func TestAlertsAskForWhatTheOperatorsReport(t *testing.T) {
	known := map[string][]string{
		"up":                            {"job", "namespace", "service"},
		"leader_election_master_status": {"job", "namespace", "name"}, // of controller-runtime
	}
	for _, m := range metrics.Table() {
		known[m.Name] = m.Labels
	}
	rules := alertRules(t)
	require.Len(t, rules, 12)
	for _, r := range rules {
		t.Run(r.Alert, func(t *testing.T) {
			expr, err := parser.NewParser(parser.Options{}).ParseExpr(r.Expr)
			require.NoError(t, err)
			parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
				if selector, is := n.(*parser.VectorSelector); is {
					checkSelector(t, selector, known)
				}
				return nil
			})
			told := labelsOf(expr)
			for _, text := range r.Annotations {
				for _, part := range strings.Split(text, "$labels.")[1:] {
					label, _, found := strings.Cut(part, " ")
					require.True(t, found, text)
					assert.Contains(t, told, label, text)
				}
			}
		})
	}
}

// checkSelector checks that a selector asks for a series that there is, by labels and values that
// it has.
func checkSelector(t *testing.T, selector *parser.VectorSelector, known map[string][]string) {
	t.Helper()
	require.Contains(t, known, selector.Name)
	for _, m := range selector.LabelMatchers {
		if m.Name == model.MetricNameLabel {
			continue
		}
		assert.Contains(t, known[selector.Name], m.Name, selector)
		if values := closedSet(m.Name, selector); values != nil {
			assert.True(t, slices.ContainsFunc(values, m.Matches), "%s: nothing has it", m)
		}
	}
}

// closedSet returns the values that a label can have; nil if they are not ours to say.
func closedSet(label string, selector *parser.VectorSelector) []string {
	switch label {
	case "kind":
		return append(v1alpha1.GroupKinds(func(v1alpha1.ComponentInfo) bool { return true }), "Backup", "BackupSchedule", "TidbCluster")
	case "status":
		return []string{"True", "False", "Unknown"}
	case "condition":
		return []string{v1alpha1.ConditionReady, v1alpha1.ConditionStalled, v1alpha1.ConditionUpToDate}
	case "state":
		return []string{"Disconnected", "Down", "desired", "ready", "updated"}
	case "reason":
		i := slices.IndexFunc(selector.LabelMatchers, func(m *promlabels.Matcher) bool { return m.Name == "condition" })
		info, _ := v1alpha1.LookupCondition(selector.LabelMatchers[i].Value)
		return info.Reasons
	case "job":
		return []string{"tidb-groups"}
	}
	return nil
}

// labelsOf returns the labels that the alerts of an expression have.
func labelsOf(expr parser.Expr) []string {
	switch e := expr.(type) {
	case *parser.BinaryExpr:
		return labelsOf(e.LHS)
	case *parser.AggregateExpr:
		return e.Grouping
	}
	return nil
}

// renderPrometheus returns the default overlay with components/prometheus.
func renderPrometheus(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	return renderKustomization(t, "resources: [../default]\ncomponents: [../../components/prometheus]\n")
}

// alertRules returns the alerts.
func alertRules(t *testing.T) []rule {
	t.Helper()
	var out []rule
	for _, o := range renderPrometheus(t) {
		if o.GetKind() != "PrometheusRule" {
			continue
		}
		var spec struct {
			Groups []struct {
				Rules []rule `json:"rules"`
			} `json:"groups"`
		}
		require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object["spec"].(map[string]any), &spec))
		for _, g := range spec.Groups {
			out = append(out, g.Rules...)
		}
	}
	return out
}

// An alert is another one when a label of it changes: it is told as resolved, and waits again.
func TestAlertsKeepTheirLabelsWhileTheTroubleLasts(t *testing.T) {
	for _, r := range alertRules(t) {
		expr, err := parser.NewParser(parser.Options{}).ParseExpr(r.Expr)
		require.NoError(t, err)
		for _, changes := range []string{"reason", "state", "status"} {
			assert.NotContains(t, labelsOf(expr), changes, r.Alert)
		}
	}
}

func TestPrometheusFindsEveryMemberOnce(t *testing.T) {
	plain := map[string]string{
		"__meta_kubernetes_namespace": "shop", "__meta_kubernetes_pod_name": "basic-tiflash-x7f2q",
		"__meta_kubernetes_pod_label_app_kubernetes_io_instance": "basic-pd", "__meta_kubernetes_pod_label_app_kubernetes_io_component": "tiflash",
		"__meta_kubernetes_pod_annotation_prometheus_io_port": "8234", "__meta_kubernetes_pod_annotation_prometheus_io_path": "/metrics",
		"namespace": "shop", "pod": "basic-tiflash-x7f2q",
	}
	ports := map[string]string{"metrics": "8234", "proxy": "20170", "proxy-status": "20292", "server": "3930", "": ""} // that of a sidecar has none
	targets := func(t *testing.T, more map[string]string) map[string]map[string]string {
		t.Helper()
		found := map[string]map[string]string{}
		for _, e := range memberEndpoints(t) {
			for name, number := range ports {
				if e.Port != "" && e.Port != name {
					continue
				}
				b := promlabels.NewBuilder(promlabels.FromMap(plain))
				for key, value := range more {
					b.Set(key, value)
				}
				b.Set("__meta_kubernetes_pod_container_port_name", name).Set("__meta_kubernetes_pod_container_port_number", number).Set("__address__", "10.0.0.7:"+number)
				if relabel.ProcessBuilder(b, e.configs(t)...) {
					found[b.Get("__address__")] = b.Labels().Map()
				}
			}
		}
		return found
	}
	t.Run("by the port of its annotation, and TiFlash's Raft store by its own", func(t *testing.T) {
		got := targets(t, nil)
		require.Len(t, got, 2)
		for _, address := range []string{"10.0.0.7:8234", "10.0.0.7:20292"} {
			require.Contains(t, got, address)
			for label, want := range map[string]string{"tidb_cluster": "shop-basic-pd", "kubernetes_namespace": "shop", "cluster": "basic-pd", "component": "tiflash", "instance": "basic-tiflash-x7f2q"} {
				assert.Equal(t, want, got[address][label], label)
			}
		}
	})
	t.Run("not one with TLS, which asks for a certificate", func(t *testing.T) {
		assert.Empty(t, targets(t, map[string]string{"__meta_kubernetes_pod_annotation_prometheus_io_scheme": "https"}))
	})
}

// endpoint is one of a PodMonitor.
type endpoint struct {
	Port        string `json:"port"`
	Relabelings []struct {
		Action       string   `json:"action"`
		Regex        string   `json:"regex"`
		Separator    string   `json:"separator"`
		SourceLabels []string `json:"sourceLabels"`
		TargetLabel  string   `json:"targetLabel"`
	} `json:"relabelings"`
}

// memberEndpoints returns what the PodMonitor of the members says.
func memberEndpoints(t *testing.T) []endpoint {
	t.Helper()
	for _, o := range renderPrometheus(t) {
		if o.GetKind() != "PodMonitor" {
			continue
		}
		var spec struct {
			Endpoints []endpoint `json:"podMetricsEndpoints"`
		}
		require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object["spec"].(map[string]any), &spec))
		return spec.Endpoints
	}
	t.Fatal("no PodMonitor")
	return nil
}

// configs returns the relabelings as Prometheus has them, with its defaults.
func (e endpoint) configs(t *testing.T) []*relabel.Config {
	t.Helper()
	var out []*relabel.Config
	for _, r := range e.Relabelings {
		c := relabel.DefaultRelabelConfig
		c.TargetLabel, c.NameValidationScheme = r.TargetLabel, model.UTF8Validation
		if r.Action != "" {
			c.Action = relabel.Action(r.Action)
		}
		if r.Separator != "" {
			c.Separator = r.Separator
		}
		if r.Regex != "" {
			c.Regex = relabel.MustNewRegexp(r.Regex)
		}
		for _, label := range r.SourceLabels {
			c.SourceLabels = append(c.SourceLabels, model.LabelName(label))
		}
		require.NoError(t, c.Validate(model.UTF8Validation))
		out = append(out, &c)
	}
	return out
}
