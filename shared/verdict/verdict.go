package verdict

import (
	"cmp"
	"fmt"
)

// Verdict says whether something may be done, and if not, why. The zero Verdict refuses, so
// that what was forgotten to be judged is not done.
type Verdict struct {
	allowed bool
	reason  string
}

// unjudged is the reason of the zero Verdict.
const unjudged = "it has not been judged whether that is safe"

// Allow says that it may be done.
func Allow() Verdict { return Verdict{allowed: true} }

// Refuse says why it must not be done, for a user who reads it in a condition.
func Refuse(reason string) Verdict { return Verdict{reason: reason} }

// Refusef is Refuse with a format of package fmt.
func Refusef(format string, args ...any) Verdict { return Refuse(fmt.Sprintf(format, args...)) }

// RefuseIf refuses for a problem; it allows if there is none.
func RefuseIf(problem string) Verdict {
	if problem == "" {
		return Allow()
	}
	return Refuse(problem)
}

// RequireAll returns the first of several that refuses; it allows if each does.
func RequireAll(first Verdict, others ...Verdict) Verdict {
	for _, v := range append([]Verdict{first}, others...) {
		if !v.allowed {
			return v
		}
	}
	return Allow()
}

// IsAllowed reports whether it may be done.
func (v Verdict) IsAllowed() bool { return v.allowed }

// Reason says why it must not be done; empty if it may.
func (v Verdict) Reason() string {
	if v.allowed {
		return ""
	}
	return cmp.Or(v.reason, unjudged)
}
