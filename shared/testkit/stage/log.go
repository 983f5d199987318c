package stage

import (
	"bytes"
	"strings"
	"sync"
)

// Log keeps what is logged. It may be read while it is written.
type Log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// Len returns how much has been logged, in bytes.
func (l *Log) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Len()
}

// TextAfter returns what has been logged after the first n bytes.
func (l *Log) TextAfter(n int) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.text.Bytes()[n:])
}

// LinesAbout returns the lines that mention a text.
func (l *Log) LinesAbout(text string) string {
	var out []string
	for line := range strings.Lines(l.TextAfter(0)) {
		if strings.Contains(line, text) {
			out = append(out, line)
		}
	}
	return strings.Join(out, "")
}
