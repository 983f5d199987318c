package binaries

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// interval is how often a build says how far it is.
const interval = 15 * time.Second

// complaintLines is how many of a failed build's last lines are shown.
const complaintLines = 20

// Progress reads what "go build -v" prints: the packages that it compiles, which
// are counted, and complaints, of which the last lines are kept.
type Progress struct {
	out   io.Writer
	name  string
	total int
	ended chan struct{}

	lock     sync.Mutex
	rest     []byte // of a line that has not ended
	compiled int
	other    []string
}

// Watch begins to count, and says every 15 seconds how far the build of name is, which
// compiles total packages at most; 0 if that is not known. Stop ends it.
func Watch(out io.Writer, name string, total int) *Progress {
	p := &Progress{out: out, name: name, total: total, ended: make(chan struct{})}
	go p.printPeriodically(time.NewTicker(interval), time.Now())
	return p
}

func (p *Progress) printPeriodically(ticker *time.Ticker, began time.Time) {
	defer ticker.Stop()
	for {
		select {
		case <-p.ended:
			return
		case <-ticker.C:
			// Progress that cannot be shown must not stop the work.
			_, _ = fmt.Fprintln(p.out, p.line(time.Since(began)))
		}
	}
}

// line says how far the build is.
func (p *Progress) line(elapsed time.Duration) string {
	p.lock.Lock()
	defer p.lock.Unlock()
	if p.total == 0 {
		return fmt.Sprintf("  %s: %d packages compiled after %s", p.name, p.compiled, FormatDuration(elapsed))
	}
	return fmt.Sprintf("  %s: %d of at most %d packages compiled after %s", p.name, p.compiled, p.total, FormatDuration(elapsed))
}

// Write takes what the compiler prints.
func (p *Progress) Write(text []byte) (int, error) {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.rest = append(p.rest, text...)
	for {
		line, after, found := bytes.Cut(p.rest, []byte("\n"))
		if !found {
			return len(text), nil
		}
		p.rest = after
		p.readLine(string(line))
	}
}

// readLine reads one line: a package is a path without a blank in it.
func (p *Progress) readLine(line string) {
	if line != "" && !strings.ContainsAny(line, " \t:") {
		p.compiled++
		return
	}
	p.other = append(p.other, line)
	if over := len(p.other) - complaintLines; over > 0 {
		p.other = p.other[over:]
	}
}

// Complaints are the last lines that named no package.
func (p *Progress) Complaints() string {
	p.lock.Lock()
	defer p.lock.Unlock()
	return strings.TrimSpace(strings.Join(append(p.other, string(p.rest)), "\n"))
}

// Stop ends it.
func (p *Progress) Stop() { close(p.ended) }

// FormatDuration writes a time as a user says it: 40 s, 4 min, 1 min 20 s.
func FormatDuration(d time.Duration) string {
	d = d.Round(time.Second)
	minutes, seconds := d/time.Minute, d%time.Minute/time.Second
	switch {
	case minutes == 0:
		return fmt.Sprintf("%d s", seconds)
	case seconds == 0:
		return fmt.Sprintf("%d min", minutes)
	}
	return fmt.Sprintf("%d min %d s", minutes, seconds)
}
