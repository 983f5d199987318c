package verdict

import "fmt"

// Reason is why something is to be done, or what is found to be wrong: that a member needs a
// restart, that it is dead. The zero Reason is that there is none.
type Reason struct {
	given bool
	text  string
}

// NewReason is a Reason, for a user who reads it in a condition.
func NewReason(text string) Reason { return Reason{given: true, text: text} }

// NewReasonf is Because with a format of package fmt.
func NewReasonf(format string, args ...any) Reason { return NewReason(fmt.Sprintf(format, args...)) }

// WhyNot is the Reason of a Verdict that refuses; none of one that allows.
func (v Verdict) WhyNot() Reason {
	if v.allowed {
		return Reason{}
	}
	return NewReason(v.Reason())
}

// IsGiven reports whether there is a reason.
func (r Reason) IsGiven() bool { return r.given }

// Text is the reason as a user reads it.
func (r Reason) Text() string { return r.text }
