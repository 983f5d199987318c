package campaign

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/tidb-groups/tidb-groups/e2e/document"
)

// Sum is what came of all attempts of one campaign on one scenario.
type Sum struct {
	// Campaign and Scenario summed up.
	Campaign string `json:"campaign"`
	Scenario string `json:"scenario"`
	// Commit that was tested.
	Commit string `json:"commit"`
	// Gone says that the commit is not in the history any more: no reader can go back to what
	// was attacked, and the attempts count for no promise. A user writes it.
	Gone bool `json:"gone,omitempty"`
	// Attempts that came by their point, and Missed those that did not.
	Attempts int `json:"attempts"`
	Missed   int `json:"missed"`
	// Broken attempts could not be made.
	Broken int `json:"broken"`
	// Failures is how many attempts found something, and Promises how many
	// found each promise broken.
	Failures int            `json:"failures"`
	Promises map[string]int `json:"promises,omitempty"`
	// Seconds is the time of all attempts together.
	Seconds int `json:"seconds"`
	// Measured is what DELAY measured, by fault.
	Measured map[string]Measured `json:"measured,omitempty"`
}

// Summarize adds records up, by campaign and scenario. Of several records of one
// attempt at one commit the last counts.
func Summarize(records []Record) []Sum {
	type key struct{ campaign, scenario, commit string }
	last := map[string]int{}
	for i, r := range records {
		last[r.Commit+" "+r.Scenario+" "+r.Fault] = i
	}
	sums := map[key]*Sum{}
	for i, r := range records {
		if last[r.Commit+" "+r.Scenario+" "+r.Fault] != i {
			continue
		}
		k := key{r.Campaign, r.Scenario, r.Commit}
		if sums[k] == nil {
			sums[k] = &Sum{Campaign: r.Campaign, Scenario: r.Scenario, Commit: r.Commit, Promises: map[string]int{}}
		}
		sums[k].add(r)
	}
	var out []Sum
	for _, s := range sums {
		out = append(out, *s)
	}
	sortSums(out)
	return out
}

func (s *Sum) add(r Record) {
	s.Seconds += int(r.Took.Seconds() + 0.5)
	if r.Measured != nil && r.Broken == "" {
		if s.Measured == nil {
			s.Measured = map[string]Measured{}
		}
		s.Measured[strings.TrimPrefix(r.Fault, "delay:")] = *r.Measured
	}
	switch {
	case r.Broken != "":
		s.Broken++
		return
	case !r.Struck && len(r.Findings) == 0:
		s.Missed++
		return
	}
	s.Attempts++
	if len(r.Findings) == 0 {
		return
	}
	s.Failures++
	counted := map[string]bool{}
	for _, f := range r.Findings {
		if !counted[f.Promise] {
			s.Promises[f.Promise]++
		}
		counted[f.Promise] = true
	}
}

func sortSums(sums []Sum) {
	slices.SortFunc(sums, func(a, b Sum) int {
		return cmp.Or(cmp.Compare(slices.Index(Names(), a.Campaign), slices.Index(Names(), b.Campaign)),
			cmp.Compare(a.Scenario, b.Scenario), cmp.Compare(a.Commit, b.Commit))
	})
}

// promise is attempts and failures of one promise.
type promise struct {
	id                 string
	attempts, failures int
	campaigns          []string
}

// sumByPromise adds sums up by promise.
func sumByPromise(sums []Sum) []promise {
	var out []promise
	for n := 1; n <= 12; n++ {
		p := promise{id: fmt.Sprintf("P%d", n)}
		for _, s := range sums {
			if s.Gone || !slices.Contains(listTestedPromises(s.Campaign), p.id) && s.Promises[p.id] == 0 {
				continue
			}
			p.attempts += s.Attempts
			p.failures += s.Promises[p.id]
			if s.Attempts > 0 && !slices.Contains(p.campaigns, s.Campaign) {
				p.campaigns = append(p.campaigns, s.Campaign)
			}
		}
		if p.attempts > 0 {
			out = append(out, p)
		}
	}
	return out
}

// RenderTables renders the sums as the tables of docs/reliability.md.
func RenderTables(sums []Sum) string {
	var out strings.Builder
	out.WriteString("| promise | attempts to break it | failures | campaigns |\n|---|---|---|---|\n")
	for _, p := range sumByPromise(sums) {
		fmt.Fprintf(&out, "| %s | %d | %d | %s |\n", p.id, p.attempts, p.failures, strings.Join(p.campaigns, ", "))
	}
	out.WriteString("\n| campaign | scenario | attempts | failures | point not met | could not be made | minutes | commit |\n|---|---|---|---|---|---|---|---|\n")
	for _, s := range sums {
		commit := s.Commit
		if s.Gone {
			commit += ", which is gone"
		}
		fmt.Fprintf(&out, "| %s | %s | %d | %d | %d | %d | %d | %s |\n",
			s.Campaign, s.Scenario, s.Attempts, s.Failures, s.Missed, s.Broken, (s.Seconds+30)/60, commit)
	}
	return out.String() + delayTable(sums)
}

// delayTable renders what DELAY measured; nothing if it has not.
func delayTable(sums []Sum) string {
	var out strings.Builder
	for _, s := range sums {
		for _, what := range sortedKeys(s.Measured) {
			if out.Len() == 0 {
				out.WriteString("\nHow long an edit of another namespace waits for its operator's answer in status, beside a neighbour that does no harm and beside the same one that does, in turns; and for how much of that (p99) the API server, which all share, had not shown the edit:\n\n" +
					"| neighbour | edits of each | median | median beside it | p99 | p99 beside it | ratio | API server | API server beside it | ratio | machine | commit |\n|---|---|---|---|---|---|---|---|---|---|---|---|\n")
			}
			m := s.Measured[what]
			fmt.Fprintf(&out, "| %s | %d | %d ms | %d ms | %d ms | %d ms | %.2f | %d ms | %d ms | %.2f | %s | %s |\n", what, m.Beside.Edits,
				m.Quiet.Median.Milliseconds(), m.Beside.Median.Milliseconds(), m.Quiet.P99.Milliseconds(), m.Beside.P99.Milliseconds(), m.Beside.P99.Seconds()/m.Quiet.P99.Seconds(),
				m.SeenQuiet.P99.Milliseconds(), m.SeenBeside.P99.Milliseconds(), m.SeenBeside.P99.Seconds()/m.SeenQuiet.P99.Seconds(), m.Machine, s.Commit)
		}
	}
	return out.String()
}

// writer is the command that writes the tables.
const writer = "make campaign CAMPAIGN=-write"

// Write puts new sums beside those that a file has, in place of those of the same
// campaign and scenario that are of the same commit or no larger: a sample does not
// replace a sweep. It writes the tables of all of them into a page.
func Write(sums []Sum, file, page string) error {
	var kept []Sum
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &kept)
	}
	if err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("read %s: %w", file, err)
	}
	kept = slices.DeleteFunc(kept, func(old Sum) bool {
		return slices.ContainsFunc(sums, func(s Sum) bool {
			return s.Campaign == old.Campaign && s.Scenario == old.Scenario && (s.Commit == old.Commit || s.Attempts >= old.Attempts)
		})
	})
	kept = append(kept, sums...)
	sortSums(kept)
	if text, err = json.MarshalIndent(kept, "", "  "); err != nil {
		return fmt.Errorf("encode %s: %w", file, err)
	}
	if err := os.WriteFile(file, append(text, '\n'), 0o644); err != nil { //nolint:gosec // a file of the repository
		return fmt.Errorf("write %s: %w", file, err)
	}
	return document.Write(page, writer, RenderTables(kept))
}
