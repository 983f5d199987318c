package mutants

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

// overlay writes the changed files below dir and returns the file that tells
// the go command about them.
func overlay(root, dir string, changed map[string]string) (string, error) {
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

// goCommand runs the go command in a module, with the flags of the Makefile so
// that their builds are shared. The error holds what it said.
func goCommand(ctx context.Context, root, module string, args ...string) error {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = filepath.Join(root, module)
	cmd.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0", "GOFLAGS=-trimpath -buildvcs=false")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go %s: %w: %s", args[0], err, bytes.TrimSpace(out))
	}
	return nil
}
