package progress

import (
	"bytes"
	"encoding/json"
	"net/http"
	"regexp"
	"strconv"
	"sync"
	"time"
)

// maxLine is how much of a line without an end is kept.
const maxLine = 64 << 10

// Meter reads the log of a tool, and answers requests with what that last said.
type Meter struct {
	// Now tells the time.
	Now func() time.Time

	mu       sync.Mutex
	line     []byte
	begun    time.Time
	told     time.Time
	last     Report
	known    bool
	progress *regexp.Regexp
}

// NewMeter returns the meter of a tool that begins now.
func NewMeter(now func() time.Time) *Meter {
	// Dumpling calls it "chunks progress", TiDB Lightning total and BR progress.
	return &Meter{Now: now, begun: now(), progress: regexp.MustCompile(`\[progress\].* ?\["?(?:chunks progress|total|progress)"?="? *([0-9]{1,3}(?:\.[0-9]+)?) ?%`)}
}

// Write takes a part of the log.
func (m *Meter) Write(p []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.line = append(m.line, p...)
	for {
		end := bytes.IndexByte(m.line, '\n')
		if end < 0 {
			break
		}
		m.readLine(m.line[:end])
		m.line = m.line[end+1:]
	}
	if len(m.line) > maxLine {
		m.line = nil
	}
	return len(p), nil
}

// readLine reads a line.
func (m *Meter) readLine(line []byte) {
	found := m.progress.FindSubmatch(line)
	now := m.Now()
	if found == nil || m.known && now.Sub(m.told) < Every {
		return
	}
	percent, err := strconv.ParseFloat(string(found[1]), 64)
	if err != nil || percent > whole {
		return
	}
	m.last, m.known, m.told = Report{Percent: percent}, true, now
	if percent > 0 {
		left := time.Duration(float64(now.Sub(m.begun)) * (whole - percent) / percent)
		at := now.Add(left).UTC().Truncate(time.Second)
		m.last.Completion = &at
	}
}

// ServeHTTP answers with a Report, or with 404 while there is none.
func (m *Meter) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	m.mu.Lock()
	last, known := m.last, m.known
	m.mu.Unlock()
	if !known {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(last) // the client has gone
}
