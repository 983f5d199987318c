package tree

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Colours of the states for a terminal, by ANSI code.
const (
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	red    = "\x1b[31m"
	faint  = "\x1b[2m"
	reset  = "\x1b[0m"
)

// Style says how to draw.
type Style struct {
	// Colour uses ANSI colours.
	Colour bool
	// Width of a line at most, in characters; 0 means no limit.
	Width int
}

// line is a line of the drawing, in parts.
type line struct {
	node        *Node
	title, rest string
}

// Draw draws trees as text.
func Draw(nodes []*Node, style Style) string {
	var lines []line
	for _, n := range nodes {
		lines = collectLines(lines, n, "", "")
	}
	column := 0
	for _, l := range lines {
		column = max(column, utf8.RuneCountInString(l.title))
	}
	var out strings.Builder
	for _, l := range lines {
		text := l.title
		if l.rest != "" {
			text += strings.Repeat(" ", column-utf8.RuneCountInString(l.title)+2) + l.rest
		}
		text = truncateLine(text, style.Width)
		if style.Colour {
			text = colourLine(text, l.node)
		}
		out.WriteString(strings.TrimRight(text, " ") + "\n")
	}
	return out.String()
}

func collectLines(lines []line, n *Node, first, rest string) []line {
	words := strings.Join(n.Facts, "  ")
	if n.Why != "" {
		words = strings.TrimSpace(words + "  ← " + n.Why)
	}
	lines = append(lines, line{node: n, title: first + n.title(), rest: words})
	for i, child := range n.Children {
		if i == len(n.Children)-1 {
			lines = collectLines(lines, child, rest+"└─ ", rest+"   ")
		} else {
			lines = collectLines(lines, child, rest+"├─ ", rest+"│  ")
		}
	}
	return lines
}

// truncateLine shortens a line to a width.
func truncateLine(text string, width int) string {
	if width <= 0 || utf8.RuneCountInString(text) <= width {
		return text
	}
	return string([]rune(text)[:width-1]) + "…"
}

// colourLine colours the mark of a line and fades the branches before it.
func colourLine(text string, n *Node) string {
	sign := n.State.sign()
	before, after, found := strings.Cut(text, sign)
	if !found {
		return text
	}
	colour := map[State]string{Good: green, Serving: yellow, Waiting: yellow, Stuck: red}[n.State]
	return fmt.Sprintf("%s%s%s%s%s%s%s", faint, before, reset, colour, sign, reset, after)
}
