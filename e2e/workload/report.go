package workload

import (
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Report is what a workload has seen, as data. Durations are text, as "1.25s".
type Report struct {
	// Server is the version that it says.
	Server string `json:"server"`
	// Started and Took say when the workload ran.
	Started time.Time       `json:"started"`
	Took    metav1.Duration `json:"took"`
	// Sessions of each kind.
	Sessions map[string]int `json:"sessions"`
	// Whole is the time from start to end as one operation.
	Whole Operation `json:"whole"`
	// Operations in their order.
	Operations []Operation `json:"operations,omitempty"`
	// Findings are what was not as it has to be: nothing else makes a workload fail.
	Findings []Finding `json:"findings,omitempty"`
	// Notes are checks that the server did not know.
	Notes []string `json:"notes,omitempty"`
	// Failures are the failed statements, the first thousand of them.
	Failures []Failure `json:"failures,omitempty"`
	// Pauses of sessions that were long enough to be listed.
	Pauses []Pause `json:"pauses,omitempty"`
	// Gaps are as long times without a success of any session.
	Gaps []Pause `json:"gaps,omitempty"`
	// Refusals are connections that were refused, the first thousand of them.
	Refusals []Refusal `json:"refusals,omitempty"`
	// Seconds tell the statements second by second, from the start. A second in which none
	// ended is left out.
	Seconds []Second `json:"seconds,omitempty"`
	// Marks are what else happened meanwhile, as Events of operators.
	Marks []Mark `json:"marks,omitempty"`
}

// Operation is what was seen while something was done to the database, and until every session
// has had a success after that. A statement and a pause belong to each operation whose time they share.
type Operation struct {
	// Name of what was done.
	Name string `json:"name"`
	// Started and Took say when.
	Started time.Time       `json:"started"`
	Took    metav1.Duration `json:"took"`
	// Statements that ended.
	Statements int `json:"statements"`
	// Failed statements on connections that were renewed in time, and FailedLong on long ones.
	Failed     int `json:"failed"`
	FailedLong int `json:"failedLong"`
	// Refused connections; each was tried again.
	Refused int `json:"refused"`
	// Reconnections are connections that the server had closed before a statement was sent.
	Reconnections int `json:"reconnections"`
	// Pause is the longest of any session.
	Pause metav1.Duration `json:"pause"`
	// Gap is the longest time without a success of any session.
	Gap metav1.Duration `json:"gap"`
	// Acknowledged rows up to the operation's end, and ReadBack how many rows were read then: rows whose statement
	// failed may be among these.
	Acknowledged int `json:"acknowledged"`
	ReadBack     int `json:"readBack"`
	// Lost rows were acknowledged and not read back, for the first time at this operation's end.
	Lost int `json:"lost"`
	// Findings from its begin to the check at its end.
	Findings int `json:"findings"`
}

// Finding is something that is not as it has to be.
type Finding struct {
	// At is when it was noticed.
	At time.Time `json:"at"`
	// What it is.
	What string `json:"what"`
}

// Failure is a failed statement.
type Failure struct {
	// Session and its Kind; Long is whether its connection was a long one.
	Session int    `json:"session"`
	Kind    string `json:"kind"`
	Long    bool   `json:"long,omitempty"`
	// Due is when it was to be sent, and Took how long it was until the error.
	Due  time.Time       `json:"due"`
	Took metav1.Duration `json:"took"`
	// Error that it ended with.
	Error string `json:"error"`
}

// Pause is a time without a success.
type Pause struct {
	// Session and its Kind, none in particular for a gap.
	Session int    `json:"session"`
	Kind    string `json:"kind,omitempty"`
	// Began and Took say when.
	Began time.Time       `json:"began"`
	Took  metav1.Duration `json:"took"`
}

// Refusal is a connection that could not be had.
type Refusal struct {
	// At is when.
	At time.Time `json:"at"`
	// Session that wanted it.
	Session int `json:"session"`
	// Error that it ended with.
	Error string `json:"error"`
}

// Second is what ended in one second.
type Second struct {
	// Second since the start.
	Second int `json:"second"`
	// Succeeded and Failed statements, and Refused connections.
	Succeeded int `json:"succeeded"`
	Failed    int `json:"failed,omitempty"`
	Refused   int `json:"refused,omitempty"`
	// Median and Longest latency of those that succeeded, milliseconds.
	Median  float64 `json:"median"`
	Longest float64 `json:"longest"`
}

// Mark is something that happened at a moment.
type Mark struct {
	// At is when.
	At time.Time `json:"at"`
	// Row of the picture that it stands in, as the reason of an Event.
	Row string `json:"row"`
	// Text says more.
	Text string `json:"text,omitempty"`
}

// Bad returns every finding as an error, nil if there is none.
func (r Report) Bad() error {
	var out []error
	for _, f := range r.Findings {
		out = append(out, fmt.Errorf("%s: %s", f.At.UTC().Format("15:04:05.000"), f.What))
	}
	return errors.Join(out...)
}

func roundDuration(d time.Duration) metav1.Duration {
	return metav1.Duration{Duration: d.Round(time.Millisecond)}
}
