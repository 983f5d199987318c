package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/tidb-groups/tidb-groups/deploy/tree"
)

// screen shows a tree that changes: in place on a terminal, elsewhere one line
// for each object that changed.
type screen struct {
	out  *os.File
	live bool
	// lines drawn last, to be drawn over.
	lines int
	// said is what was said last of each object.
	said map[string]string
}

func newScreen(out *os.File) *screen {
	return &screen{out: out, live: term.IsTerminal(int(out.Fd())), said: map[string]string{}}
}

// draw shows the trees as they are, elapsed after they were applied.
func (s *screen) draw(nodes []*tree.Node, elapsed time.Duration) {
	clock := fmt.Sprintf("%6.1f s", elapsed.Seconds())
	if !s.live {
		s.log(nodes, clock)
		return
	}
	width, _, err := term.GetSize(int(s.out.Fd()))
	if err != nil {
		width = 120
	}
	text := clock + "\n" + tree.Draw(nodes, tree.Style{Colour: true, Width: width})
	if s.lines > 0 {
		// Up to where the last drawing began, and clear from there.
		text = fmt.Sprintf("\x1b[%dA\x1b[J", s.lines) + text
	}
	s.lines = strings.Count(text, "\n")
	_, _ = fmt.Fprint(s.out, text)
}

// log prints a line for each object of which there is something new to say.
func (s *screen) log(nodes []*tree.Node, clock string) {
	for _, n := range nodes {
		first, _, _ := strings.Cut(tree.Draw([]*tree.Node{{Kind: n.Kind, Name: n.Name, State: n.State, Facts: n.Facts, Why: n.Why}}, tree.Style{}), "\n")
		if key := n.Kind + "/" + n.Name; s.said[key] != first {
			s.said[key] = first
			_, _ = fmt.Fprintf(s.out, "%s  %s\n", clock, first)
		}
		s.log(n.Children, clock)
	}
}
