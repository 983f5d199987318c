package failure

import (
	"bytes"
	"cmp"
	"regexp"
	"strings"
)

// tailBytes is how much of a tool's output is kept to report what it failed of.
const tailBytes = 8 << 10

// Tail keeps the end of what is written to it.
type Tail struct{ text []byte }

// Write implements io.Writer.
func (t *Tail) Write(p []byte) (int, error) {
	t.text = append(t.text, p...)
	if extra := len(t.text) - tailBytes; extra > 0 {
		t.text = append(t.text[:0], t.text[extra:]...)
	}
	return len(p), nil
}

// LastWords are what the tool says that it failed of, and without that its last words. Behind
// that may come a stack.
func (t *Tail) LastWords() string {
	failed := regexp.MustCompile(`(?i)^(dump failed|create dumper failed|.*parse arguments.*failed|parsing arguments.*|tidb lightning encountered error|Error): `)
	words, said := "", ""
	for line := range bytes.Lines(t.text) {
		text := strings.TrimSpace(string(line))
		if text != "" {
			words = text
		}
		if failed.MatchString(text) {
			said = text
		}
	}
	return cmp.Or(said, words)
}
