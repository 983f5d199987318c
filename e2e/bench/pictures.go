package bench

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"gonum.org/v1/plot/plotter"

	"github.com/tidb-groups/tidb-groups/e2e/chart"
)

// inOrder is how many components have to become Ready one after the other: PD, TiKV, TiDB.
const inOrder = 3

// shown is how many lines of times a picture has, the last that were recorded.
const shown = 6

// picture is one of docs/pictures.
type picture struct {
	file, says string
	chart      chart.Chart
}

// makePictures are those of the page. Those that have no figures are left out.
func makePictures(runs []Run) []picture {
	if len(runs) == 0 {
		return nil
	}
	all := []picture{
		{"performance-writes.svg", "Writes of all operators per cluster, over the recorded runs", overRuns(runs, "writes per cluster", func(c Cost) float64 { return float64(c.Writes) })},
		{"performance-ready.svg", "Time until all clusters are Ready, over their number, on the last machine", overClusters(ofLast(runs))},
		{"performance-processor.svg", "Processor time of all operators per cluster, over the runs on the last machine", overRuns(ofLast(runs), "processor time per cluster, ms", func(c Cost) float64 { return toMilliseconds(c.Operators()) })},
	}
	return slices.DeleteFunc(all, func(p picture) bool { return len(p.chart.Lines) == 0 })
}

// overRuns has a line for each number of clusters, over the runs that told the operators apart.
func overRuns(runs []Run, y string, of func(Cost) float64) chart.Chart {
	out := chart.Chart{X: "commit", Y: y}
	points := map[int]plotter.XYs{}
	var numbers []int
	for _, run := range runs {
		if len(run.Results) == 0 {
			continue
		}
		for _, r := range run.Results {
			if points[r.Clusters] == nil {
				numbers = append(numbers, r.Clusters)
			}
			points[r.Clusters] = append(points[r.Clusters], plotter.XY{X: float64(len(out.Places)), Y: of(r.Start) / float64(r.Clusters)})
		}
		out.Places = append(out.Places, run.label())
	}
	slices.Sort(numbers)
	for _, n := range numbers {
		out.Lines = append(out.Lines, chart.Line{Name: formatClusterCount(n), Points: points[n]})
	}
	return out
}

// overClusters has a line for each of the last runs over the numbers of clusters, and below
// them what no operator can get under.
func overClusters(runs []Run) chart.Chart {
	out := chart.Chart{X: "clusters", Y: "all Ready, s"}
	var lines []chart.Line
	least, most := 0, 0
	add := func(name string, points plotter.XYs) {
		if len(points) > 0 {
			lines = append(lines, chart.Line{Name: name, Points: points})
		}
	}
	for _, run := range runs {
		var together, apart, here plotter.XYs
		for _, r := range run.Results {
			here = append(here, plotPoint(r.Clusters, r.Took))
		}
		for _, p := range run.Processes {
			if p.Together {
				together = append(together, plotPoint(p.Clusters, p.Took))
			} else {
				apart = append(apart, plotPoint(p.Clusters, p.Took))
			}
		}
		add(run.label()+", operators and simulated world in one process", here)
		add(run.label()+", each operator in a process of its own", apart)
		add(run.label()+", all operators in one process", together)
	}
	lines = lines[max(len(lines)-shown, 0):]
	for _, l := range lines {
		for _, p := range l.Points {
			if n := int(p.X); least == 0 || n < least {
				least = n
			}
			most = max(most, int(p.X))
		}
	}
	if len(lines) == 0 {
		return out
	}
	out.Lines = slices.Concat(lines, []chart.Line{boundLine(runs, least, most)})
	return out
}

// boundLine is what Kubernetes alone takes for so many clusters: as measured last, and where it was
// not, the time that the pods of a cluster take one after the other.
func boundLine(runs []Run, least, most int) chart.Line {
	measured := map[int]time.Duration{}
	for _, run := range runs {
		for _, r := range run.Results {
			if r.Floor > 0 {
				measured[r.Clusters] = r.Floor
			}
		}
	}
	if len(measured) > 1 {
		out := chart.Line{Bound: true, Name: "bare StatefulSets of as many pods, without order"}
		for _, n := range slices.Sorted(maps.Keys(measured)) {
			out.Points = append(out.Points, plotPoint(n, measured[n]))
		}
		return out
	}
	floor := inOrder * ready
	return chart.Line{
		Bound: true, Points: plotter.XYs{plotPoint(least, floor), plotPoint(most, floor)},
		Name: fmt.Sprintf("floor: %d components in order, %s each from scheduled to Ready", inOrder, ready),
	}
}

func plotPoint(clusters int, took time.Duration) plotter.XY {
	return plotter.XY{X: float64(clusters), Y: took.Seconds()}
}

func formatClusterCount(n int) string {
	if n == 1 {
		return "1 cluster"
	}
	return fmt.Sprintf("%d clusters", n)
}

// label names a run in a picture.
func (r Run) label() string {
	if r.WasMachineBusy() {
		return r.name() + " (loaded)"
	}
	return r.name()
}

// name is the commit of a run, and the letter of its machine if there are several.
func (r Run) name() string {
	if r.letter != "" {
		return r.Commit + ", " + r.letter
	}
	return r.Commit
}

// folder of the pictures below that of the page.
const folder = "pictures"

// renderLinks shows the pictures on the page.
func renderLinks(all []picture) string {
	var out strings.Builder
	if len(all) > 0 {
		out.WriteString("*loaded*: the machine did much else, times are too long.\n\n")
	}
	for _, p := range all {
		fmt.Fprintf(&out, "![%s](%s/%s)\n\n", p.says, folder, p.file)
	}
	return out.String()
}

// drawPictures writes the pictures.
func drawPictures(docs string, all []picture) error {
	if err := os.MkdirAll(filepath.Join(docs, folder), 0o755); err != nil { //nolint:gosec // a folder of the repository
		return fmt.Errorf("make room for pictures: %w", err)
	}
	for _, p := range all {
		var svg bytes.Buffer
		if err := p.chart.Draw(&svg); err != nil {
			return fmt.Errorf("draw %s: %w", p.file, err)
		}
		if err := os.WriteFile(filepath.Join(docs, folder, p.file), svg.Bytes(), 0o644); err != nil { //nolint:gosec // a file of the repository
			return fmt.Errorf("write picture: %w", err)
		}
	}
	return nil
}
