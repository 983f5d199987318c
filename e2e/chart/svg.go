package chart

import (
	"bytes"
	"fmt"
	"image/color"
	"io"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Sizes, points.
const (
	// TextSize is that of all letters.
	TextSize = 11
	// RowHeight is that of a line of text.
	RowHeight = 16
	// Margin around everything.
	Margin = 10
)

// Colours.
var (
	// Blue is what is looked at first.
	Blue = color.RGBA{R: 0x1f, G: 0x5f, B: 0xa8, A: 0xff}
	// Grid is that of the lines behind everything.
	Grid = color.RGBA{R: 0xe2, G: 0xe2, B: 0xe2, A: 0xff}
)

// Font is that of everything.
func Font() font.Font { return font.Font{Typeface: "Liberation", Variant: "Sans"} }

// Style is how text is written, below the point that it is written at.
func Style() text.Style {
	return text.Style{
		Color: color.Black, Font: font.From(Font(), TextSize), YAlign: text.YTop, Handler: plot.DefaultTextHandler,
	}
}

// StyleAxes gives both axes the font.
func StyleAxes(p *plot.Plot) {
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.Label.TextStyle.Font = font.From(Font(), TextSize)
		axis.Tick.Label.Font = font.From(Font(), TextSize)
		axis.Padding = 0
	}
}

// Entry is a line of a legend.
type Entry struct {
	Name   string
	Sample plot.Thumbnailer
}

// DrawLegend draws samples and names beside each other. A font that is wider than ours has room.
func DrawLegend(c draw.Canvas, entries []Entry, width, left, top vg.Length) {
	look := Style()
	for _, e := range entries {
		sample := draw.Crop(c, 0, 0, 0, 0)
		sample.Min, sample.Max = vg.Point{X: left, Y: top - TextSize}, vg.Point{X: left + width, Y: top}
		e.Sample.Thumbnail(&sample)
		c.FillText(look, vg.Point{X: left + width + 4, Y: top}, e.Name)
		left += width + 4 + look.Width(e.Name)*1.25 + 2*Margin
	}
}

// Encode writes a canvas of package vgsvg.
func Encode(w io.Writer, canvas vg.CanvasWriterTo) error {
	var out bytes.Buffer
	if _, err := canvas.WriteTo(&out); err != nil {
		return fmt.Errorf("encode picture: %w", err)
	}
	// The letters of Arial and Helvetica are as wide, and one of the three is everywhere.
	named := bytes.ReplaceAll(out.Bytes(), []byte("font-family:Liberation Sans"), []byte("font-family:Liberation Sans,Arial,Helvetica,sans-serif"))
	if _, err := w.Write(named); err != nil {
		return fmt.Errorf("write picture: %w", err)
	}
	return nil
}
