package docs

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// Pages returns the text of every page of docs and of the top level, by its path from
// the top.
func Pages(top string) (map[string]string, error) {
	out := map[string]string{}
	paths, err := filepath.Glob(filepath.Join(top, "*.md"))
	if err == nil {
		err = filepath.WalkDir(filepath.Join(top, "docs"), func(path string, _ os.DirEntry, err error) error {
			if strings.HasSuffix(path, ".md") {
				paths = append(paths, path)
			}
			return err
		})
	}
	if err != nil {
		return nil, fmt.Errorf("list pages: %w", err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path) //nolint:gosec // a file of the repository
		if err != nil {
			return nil, fmt.Errorf("read page: %w", err)
		}
		name, err := filepath.Rel(top, path)
		if err != nil {
			return nil, fmt.Errorf("read page: %w", err)
		}
		out[filepath.ToSlash(name)] = string(text)
	}
	return out, nil
}

// Blocks returns the code blocks of a page in a language.
func Blocks(page, language string) []string {
	var out []string
	for _, m := range regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```").FindAllStringSubmatch(page, -1) {
		out = append(out, m[1])
	}
	return out
}

// stub takes the place of kubectl: it writes down its arguments and prints nothing.
const stub = "#!/bin/bash\n{ printf '%s\\0' \"$@\"; printf '\\1\\0'; } >>\"$RECORD\"\n"

// Commands runs every sh block of a page with a kubectl that only writes down its
// arguments, and no other program but date and bash, and returns what kubectl was told.
// It is an error if a block is not the shell's language.
func Commands(ctx context.Context, page string) ([][]string, error) {
	dir, err := os.MkdirTemp("", "commands-")
	if err != nil {
		return nil, fmt.Errorf("make folder of programs: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := os.WriteFile(filepath.Join(dir, "kubectl"), []byte(stub), 0o700); err != nil { //nolint:gosec // a program
		return nil, fmt.Errorf("make program: %w", err)
	}
	for _, name := range []string{"date", "bash"} {
		path, err := exec.LookPath(name)
		if err == nil {
			err = os.Symlink(path, filepath.Join(dir, name))
		}
		if err != nil {
			return nil, fmt.Errorf("find program: %w", err)
		}
	}
	record := filepath.Join(dir, "record")
	for _, block := range Blocks(page, "sh") {
		if out, err := exec.CommandContext(ctx, "bash", "-n", "-c", block).CombinedOutput(); err != nil { //nolint:gosec // a page of the repository
			return nil, fmt.Errorf("%w: %s\n%s", err, out, block)
		}
		run := exec.CommandContext(ctx, "bash", "-c", block+"\nwait") //nolint:gosec // a page of the repository
		run.Env, run.Dir = []string{"PATH=" + dir, "RECORD=" + record}, dir
		_ = run.Run() // programs are missing
	}
	text, err := os.ReadFile(record) //nolint:gosec // written above
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read record: %w", err)
	}
	var out [][]string
	for _, command := range strings.Split(strings.TrimSuffix(string(text), "\x00\x01\x00"), "\x00\x01\x00") {
		out = append(out, strings.Split(command, "\x00"))
	}
	return out, nil
}
