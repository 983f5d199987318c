// Package results keeps what workloads have seen under scenarios, a file each beside its picture, and
// writes their figures into docs.
package results

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tidb-groups/tidb-groups/e2e/document"
	"github.com/tidb-groups/tidb-groups/e2e/workload"
	"github.com/tidb-groups/tidb-groups/e2e/workload/picture"
	"github.com/tidb-groups/tidb-groups/shared/testkit/binaries"
)

// Result is what a workload has seen under one scenario.
type Result struct {
	// Scenario by name.
	Scenario string `json:"scenario"`
	// Commit that was tested.
	Commit string `json:"commit"`
	// Report of the workload.
	Report workload.Report `json:"report"`
}

// Dir is where results are kept, in the cache of the test kit.
func Dir() (string, error) {
	cache, err := binaries.CacheDir()
	if err != nil {
		return "", fmt.Errorf("find a place for results: %w", err)
	}
	return filepath.Join(cache, "workload"), nil
}

// Save keeps a result and its picture, in place of an earlier one of the scenario, and returns the files.
func Save(dir string, r Result) (report, drawing string, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // nothing in it is secret
		return "", "", fmt.Errorf("make room for results: %w", err)
	}
	report, drawing = filepath.Join(dir, r.Scenario+".json"), filepath.Join(dir, r.Scenario+".svg")
	return report, drawing, errors.Join(WriteJSON(report, r), Draw(drawing, r.Report))
}

// WriteJSON writes a value into a file as JSON.
func WriteJSON(file string, value any) error {
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return fmt.Errorf("encode %s: %w", file, err)
	}
	return writeFile(file, append(text, '\n'))
}

// Draw writes the picture of a report into a file.
func Draw(file string, r workload.Report) error {
	var out bytes.Buffer
	if err := picture.Draw(&out, r); err != nil {
		return err
	}
	return writeFile(file, out.Bytes())
}

func writeFile(file string, text []byte) error {
	if err := os.WriteFile(file, text, 0o644); err != nil { //nolint:gosec // nothing in it is secret
		return fmt.Errorf("write %s: %w", file, err)
	}
	return nil
}

// Load reads the results of a commit.
func Load(dir, commit string) ([]Result, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, fmt.Errorf("list results: %w", err)
	}
	var out []Result
	for _, file := range files {
		text, err := os.ReadFile(filepath.Clean(file))
		if err != nil {
			return nil, fmt.Errorf("read result: %w", err)
		}
		var r Result
		if err := json.Unmarshal(text, &r); err != nil {
			return nil, fmt.Errorf("read result %s: %w", file, err)
		}
		if r.Commit == commit {
			out = append(out, r)
		}
	}
	return out, nil
}

// Figures are what docs keep of a result.
type Figures struct {
	// Scenario, Commit and Server that were tested.
	Scenario string `json:"scenario"`
	Commit   string `json:"commit"`
	Server   string `json:"server"`
	// Operations in their order.
	Operations []workload.Operation `json:"operations"`
}

// RenderTable renders figures as the table of docs/reliability.md.
func RenderTable(all []Figures) string {
	var out strings.Builder
	out.WriteString("| scenario | operation | time | statements | failed | failed on long connections | connections refused | longest pause | rows acknowledged | rows lost | commit |\n" +
		"|---|---|---|---|---|---|---|---|---|---|---|\n")
	for _, f := range all {
		for _, o := range f.Operations {
			fmt.Fprintf(&out, "| %s | %s | %s | %d | %d | %d | %d | %s | %d | %d | %s |\n", f.Scenario, o.Name, o.Took.Round(time.Second/10),
				o.Statements, o.Failed, o.FailedLong, o.Refused, o.Pause.Round(time.Millisecond), o.Acknowledged, o.Lost, f.Commit)
		}
	}
	for _, f := range all {
		fmt.Fprintf(&out, "\n![Latency, errors and Events of scenario %s](pictures/%s)\n", f.Scenario, drawingName(f.Scenario))
	}
	return out.String()
}

func drawingName(scenario string) string { return "database-" + scenario + ".svg" }

// Where the figures stand in docs.
const (
	writer  = "go -C e2e run ./cmd/workload -write"
	heading = "On a real database"
	before  = "A hundred clusters at once"
)

// Write puts the figures of results beside those that docs have, in place of those of the same scenario, and
// their pictures: into reliability-database.json, reliability.md and pictures of a folder of docs.
func Write(docs string, all []Result) error {
	file := filepath.Join(docs, "reliability-database.json")
	var kept []Figures
	text, err := os.ReadFile(filepath.Clean(file))
	if err == nil {
		err = json.Unmarshal(text, &kept)
	}
	if err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("read %s: %w", file, err)
	}
	for _, r := range all {
		kept = slices.DeleteFunc(kept, func(old Figures) bool { return old.Scenario == r.Scenario })
		kept = append(kept, Figures{Scenario: r.Scenario, Commit: r.Commit, Server: r.Report.Server, Operations: r.Report.Operations})
		if err := Draw(filepath.Join(docs, "pictures", drawingName(r.Scenario)), r.Report); err != nil {
			return err
		}
	}
	slices.SortFunc(kept, func(a, b Figures) int { return cmp.Compare(a.Scenario, b.Scenario) })
	if err := WriteJSON(file, kept); err != nil {
		return err
	}
	return document.WriteSection(filepath.Join(docs, "reliability.md"), heading, before, writer, RenderTable(kept))
}
