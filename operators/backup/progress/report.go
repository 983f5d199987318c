package progress

import (
	"encoding/json"
	"fmt"
	"time"
)

const (
	// Port of the pod that the program answers at.
	Port = 8290
	// Every is how often the program is asked, and the least time between two answers that
	// differ.
	Every = 10 * time.Second

	whole = 100
	// maxReport is how many bytes an answer may have.
	maxReport = 1 << 10
)

// Report is how far a tool is. Completion is when it would end if it goes on as fast, absent
// while that is not known.
type Report struct {
	Percent    float64    `json:"percent"`
	Completion *time.Time `json:"completion,omitempty"`
}

// Text is what status says of it.
func (r Report) Text() string { return fmt.Sprintf("%.0f%%", r.Percent) }

// parseReport reads a report. Whatever runs in a pod may have written it.
func parseReport(text []byte) (Report, bool) {
	var out Report
	if json.Unmarshal(text, &out) != nil || out.Percent < 0 || out.Percent > whole {
		return Report{}, false
	}
	return out, true
}
