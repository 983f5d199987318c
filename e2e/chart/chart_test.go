package chart_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/plot/plotter"

	"github.com/tidb-groups/tidb-groups/e2e/chart"
)

func draw(t *testing.T, c chart.Chart) string {
	t.Helper()
	var out strings.Builder
	require.NoError(t, c.Draw(&out))
	return out.String()
}

func TestLinesCanBeDistinguishedWithoutColours(t *testing.T) {
	c := chart.Chart{X: "commit", Y: "writes", Places: []string{"one", "two"}, Lines: []chart.Line{
		{Name: "1 cluster", Points: plotter.XYs{{X: 0, Y: 200}, {X: 1, Y: 100}}},
		{Name: "8 clusters", Points: plotter.XYs{{X: 0, Y: 190}, {X: 1, Y: 90}}},
		{Name: "20 clusters", Points: plotter.XYs{{X: 1, Y: 80}}},
		{Name: "floor", Points: plotter.XYs{{X: 0, Y: 3}, {X: 1, Y: 3}}, Bound: true},
	}}
	svg := draw(t, c)
	for _, text := range []string{"commit", "writes", "one", "two", "1 cluster", "8 clusters", "20 clusters", "floor"} {
		assert.Contains(t, svg, ">"+text+"</text>")
	}
	patterns := map[string]bool{}
	for _, found := range regexp.MustCompile(`stroke-dasharray:([0-9.,]+)`).FindAllStringSubmatch(svg, -1) {
		patterns[found[1]] = true
	}
	assert.Len(t, patterns, 2, "the first is drawn through, each other one has dashes of its own")
	assert.NotContains(t, svg, "NaN")
	assert.Equal(t, svg, draw(t, c), "the same figures are the same bytes")
}

func TestNumbersOfTwoOrdersHaveLogarithmicAxes(t *testing.T) {
	svg := draw(t, chart.Chart{X: "clusters", Y: "s", Lines: []chart.Line{{Name: "a", Points: plotter.XYs{{X: 1, Y: 4}, {X: 100, Y: 158}}}}})
	for _, tick := range []string{"1", "2", "5", "10", "50", "100", "200"} {
		assert.Contains(t, svg, ">"+tick+"</text>")
	}
}
