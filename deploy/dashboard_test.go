package deploy_test

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tidb-groups/tidb-groups/shared/metrics"
)

// graph is a panel of a dashboard; the title of a row is one, too.
type graph struct {
	ID      int    `json:"id"`
	Title   string `json:"title"`
	GridPos struct{ H, W, X, Y int }
	Targets []struct {
		Expr         string `json:"expr"`
		LegendFormat string `json:"legendFormat"`
	} `json:"targets"`
}

// databaseSeries are those of the database that the dashboard asks for, with their labels: PD's are in
// its sources pkg/statistics, TiDB's in pkg/metrics, TiKV's in components/raftstore and
// src/server/metrics.rs, TiProxy's in pkg/metrics, TiCDC's in cdc/owner.
func databaseSeries() map[string][]string {
	given := []string{"kubernetes_namespace", "cluster", "component", "instance", "pod", "service", "job"} // by components/prometheus
	out := map[string][]string{
		"pd_regions_status": {"type"}, "tikv_raftstore_region_count": {"type"}, "tikv_store_size_bytes": {"type"},
		"tikv_grpc_msg_duration_seconds_bucket": {"type", "le"}, "tidb_executor_statement_total": {"type"},
		"tidb_server_handle_query_duration_seconds_bucket": {"le"}, "tidb_server_connections": nil,
		"tidb_server_execute_error_total": {"type"}, "tiproxy_server_connections": nil, "ticdc_owner_checkpoint_ts_lag": {"changefeed"},
		"process_cpu_seconds_total": nil, "process_resident_memory_bytes": nil,
	}
	for name, own := range out {
		out[name] = append(own, given...)
	}
	return out
}

func TestTheDashboardAsksForSeriesThatThereAre(t *testing.T) {
	known := databaseSeries()
	for _, m := range metrics.Table() {
		known[m.Name], known[m.Name+"_bucket"] = m.Labels, append([]string{"le"}, m.Labels...)
	}
	placeholder := regexp.MustCompile(`{{(\w+)}}`)
	for _, g := range graphs(t) {
		for _, target := range g.Targets {
			t.Run(g.Title, func(t *testing.T) {
				expr, err := parser.NewParser(parser.Options{}).ParseExpr(strings.ReplaceAll(target.Expr, "$__rate_interval", "5m"))
				require.NoError(t, err)
				var by []string
				parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
					switch n := n.(type) {
					case *parser.VectorSelector:
						checkSelector(t, n, known)
						assert.NotEmpty(t, known[n.Name], n.Name)
					case *parser.AggregateExpr:
						by = append(by, n.Grouping...)
					}
					return nil
				})
				for _, label := range placeholder.FindAllStringSubmatch(target.LegendFormat, -1) {
					assert.Contains(t, by, label[1])
				}
			})
		}
	}
}

// What has ended well or badly, and what is not to serve, is no trouble of today.
func TestTheDashboardShowsWhatNeedsAUserAlone(t *testing.T) {
	of := func(kind, name, condition, status string) sample {
		return series("tidb_groups_condition", 1, "kind", kind, "namespace", "shop", "name", name, "cluster", "shop", "condition", condition, "status", status, "reason", "RunFailed")
	}
	late := func(kind, name string) sample {
		return series("tidb_groups_unconverged_seconds", 90000, "kind", kind, "namespace", "shop", "name", name, "cluster", "shop")
	}
	empty := series("tidb_groups_members", 0, "kind", "TiDBGroup", "namespace", "shop", "name", "empty", "cluster", "shop", "state", "desired")
	old := "daily-20261129-030000"
	now := []sample{
		of("Backup", old, "Ready", "False"), of("Backup", old, "Stalled", "True"), late("Backup", old), of("Restore", "again", "Ready", "False"), late("Restore", "again"),
		of("TiDBGroup", "empty", "Ready", "False"), empty,
		of("TiKVGroup", "a", "Ready", "False"), of("TiKVGroup", "a", "Stalled", "True"), late("TiKVGroup", "a"),
	}
	for _, title := range []string{"Not Ready", "Stalled", "Not up to date for"} {
		at := slices.IndexFunc(graphs(t), func(g graph) bool { return g.Title == title })
		require.GreaterOrEqual(t, at, 0, title)
		expr := strings.NewReplacer("$namespace", ".*", "$cluster", ".*").Replace(graphs(t)[at].Targets[0].Expr)
		found := moment{now: now}.evaluate(t, expr)
		require.Len(t, found, 1, title)
		assert.Equal(t, "a", found[0].Metric.Get("name"), title)
	}
}

func TestPanelsOfTheDashboardHaveTheirOwnPlaces(t *testing.T) {
	taken, ids := map[[2]int]string{}, map[int]bool{}
	for _, g := range graphs(t) {
		assert.False(t, ids[g.ID], g.Title)
		ids[g.ID] = true
		for x := g.GridPos.X; x < g.GridPos.X+g.GridPos.W; x++ {
			for y := g.GridPos.Y; y < g.GridPos.Y+g.GridPos.H; y++ {
				assert.Empty(t, taken[[2]int{x, y}], g.Title)
				taken[[2]int{x, y}] = g.Title
			}
			assert.Less(t, x, 24, "Grafana's grid is not wider")
		}
	}
}

// graphs returns the panels of the dashboard that components/grafana ships.
func graphs(t *testing.T) []graph {
	t.Helper()
	objects := renderKustomization(t, "resources: [../default]\ncomponents: [../../components/grafana]\n")
	for _, o := range objects {
		if o.GetKind() != "ConfigMap" || o.GetLabels()["grafana_dashboard"] != "1" {
			continue
		}
		text, _, err := unstructured.NestedString(o.Object, "data", "tidb-clusters.json")
		require.NoError(t, err)
		var board struct{ Panels []graph }
		require.NoError(t, json.Unmarshal([]byte(text), &board))
		require.NotEmpty(t, board.Panels)
		return board.Panels
	}
	t.Fatal("no dashboard")
	return nil
}
