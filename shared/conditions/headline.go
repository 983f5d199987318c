package conditions

import (
	"strings"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

// maxHeadline is how many characters of a message kubectl get -o wide shows.
const maxHeadline = 80

// Headline returns what kubectl get shows of the object in one word and one short
// line: what a user must fix, else what keeps it from serving, else what keeps
// it from its spec, else what is out of the ordinary. The word is empty when there
// is nothing to tell.
func (s *Set) Headline() (reason, message string) {
	ready, upToDate := s.Get(v1alpha1.ConditionReady), s.Get(v1alpha1.ConditionUpToDate)
	from := ready
	switch {
	case s.Is(v1alpha1.ConditionStalled):
		from = s.Get(v1alpha1.ConditionStalled)
	case ready.Status != metav1.ConditionTrue && ready.Reason != v1alpha1.ReasonSuspended:
	case upToDate.Status != metav1.ConditionTrue:
		from = upToDate
		if ready.Status != metav1.ConditionTrue {
			from.Reason = ready.Reason // suspended, and not all pods have stopped
		}
		if s.Is(v1alpha1.ConditionPaused) {
			from.Reason = v1alpha1.ReasonPaused
		}
	case s.Is(v1alpha1.ConditionPaused) && upToDate.Reason != v1alpha1.ReasonCertificateExpiring: // a pause does not stop time
		from = s.Get(v1alpha1.ConditionPaused)
	case ready.Status != metav1.ConditionTrue:
	case upToDate.Reason != v1alpha1.ReasonUpToDate:
		from = upToDate
	default:
		return "", shortenLine(ready.Message)
	}
	return from.Reason, shortenLine(from.Message)
}

// shortenLine cuts a line at a word, so that it has maxHeadline characters at most.
func shortenLine(message string) string {
	if utf8.RuneCountInString(message) <= maxHeadline {
		return message
	}
	cut := string([]rune(message)[:maxHeadline-1])
	if at := strings.LastIndexByte(cut, ' '); at > 0 {
		cut = cut[:at]
	}
	return strings.TrimRight(trimCutCommand(cut), " ,;:(") + "…"
}
