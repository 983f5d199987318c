package question

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// FirstAnswers bounds how long groups wait for the first answers of their members. Its methods
// may not be used concurrently.
type FirstAnswers struct {
	timeout time.Duration
	since   map[types.NamespacedName]time.Time
}

// NewFirstAnswers returns the waits of groups that have a timeout.
func NewFirstAnswers(timeout time.Duration) *FirstAnswers {
	return &FirstAnswers{timeout: timeout, since: map[types.NamespacedName]time.Time{}}
}

// MustWait reports whether a group still has to wait, while answers are missing.
func (f *FirstAnswers) MustWait(group types.NamespacedName, missing bool, now time.Time) bool {
	if !missing {
		delete(f.since, group)
		return false
	}
	since, waits := f.since[group]
	if !waits {
		since = now
		f.since[group] = now
	}
	return now.Sub(since) < f.timeout
}

// Forget forgets a group.
func (f *FirstAnswers) Forget(group types.NamespacedName) { delete(f.since, group) }
