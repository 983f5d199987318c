// Package picture draws what a workload has seen: the latency of its statements and
// their errors over time, over the operations and beside the Events of that time.
package picture

import (
	"cmp"
	"fmt"
	"image/color"
	"io"
	"maps"
	"slices"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/tidb-groups/tidb-groups/e2e/chart"
	"github.com/tidb-groups/tidb-groups/e2e/workload"
)

// Sizes, points.
const (
	width         = 1000
	latencyHeight = 270
	rateHeight    = 130
	rowHeight     = chart.RowHeight
	margin        = chart.Margin
	axisHeight    = 24
	textSize      = chart.TextSize
	sampleWidth   = 16
)

// maxRows is how many reasons of marks have a row of their own.
const maxRows = 12

var (
	blue   = chart.Blue
	pale   = color.RGBA{R: 0x8f, G: 0xb8, B: 0xde, A: 0xff}
	red    = color.RGBA{R: 0xc6, G: 0x28, B: 0x28, A: 0xff}
	orange = color.RGBA{R: 0xe0, G: 0x8a, B: 0x00, A: 0xff}
	shades = []color.Color{color.RGBA{R: 0xff, G: 0xf3, B: 0xd6, A: 0xff}, color.RGBA{R: 0xe6, G: 0xf2, B: 0xe6, A: 0xff}}
)

// Draw writes the picture of a report as SVG.
func Draw(w io.Writer, r workload.Report) error {
	canvas, err := paintReport(r, func(w, h vg.Length) vg.CanvasWriterTo { return vgsvg.New(w, h) })
	if err != nil {
		return err
	}
	return chart.Encode(w, canvas)
}

func paintReport(r workload.Report, open func(w, h vg.Length) vg.CanvasWriterTo) (vg.CanvasWriterTo, error) {
	latency, err := plotLatencies(r)
	if err != nil {
		return nil, err
	}
	rate, err := plotRates(r)
	if err != nil {
		return nil, err
	}
	panels := []*panel{latency, rate}
	if rows := rowsOf(r); len(rows) > 0 {
		panels = append(panels, plotMarks(r, rows))
	}
	height := vg.Length(2*margin + rowHeight + len(r.Operations)*rowHeight)
	for _, p := range panels {
		height += p.height + rowHeight
		p.X.Min, p.X.Max = 0, max(r.Took.Seconds(), 1) // whatever was added has changed them
	}
	canvas := open(width, height)
	whole := draw.NewCanvas(canvas, width, height)
	whole.SetColor(color.White)
	whole.Fill(whole.Rectangle.Path())

	top := height - margin
	var places []draw.Canvas
	heads := []vg.Length{top}
	top -= rowHeight
	for _, p := range panels {
		heads = append(heads, top)
		top -= rowHeight
		places = append(places, draw.Crop(whole, margin, -2*margin, top-p.height, top-height))
		top -= p.height
	}
	// All have the same time above the same place.
	left, right := vg.Length(0), vg.Length(width)
	for i, p := range panels {
		data := p.DataCanvas(places[i])
		left, right = max(left, data.Min.X), min(right, data.Max.X)
	}
	whole.FillText(chart.Style(), vg.Point{X: left, Y: heads[0]}, "Time in minutes and seconds since "+r.Started.UTC().Format("2006-01-02 15:04:05 UTC")+", server "+r.Server)
	for i, p := range panels {
		data := p.DataCanvas(places[i])
		p.Draw(draw.Crop(places[i], left-data.Min.X, right-data.Max.X, 0, 0))
		chart.DrawLegend(whole, p.entries, sampleWidth, left, heads[i+1])
	}
	for i, o := range r.Operations {
		whole.FillText(chart.Style(), vg.Point{X: left, Y: top - vg.Length(i*rowHeight)}, describeOperation(i, o))
	}
	return canvas, nil
}

// describeOperation tells of an operation.
func describeOperation(i int, o workload.Operation) string {
	out := fmt.Sprintf("%d  %s: %s, %d statements, %d failed", i+1, o.Name, o.Took.Round(100*time.Millisecond), o.Statements, o.Failed)
	if o.FailedLong > 0 {
		out += fmt.Sprintf(" and %d on long connections", o.FailedLong)
	}
	return out + fmt.Sprintf(", longest pause %s, lost rows %d", o.Pause.Duration, o.Lost)
}

// panel is a plot, and what stands above it.
type panel struct {
	*plot.Plot
	height  vg.Length
	entries []chart.Entry
}

// newTimePanel is a panel over the time of a report, with its operations as shades.
func newTimePanel(r workload.Report, label string, height vg.Length) *panel {
	p := &panel{Plot: plot.New(), height: height}
	p.Y.Label.Text = label
	chart.StyleAxes(p.Plot)
	p.X.Tick.Marker = plot.TickerFunc(timeTicks)
	p.Add(spans{r})
	lines := plotter.NewGrid()
	lines.Horizontal.Color, lines.Vertical.Color = chart.Grid, chart.Grid
	p.Add(lines)
	return p
}

// timeTicks marks about ten times.
func timeTicks(low, high float64) []plot.Tick {
	step := 1.0
	for _, s := range []float64{1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200} {
		if step = s; (high-low)/s <= 12 {
			break
		}
	}
	var out []plot.Tick
	for t := 0.0; t <= high; t += step {
		out = append(out, plot.Tick{Value: t, Label: fmt.Sprintf("%d:%02d", int(t)/60, int(t)%60)})
	}
	return out
}

// plotLatencies plots the longest latency and the median of each second, and each failed statement.
func plotLatencies(r workload.Report) (*panel, error) {
	p := newTimePanel(r, "latency", latencyHeight)
	p.Y.Scale, p.Y.Min, p.Y.Max = plot.LogScale{}, 1, 1000
	p.Y.Tick.Marker = plot.ConstantTicks{
		{Value: 1, Label: "1 ms"}, {Value: 10, Label: "10 ms"}, {Value: 100, Label: "100 ms"}, {Value: 1000, Label: "1 s"}, {Value: 10_000, Label: "10 s"},
		{Value: 100_000, Label: "100 s"},
	}
	add := func(name string, c color.Color, value func(workload.Second) float64) error {
		for i, part := range splitAtGaps(r.Seconds) {
			points := make(plotter.XYs, 0, len(part))
			for _, s := range part {
				points = append(points, plotter.XY{X: float64(s.Second) + 0.5, Y: max(value(s), 1)})
				p.Y.Max = max(p.Y.Max, 1.5*value(s))
			}
			l, err := plotter.NewLine(points)
			if err != nil {
				return fmt.Errorf("draw %s: %w", name, err)
			}
			l.Color, l.Width = c, 1.2
			p.Add(l)
			if len(points) == 1 { // a line of one point shows nothing
				dot, err := plotter.NewScatter(points)
				if err != nil {
					return fmt.Errorf("draw %s: %w", name, err)
				}
				dot.GlyphStyle = draw.GlyphStyle{Color: c, Radius: 1.5, Shape: draw.CircleGlyph{}}
				p.Add(dot)
			}
			if i == 0 {
				p.entries = append(p.entries, chart.Entry{Name: name, Sample: l})
			}
		}
		return nil
	}
	if err := add("median of a second", pale, func(s workload.Second) float64 { return s.Median }); err != nil {
		return nil, err
	}
	if err := add("longest of a second", blue, func(s workload.Second) float64 { return s.Longest }); err != nil {
		return nil, err
	}
	var failed plotter.XYs
	for _, f := range r.Failures {
		took := max(float64(f.Took.Milliseconds()), 1)
		failed = append(failed, plotter.XY{X: f.Due.Add(f.Took.Duration).Sub(r.Started).Seconds(), Y: took})
		p.Y.Max = max(p.Y.Max, 1.5*took)
	}
	if len(failed) > 0 {
		if err := p.cross("failed statement, and what it took", failed); err != nil {
			return nil, err
		}
	}
	p.Add(numbers{r})
	return p, nil
}

// splitAtGaps cuts the seconds where one is missing or had no success.
func splitAtGaps(all []workload.Second) [][]workload.Second {
	var out [][]workload.Second
	last := -2
	for _, s := range all {
		if s.Succeeded == 0 {
			continue
		}
		if s.Second != last+1 {
			out = append(out, nil)
		}
		out[len(out)-1] = append(out[len(out)-1], s)
		last = s.Second
	}
	return out
}

// plotRates plots how many statements ended in each whole second, and those that failed as crosses.
func plotRates(r workload.Report) (*panel, error) {
	p := newTimePanel(r, "per second", rateHeight)
	p.Y.Min, p.Y.Max = 0, 1
	succeeded := make(plotter.XYs, int(r.Took.Seconds()))
	refused := make(plotter.XYs, len(succeeded))
	var failed plotter.XYs
	for n := range succeeded {
		succeeded[n].X, refused[n].X = float64(n)+0.5, float64(n)+0.5
	}
	for _, s := range r.Seconds {
		p.Y.Max = max(p.Y.Max, 1.1*float64(s.Succeeded), 1.1*float64(s.Refused), 1.1*float64(s.Failed))
		if s.Second < len(succeeded) {
			succeeded[s.Second].Y, refused[s.Second].Y = float64(s.Succeeded), float64(s.Refused)
		}
		if s.Failed > 0 {
			failed = append(failed, plotter.XY{X: float64(s.Second) + 0.5, Y: float64(s.Failed)})
		}
	}
	for _, one := range []struct {
		name   string
		color  color.Color
		points plotter.XYs
		shown  bool
	}{
		{"connections refused", orange, refused, len(r.Refusals) > 0}, {"succeeded", blue, succeeded, len(succeeded) > 0},
	} {
		if !one.shown {
			continue
		}
		l, err := plotter.NewLine(one.points)
		if err != nil {
			return nil, fmt.Errorf("draw %s: %w", one.name, err)
		}
		l.Color, l.Width = one.color, 1.2
		p.Add(l)
		p.entries = append(p.entries, chart.Entry{Name: one.name, Sample: l})
	}
	if len(failed) > 0 {
		if err := p.cross("failed", failed); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// cross draws crosses.
func (p *panel) cross(name string, points plotter.XYs) error {
	crosses, err := plotter.NewScatter(points)
	if err != nil {
		return fmt.Errorf("draw %s: %w", name, err)
	}
	crosses.GlyphStyle = draw.GlyphStyle{Color: red, Radius: 3, Shape: draw.CrossGlyph{}}
	p.Add(crosses)
	p.entries = append(p.entries, chart.Entry{Name: name, Sample: crosses})
	return nil
}

// rowsOf names the rows of the marks, the last of them first: those of which there are most, and the others together.
func rowsOf(r workload.Report) []string {
	count, first := map[string]int{}, map[string]time.Time{}
	for _, m := range r.Marks {
		count[m.Row]++
		if at, ok := first[m.Row]; !ok || m.At.Before(at) {
			first[m.Row] = m.At
		}
	}
	rows := slices.SortedFunc(maps.Keys(count), func(a, b string) int { return cmp.Or(count[b]-count[a], cmp.Compare(a, b)) })
	if len(rows) > maxRows {
		rows = rows[:maxRows-1]
	}
	slices.SortFunc(rows, func(a, b string) int { return cmp.Or(first[b].Compare(first[a]), cmp.Compare(a, b)) })
	if len(count) > len(rows) {
		rows = append([]string{other}, rows...)
	}
	return rows
}

// other is the row of marks that have none of their own.
const other = "others"

// plotMarks plots the marks, a row for each kind.
func plotMarks(r workload.Report, rows []string) *panel {
	p := newTimePanel(r, "Events", vg.Length(len(rows)*rowHeight+axisHeight))
	p.Y.Min, p.Y.Max = -0.5, float64(len(rows))-0.5
	count := map[int]int{}
	for _, m := range r.Marks {
		count[max(slices.Index(rows, m.Row), 0)]++
	}
	var ticks []plot.Tick
	for i, row := range rows {
		ticks = append(ticks, plot.Tick{Value: float64(i), Label: fmt.Sprintf("%s (%d)", row, count[i])})
	}
	p.Y.Tick.Marker = plot.ConstantTicks(ticks)
	p.Add(marks{r, rows})
	return p
}

// spans shades the time of each operation.
type spans struct{ workload.Report }

// Plot implements plot.Plotter.
func (s spans) Plot(c draw.Canvas, p *plot.Plot) {
	x, _ := p.Transforms(&c)
	for i, o := range s.Operations {
		left := x(o.Started.Sub(s.Started).Seconds())
		right := max(x(o.Started.Add(o.Took.Duration).Sub(s.Started).Seconds()), left+1)
		c.FillPolygon(shades[i%len(shades)], []vg.Point{{X: left, Y: c.Min.Y}, {X: right, Y: c.Min.Y}, {X: right, Y: c.Max.Y}, {X: left, Y: c.Max.Y}})
	}
}

// numbers writes the number of each operation over its shade, lower where the
// last one stands in the way.
type numbers struct{ workload.Report }

// Plot implements plot.Plotter.
func (s numbers) Plot(c draw.Canvas, p *plot.Plot) {
	x, _ := p.Transforms(&c)
	look := chart.Style()
	look.XAlign = text.XCenter
	var ends []vg.Length // of the last number on each level
	for i, o := range s.Operations {
		label := fmt.Sprint(i + 1)
		middle := x(o.Started.Add(o.Took.Duration / 2).Sub(s.Started).Seconds())
		half := look.Width(label)/2 + 2
		level := slices.IndexFunc(ends, func(end vg.Length) bool { return end <= middle-half })
		if level < 0 {
			level, ends = len(ends), append(ends, 0)
		}
		ends[level] = middle + half
		c.FillText(look, vg.Point{X: middle, Y: c.Max.Y - 2 - vg.Length(level*textSize)}, label)
	}
}

// marks draws a tick for each mark in its row.
type marks struct {
	workload.Report
	rows []string
}

// Plot implements plot.Plotter.
func (m marks) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	tick := draw.LineStyle{Color: blue, Width: 1}
	for _, mark := range m.Marks {
		at, row := x(mark.At.Sub(m.Started).Seconds()), y(float64(max(slices.Index(m.rows, mark.Row), 0)))
		if at >= c.Min.X && at <= c.Max.X {
			c.StrokeLine2(tick, at, row-rowHeight/2+3, at, row+rowHeight/2-3)
		}
	}
}
