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

// Compile builds the packages that mutants change. Those that change different
// files are built together.
func Compile(ctx context.Context, root, dir string, all []Mutant) error {
	for round := 0; len(all) > 0; round++ {
		changed, packages := map[string]string{}, map[string]bool{}
		var names []string
		var later []Mutant
		for _, m := range all {
			text, err := m.apply(root)
			if err != nil {
				return fmt.Errorf("mutant %s: %w", m.Name, err)
			}
			if overlaps(changed, text) {
				later = append(later, m)
				continue
			}
			names = append(names, m.Name)
			for file := range text {
				changed[file] = text[file]
			}
			for _, p := range m.packages() {
				packages[p] = true
			}
		}
		here := filepath.Join(dir, fmt.Sprintf("round-%d", round))
		if err := os.MkdirAll(here, 0o700); err != nil {
			return fmt.Errorf("make room for a build: %w", err)
		}
		table, err := overlay(root, here, changed)
		if err != nil {
			return err
		}
		args := []string{"build", "-overlay", table}
		for p := range packages {
			args = append(args, p)
		}
		if err := goCommand(ctx, root, "e2e", args...); err != nil {
			return fmt.Errorf("mutants %s: %w", strings.Join(names, ", "), err)
		}
		all = later
	}
	return nil
}

// overlaps says whether two sets of changes change a file in common.
func overlaps(a, b map[string]string) bool {
	for file := range b {
		if _, both := a[file]; both {
			return true
		}
	}
	return false
}
