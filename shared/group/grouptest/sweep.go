package grouptest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tidb-groups/tidb-groups/shared/step"
)

// Arrived is the end of a state that became what its spec asks for.
const Arrived = "arrived"

// complaints bounds what is said about a rule that is broken everywhere.
const complaints = 12

// Space is one part of the states of an exhaustive check: the product of its
// dimensions, which its String tells.
type Space[S any] interface {
	fmt.Stringer
	// Size is the number of states, by arithmetic.
	Size() int
	// Each visits every state.
	Each(visit func(S))
}

// Verdict is what a rule book says of the plan of one state.
type Verdict struct {
	// Acts says that the plan does something.
	Acts bool
	// Wrong are the rules that it breaks.
	Wrong []string
	// Plan in words, for a complaint.
	Plan string
}

// CheckPlans judges the plan of every state, and returns how many there were.
func CheckPlans[S fmt.Stringer, P Space[S]](t *testing.T, kind string, spaces []P, judge func(S) Verdict) int {
	t.Helper()
	total, acting, broken := 0, 0, 0
	for _, space := range spaces {
		checked, bad := 0, 0
		space.Each(func(st S) {
			checked++
			v := judge(st)
			if v.Acts {
				acting++
			}
			if len(v.Wrong) == 0 {
				return
			}
			if bad++; bad <= complaints {
				t.Errorf("%s:\n  %s\n  %s", st, strings.Join(v.Wrong, "\n  "), v.Plan)
			}
		})
		assert.Equal(t, space.Size(), checked)
		assert.Zero(t, bad, "states against a rule: %s", space)
		t.Logf("%s: %d states", space, checked)
		total, broken = total+checked, broken+bad
	}
	assert.NotZero(t, acting)
	t.Logf("exhaustive: %s: %d states planned, in %d of them something is done, %d against a rule", kind, total, acting, broken)
	return total
}

// FollowStates follows every state to its end, and returns how many there were. follow
// says what the end is, after how many reconciles, and what was wrong on the way
// or with the end.
func FollowStates[S fmt.Stringer, P Space[S]](t *testing.T, kind string, spaces []P, follow func(S) (end string, steps int, wrong []string)) int {
	t.Helper()
	total, longest, bad := 0, 0, 0
	ends := map[string]int{}
	for _, space := range spaces {
		checked := 0
		space.Each(func(st S) {
			checked++
			end, steps, wrong := follow(st)
			ends[end]++
			longest = max(longest, steps)
			if len(wrong) == 0 {
				return
			}
			if bad++; bad <= complaints {
				t.Errorf("%s: after %d reconciles: %s: %q", st, steps, end, wrong)
			}
		})
		assert.Equal(t, space.Size(), checked)
		total += checked
	}
	assert.Zero(t, bad)
	assert.NotZero(t, ends[Arrived])
	t.Logf("exhaustive: %s: %d states followed to their end, of at most %d reconciles; ends: %v", kind, total, longest, ends)
	return total
}

// VisitCombinations visits every way to fill so many slots with one of the choices each. What
// is visited is used again.
func VisitCombinations[C any](slots int, choices []C, visit func([]C)) {
	var rec func(filled []C)
	rec = func(filled []C) {
		if len(filled) == slots {
			visit(filled)
			return
		}
		for _, c := range choices {
			rec(append(filled, c))
		}
	}
	rec(make([]C, 0, slots))
}

// CheckOutcome returns what an outcome that is not Done lacks: a known reason, a line for
// a user, and a time to look again. Nothing of an enumeration needs a user.
func CheckOutcome(o step.Outcome, known []string) []string {
	var out []string
	if o.Kind == step.KindStall || o.Kind == step.KindFail {
		out = append(out, "nothing of this needs a user")
	}
	if o.After <= 0 || o.Message == "" || strings.ContainsAny(o.Message, "\r\n") || o.Kind == step.KindWait && o.Source == "" {
		out = append(out, fmt.Sprintf("a bare wait: %+v", o))
	}
	if !slices.Contains(known, o.Reason) {
		out = append(out, fmt.Sprintf("reason %q is none of Ready's", o.Reason))
	}
	return out
}
