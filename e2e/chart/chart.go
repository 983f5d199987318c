package chart

import (
	"fmt"
	"image/color"
	"io"
	"slices"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Sizes, points.
const (
	width  = 720
	height = 260
	// lineSample has room for a whole pattern of dashes.
	lineSample = 36
)

// Line is a line of a chart.
type Line struct {
	Name   string
	Points plotter.XYs
	// Bound is a line that nothing can get below: it has no marks.
	Bound bool
}

// Chart is lines over places or over numbers.
type Chart struct {
	// X and Y say what the axes are.
	X, Y string
	// Places name 0, 1, … of the X axis. Without any, both axes have logarithmic scales.
	Places []string
	Lines  []Line
}

// Each line has marks of its own shape and dashes of its own pattern; after so many they
// repeat.
var (
	shapes = []draw.GlyphDrawer{draw.CircleGlyph{}, draw.BoxGlyph{}, draw.TriangleGlyph{}, draw.RingGlyph{}, draw.SquareGlyph{}, draw.CrossGlyph{}}
	dashes = [][]vg.Length{nil, {6, 3}, {2, 2}, {9, 3, 2, 3}, {12, 4}, {2, 5}}
	inks   = []color.Color{Blue, color.RGBA{R: 0xc6, G: 0x28, B: 0x28, A: 0xff}, color.RGBA{R: 0x2e, G: 0x7d, B: 0x32, A: 0xff}}
)

// Draw writes the chart as SVG.
func (c Chart) Draw(w io.Writer) error {
	p := plot.New()
	p.X.Label.Text, p.Y.Label.Text = c.X, c.Y
	StyleAxes(p)
	grid := plotter.NewGrid()
	grid.Horizontal.Color, grid.Vertical.Color = Grid, Grid
	p.Add(grid)
	var entries []Entry
	for i, l := range c.Lines {
		drawn, err := l.plotters(i)
		if err != nil {
			return err
		}
		p.Add(drawn.line)
		if drawn.marks != nil {
			p.Add(drawn.marks)
		}
		entries = append(entries, Entry{Name: l.Name, Sample: drawn})
	}
	c.scale(p)
	whole := vg.Length(height + 2*Margin + len(entries)*RowHeight)
	canvas := vgsvg.New(width, whole)
	page := draw.NewCanvas(canvas, width, whole)
	page.SetColor(color.White)
	page.Fill(page.Rectangle.Path())
	for i, e := range entries {
		DrawLegend(page, []Entry{e}, lineSample, Margin, whole-vg.Length(Margin+i*RowHeight))
	}
	p.Draw(draw.Crop(page, Margin, -2*Margin, Margin, -vg.Length(Margin+len(entries)*RowHeight)))
	return Encode(w, canvas)
}

// drawing is a line with its marks.
type drawing struct {
	line  *plotter.Line
	marks *plotter.Scatter
}

// Thumbnail implements plot.Thumbnailer.
func (d drawing) Thumbnail(c *draw.Canvas) {
	d.line.Thumbnail(c)
	if d.marks != nil {
		d.marks.Thumbnail(c)
	}
}

// plotters draws the line that stands at this place among all.
func (l Line) plotters(at int) (drawing, error) {
	line, err := plotter.NewLine(l.Points)
	if err != nil {
		return drawing{}, fmt.Errorf("draw %s: %w", l.Name, err)
	}
	line.Width, line.Color, line.Dashes = 1.2, inks[at%len(inks)], dashes[at%len(dashes)]
	if l.Bound {
		line.Width, line.Color, line.Dashes = 2, color.Black, nil
		return drawing{line: line}, nil
	}
	marks, err := plotter.NewScatter(l.Points)
	if err != nil {
		return drawing{}, fmt.Errorf("draw %s: %w", l.Name, err)
	}
	marks.GlyphStyle = draw.GlyphStyle{Color: inks[at%len(inks)], Radius: 4, Shape: shapes[at%len(shapes)]}
	return drawing{line, marks}, nil
}

// scale sets what the axes show, after all lines were added, which have changed it.
func (c Chart) scale(p *plot.Plot) {
	if len(c.Places) == 0 {
		p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
		p.X.Tick.Marker, p.Y.Tick.Marker = plot.ConstantTicks(logarithmicTicks()), plot.ConstantTicks(logarithmicTicks())
		p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = p.X.Min/1.2, p.X.Max*1.2, p.Y.Min/1.5, p.Y.Max*1.5
		return
	}
	var ticks []plot.Tick
	for i, place := range c.Places {
		ticks = append(ticks, plot.Tick{Value: float64(i), Label: place})
	}
	p.X.Tick.Marker = plot.ConstantTicks(ticks)
	p.X.Min, p.X.Max = -0.5, float64(len(c.Places))-0.5
	p.Y.Min, p.Y.Max = 0, 1.1*p.Y.Max
}

// logarithmicTicks marks 1, 2, 5, 10, 20, 50 and so on.
func logarithmicTicks() []plot.Tick {
	var out []plot.Tick
	for at := 1; at <= 1_000_000; at *= 10 {
		for _, n := range []int{1, 2, 5} {
			out = append(out, plot.Tick{Value: float64(n * at), Label: strconv.Itoa(n * at)})
		}
	}
	return slices.Clip(out)
}
