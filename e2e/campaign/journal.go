package campaign

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// Journal is the file of finished attempts, a line of JSON each.
type Journal struct {
	mu   sync.Mutex
	file *os.File
	all  []Record
}

// OpenJournal reads a journal and appends to it; one that is missing is made.
// An empty path keeps it in memory alone.
func OpenJournal(path string) (*Journal, error) {
	if path == "" {
		return &Journal{}, nil
	}
	all, err := ReadJournal(path)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return nil, fmt.Errorf("make directory of journal: %w", err)
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	// Ends a line that was cut off; an empty line is passed over.
	if _, err := file.WriteString("\n"); err != nil {
		return nil, fmt.Errorf("write journal: %w", err)
	}
	return &Journal{file: file, all: all}, nil
}

// ReadJournal reads a journal; one that is missing is empty. A last line that
// was cut off, because the campaign was killed, is passed over.
func ReadJournal(path string) ([]Record, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	defer func() { _ = file.Close() }() // it was only read
	var out []Record
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var r Record
		if json.Unmarshal(lines.Bytes(), &r) == nil {
			out = append(out, r)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read journal: %w", err)
	}
	return out, nil
}

// Add adds the record of a finished attempt. It is one write, so that several
// shards may share a journal.
func (j *Journal) Add(r Record) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.all = append(j.all, r)
	if j.file == nil {
		return nil
	}
	line, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encode record: %w", err)
	}
	if _, err := j.file.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	return nil
}

// HasDone says whether an attempt was already made at a commit. One that broke for
// the rig's own reasons is made again.
func (j *Journal) HasDone(commit string, a Attempt) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, r := range j.all {
		if r.Commit == commit && r.Attempt == a && r.Broken == "" {
			return true
		}
	}
	return false
}

// Close closes the file.
func (j *Journal) Close() error {
	if j.file == nil {
		return nil
	}
	return j.file.Close()
}
