package bench

import "fmt"

// tolerated is how much more than before is still the same: counts differ a little from
// run to run.
const tolerated = 1.10

// LastRun returns the last run that a performance.json has.
func LastRun(file string) (Run, error) {
	runs, err := readRuns(file)
	if err != nil {
		return Run{}, err
	}
	last := lastMeasured(append([]Run{{}}, runs...))
	if len(last.Results) == 0 {
		return Run{}, fmt.Errorf("%s has no run with figures", file)
	}
	return last, nil
}

// Comparison is a count before and after.
type Comparison struct {
	Clusters int `json:"-"`
	// What was counted.
	What string `json:"what"`
	// Base is before, Now is after.
	Base float64 `json:"base"`
	Now  float64 `json:"now"`
	// Regression says that it grew by more than is tolerated.
	Regression bool `json:"-"`
}

// String tells it on a line.
func (c Comparison) String() string {
	mark := ""
	if c.Regression {
		mark = "  worse"
	}
	return fmt.Sprintf("%4d clusters  %-30s %8.1f -> %8.1f  × %.2f%s", c.Clusters, c.What, c.Base, c.Now, c.Now/max(c.Base, 1), mark)
}

// Compare compares the counts of two runs of the same machine; times are left out, as they
// are those of a moment.
func Compare(base, now Run) ([]Comparison, error) {
	if base.Machine != now.Machine {
		return nil, fmt.Errorf("the base ran on %q, and this machine is %q: run both on one", base.Machine, now.Machine)
	}
	var out []Comparison
	for _, after := range now.Results {
		for _, before := range base.Results {
			if before.Clusters != after.Clusters {
				continue
			}
			out = append(out, compareCounts(before, after)...)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("the base and this run have no number of clusters in common")
	}
	return out, nil
}

// compareCounts compares what is counted for each cluster of two results.
func compareCounts(before, after Result) []Comparison {
	var out []Comparison
	n := float64(after.Clusters)
	for _, c := range []struct {
		what      string
		base, now int
		held      bool
	}{
		{"writes", before.Start.Writes, after.Start.Writes, true},
		{"reads", before.Start.Reads, after.Start.Reads, true},
		{"reconciles", before.Start.reconciled(), after.Start.reconciled(), false},
	} {
		found := Comparison{Clusters: after.Clusters, What: c.what, Base: float64(c.base) / n, Now: float64(c.now) / n}
		found.Regression = c.held && found.Now > found.Base*tolerated
		out = append(out, found)
	}
	return out
}

// reconciled is how often all operators reconciled.
func (c Cost) reconciled() int {
	out := 0
	for _, n := range c.ofOperators() {
		out += n
	}
	return out
}
