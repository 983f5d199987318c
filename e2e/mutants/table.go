package mutants

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// widest is how much of what a test said is shown.
const widest = 110

// WriteTable writes the verdicts for a user, and how many mutants were caught.
func WriteTable(out io.Writer, verdicts []Verdict) (caught int, err error) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, err = fmt.Fprintln(w, "mutant\tpromise\tcaught by\ttime\twhat it said")
	for _, v := range verdicts {
		said := v.Said
		if v.Caught {
			caught++
		} else {
			said = v.Why
		}
		if err == nil {
			_, err = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", v.Mutant.Name, v.Mutant.Promise, v.By(), v.Took.Round(100*time.Millisecond), shortenOutput(said, v.Caught))
		}
	}
	if err == nil {
		err = w.Flush()
	}
	if err == nil {
		_, err = fmt.Fprintf(out, "%d mutants, %d caught\n", len(verdicts), caught)
	}
	return caught, err
}

// shortenOutput cuts what a test said; a path that a user needs is never cut.
func shortenOutput(said string, cut bool) string {
	said = strings.Join(strings.Fields(said), " ")
	if !cut || len(said) <= widest {
		return said
	}
	return strings.ToValidUTF8(said[:widest], "") + "…"
}
