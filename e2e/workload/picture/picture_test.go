package picture_test

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/e2e/workload"
	"github.com/tidb-groups/tidb-groups/e2e/workload/picture"
)

// drawn returns the texts of the picture of a report.
func drawn(t *testing.T, r workload.Report) []string {
	t.Helper()
	var out strings.Builder
	require.NoError(t, picture.Draw(&out, r))
	var texts []string
	decoder, inText := xml.NewDecoder(strings.NewReader(out.String())), false
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return texts
		}
		require.NoError(t, err)
		switch part := token.(type) {
		case xml.StartElement:
			inText = part.Name.Local == "text"
			for _, a := range part.Attr {
				assert.NotContains(t, a.Value, "NaN")
			}
		case xml.CharData:
			if inText {
				texts = append(texts, string(part))
			}
		case xml.EndElement:
			inText = false
		}
	}
}

func lasting(d time.Duration) metav1.Duration { return metav1.Duration{Duration: d} }

func TestAPictureShowsEveryOperationAndEvent(t *testing.T) {
	begin := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	r := workload.Report{
		Server: "8.0.11-TiDB-v8.5.0", Started: begin, Took: lasting(100 * time.Second),
		Failures: []workload.Failure{{Due: begin.Add(20 * time.Second), Took: lasting(30 * time.Second), Error: "x"}},
		Operations: []workload.Operation{
			{Name: "roll TiKV", Started: begin.Add(10 * time.Second), Took: lasting(30 * time.Second), Statements: 900, Failed: 1, FailedLong: 2, Pause: lasting(1234 * time.Millisecond)},
			{Name: "add <a> store", Started: begin.Add(41 * time.Second), Took: lasting(time.Millisecond), Lost: 3},
		},
		Marks: []workload.Mark{{At: begin.Add(11 * time.Second), Row: "DisruptionBegun"}, {At: begin.Add(12 * time.Second), Row: "DisruptionBegun"}},
	}
	for i := range 100 {
		if i < 30 || i > 40 {
			r.Seconds = append(r.Seconds, workload.Second{Second: i, Succeeded: 40, Median: 2, Longest: float64(10 * (i + 1))})
		}
	}
	r.Seconds[20].Failed = 1
	texts := drawn(t, r)
	for _, want := range []string{
		"1  roll TiKV: 30s, 900 statements, 1 failed and 2 on long connections, longest pause 1.234s, lost rows 0",
		"2  add <a> store: 0s, 0 statements, 0 failed, longest pause 0s, lost rows 3",
		"1", "2", "DisruptionBegun (2)", "1 ms", "10 s", "1:30", "failed",
	} {
		assert.Contains(t, texts, want)
	}
	assert.NotContains(t, texts, "connections refused", "what did not happen has no line")
}

func TestAPictureOfNothingIsEmpty(t *testing.T) {
	assert.NotContains(t, drawn(t, workload.Report{}), "Events")
}

func TestEventsOfManyReasonsHaveFewRows(t *testing.T) {
	r := workload.Report{Took: lasting(time.Minute)}
	for i := range 20 {
		for range 20 - i {
			r.Marks = append(r.Marks, workload.Mark{At: r.Started, Row: fmt.Sprint("Reason", i)})
		}
	}
	texts := drawn(t, r)
	assert.Contains(t, texts, "Reason0 (20)")
	assert.Contains(t, texts, "others (45)")
	assert.NotContains(t, texts, "Reason11 (9)")
}
