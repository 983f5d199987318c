package dashboard

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/cog/variants"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/table"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
	"sigs.k8s.io/yaml"
)

const (
	// id stays, so that a new version takes the place of the one before.
	id = "tidb-groups"
	// height and width of a panel, in the units of Grafana's grid, which is 24 wide.
	height, width = 8, 12
)

//go:embed panels.yaml
var rows []byte

// row is a part of the dashboard.
type row struct {
	Title  string  `json:"title"`
	Panels []panel `json:"panels"`
}

// panel is a graph, or a table of what is the case now.
type panel struct {
	Title   string  `json:"title"`
	Help    string  `json:"help"`
	Unit    string  `json:"unit"` // as Grafana names it
	Table   bool    `json:"table"`
	Queries []query `json:"queries"`
}

// query is an expression in which $objects stands for the matchers of the operators' series and
// $members for those of the database's.
type query struct {
	Expr   string `json:"expr"`
	Legend string `json:"legend"`
}

// chosenSource is the data source that the user has chosen.
func chosenSource() common.DataSourceRef {
	return common.DataSourceRef{Type: new("prometheus"), Uid: new("${datasource}")}
}

// Render returns the dashboard as Grafana reads it.
func Render() ([]byte, error) {
	var all []row
	if err := yaml.UnmarshalStrict(rows, &all); err != nil {
		return nil, fmt.Errorf("read panels.yaml: %w", err)
	}
	//nolint:staticcheck // Grafana before version 12 reads no other form
	b := dashboard.NewDashboardBuilder("TiDB clusters").Uid(id).Tags([]string{"tidb", id}).
		Description("What the operators of tidb-groups say of TiDB clusters, and how these are.").
		Time("now-3h", "now").Refresh("30s").Tooltip(dashboard.DashboardCursorSyncCrosshair).
		WithVariable(dashboard.NewDatasourceVariableBuilder("datasource").Label("data source").Type("prometheus")).
		WithVariable(chooseValues("namespace", "namespace", `label_values(tidb_groups_condition, namespace)`)).
		WithVariable(chooseValues("cluster", "cluster", `label_values(tidb_groups_condition{namespace=~"$namespace"}, cluster)`)).
		WithVariable(chooseValues("pdgroup", "PDGroup", `label_values(tidb_groups_condition{kind="PDGroup",namespace=~"$namespace",cluster=~"$cluster"}, name)`))
	number := uint32(0)
	next := func() uint32 { number++; return number }
	for _, r := range all {
		b = b.WithRow(dashboard.NewRowBuilder(r.Title).Id(next()))
		for _, p := range r.Panels {
			b = b.WithPanel(p.buildPanel(next()))
		}
	}
	built, err := b.Build()
	if err != nil {
		return nil, fmt.Errorf("build dashboard: %w", err)
	}
	text, err := json.MarshalIndent(built, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode dashboard: %w", err)
	}
	return append(text, '\n'), nil
}

// chooseValues offers several values, of all at first.
func chooseValues(name, label, values string) *dashboard.QueryVariableBuilder {
	return dashboard.NewQueryVariableBuilder(name).Label(label).Query(dashboard.StringOrMap{String: &values}).Datasource(chosenSource()).
		Refresh(dashboard.VariableRefreshOnTimeRangeChanged).Sort(dashboard.VariableSortAlphabeticalAsc).Multi(true).IncludeAll(true).AllValue(".*")
}

// buildPanel returns a panel as Grafana has it.
func (p panel) buildPanel(number uint32) cog.Builder[dashboard.Panel] {
	var targets []cog.Builder[variants.Dataquery]
	for n, q := range p.Queries {
		target := prometheus.NewDataqueryBuilder().RefId(string(rune('A' + n))).Expr(q.expandMatchers()).LegendFormat(q.Legend)
		if p.Table {
			target = target.Instant().Format(prometheus.PromQueryFormatTable)
		}
		targets = append(targets, target)
	}
	if p.Table {
		hidden := map[string]any{"excludeByName": map[string]bool{"Time": true, "Value": true}}
		return table.NewPanelBuilder().Id(number).Title(p.Title).Description(p.Help).Datasource(chosenSource()).Targets(targets).
			Height(height).Span(width).NoValue("none").
			WithTransformation(dashboard.DataTransformerConfig{Id: "organize", Options: hidden})
	}
	return timeseries.NewPanelBuilder().Id(number).Title(p.Title).Description(p.Help).Datasource(chosenSource()).Targets(targets).
		Height(height).Span(width).Unit(p.Unit).Min(0)
}

// expandMatchers puts the matchers of what the user has chosen into a query.
func (q query) expandMatchers() string {
	return strings.NewReplacer(
		"$objects", `namespace=~"$namespace",cluster=~"$cluster"`,
		"$members", `kubernetes_namespace=~"$namespace",cluster=~"$pdgroup"`,
	).Replace(q.Expr)
}
