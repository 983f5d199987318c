// Package overlay builds the tree with some of its text replaced, and changes
// nothing of the tree: the go command is given the changed files.
package overlay

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Edit replaces a piece of text in a file of the tree.
type Edit struct {
	// File from the root of the tree, with slashes.
	File string `json:"file"`
	// Old occurs exactly once in the file.
	Old string `json:"old"`
	// New takes its place.
	New string `json:"new"`
}

// Apply returns the changed files' content, by their path from the root. An edit
// that does not fit, or changes nothing, is an error.
func Apply(root string, edits []Edit) (map[string]string, error) {
	out := map[string]string{}
	for _, e := range edits {
		text, again := out[e.File]
		if !again {
			raw, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(e.File)))
			if err != nil {
				return nil, fmt.Errorf("read what is to be changed: %w", err)
			}
			text = string(raw)
		}
		if n := strings.Count(text, e.Old); n != 1 {
			return nil, fmt.Errorf("%s has the old text %d times and not once: %q", e.File, n, e.Old)
		}
		if e.Old == e.New {
			return nil, fmt.Errorf("the edit of %s changes nothing", e.File)
		}
		out[e.File] = strings.Replace(text, e.Old, e.New, 1)
	}
	return out, nil
}

// Write writes changed files, by their path from the root, below dir and returns
// the file that tells the go command about them: its flag -overlay.
func Write(root, dir string, changed map[string]string) (string, error) {
	table := struct{ Replace map[string]string }{map[string]string{}}
	for file, text := range changed {
		to := filepath.Join(dir, strings.ReplaceAll(file, "/", "_"))
		if err := os.WriteFile(to, []byte(text), 0o600); err != nil {
			return "", fmt.Errorf("write changed file: %w", err)
		}
		table.Replace[filepath.Join(root, filepath.FromSlash(file))] = to
	}
	raw, err := json.Marshal(table)
	if err != nil {
		return "", fmt.Errorf("encode overlay: %w", err)
	}
	out := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(out, raw, 0o600); err != nil {
		return "", fmt.Errorf("write overlay: %w", err)
	}
	return out, nil
}

// flags are those of the Makefile: with others all is compiled once more.
const flags = "-trimpath -buildvcs=false -tags=grpcnotrace"

// RunGo runs the go command in a module, with the flags of the Makefile so that
// their builds are shared. The error holds what it said.
func RunGo(ctx context.Context, root, module string, args ...string) error {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = filepath.Join(root, module)
	cmd.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0", "GOFLAGS="+flags)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go %s: %w: %s", args[0], err, bytes.TrimSpace(out))
	}
	return nil
}
