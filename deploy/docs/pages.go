package docs

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
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

// Block is a code block of a page.
type Block struct {
	// Line of the page on which its text begins.
	Line int
	// Text without the indentation of its fence.
	Text string
}

// Blocks returns the code blocks of a page in one of the languages. The fence may be
// indented, as in a list.
func Blocks(page string, languages ...string) []Block {
	var out []Block
	fence := regexp.MustCompile("(?ms)^( *)```(?:" + strings.Join(languages, "|") + ")\n(.*?)^ *```")
	for _, at := range fence.FindAllStringSubmatchIndex(page, -1) {
		indent, text := page[at[2]:at[3]], page[at[4]:at[5]]
		if indent != "" {
			text = regexp.MustCompile("(?m)^"+indent).ReplaceAllString(text, "")
		}
		out = append(out, Block{Line: strings.Count(page[:at[4]], "\n") + 1, Text: text})
	}
	return out
}

// Command is a command of a page, as kubectl is told it.
type Command struct {
	// Line of the page.
	Line int
	// Args without the program's name.
	Args []string
}

const (
	// stub takes the place of kubectl: it writes down the line and its arguments, and
	// prints nothing.
	stub = "#!/bin/bash\n{ printf '%s\\0' \"${AT:-2}\" \"$@\"; printf '\\1\\0'; } >>\"$RECORD\"\n"
	// prelude is the first line of every block: kubectl learns its line, and a program that
	// is missing is written down.
	prelude = `kubectl() { AT=${BASH_LINENO[0]} command kubectl "$@"; }; command_not_found_handle() { echo "$1" >>"$MISSING"; return 127; }`
)

// programs are those, beside kubectl, date and bash, that pages may name. None is run.
func programs() []string {
	return []string{"base64", "curl", "git", "go", "grep", "make", "mysql", "openssl", "sort", "tail"}
}

// Commands runs every sh and bash block of a page with a kubectl that only writes down its
// arguments, and returns what kubectl was told. Of other programs only date and bash are
// run. It is an error if a block is not the shell's language, or names a program that is
// not in the list.
func Commands(ctx context.Context, page string) ([]Command, error) {
	dir, err := os.MkdirTemp("", "commands-")
	if err != nil {
		return nil, fmt.Errorf("make folder of programs: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := fill(dir); err != nil {
		return nil, err
	}
	var out []Command
	for _, block := range Blocks(page, "sh", "bash") {
		commands, err := told(ctx, dir, block)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", block.Line, err)
		}
		out = append(out, commands...)
	}
	return out, nil
}

// fill writes the programs that blocks may name into a folder.
func fill(dir string) error {
	texts := map[string]string{"kubectl": stub}
	for _, name := range programs() {
		texts[name] = "#!/bin/bash\n"
	}
	for name, text := range texts {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil { //nolint:gosec // a program
			return fmt.Errorf("make program: %w", err)
		}
	}
	for _, name := range []string{"date", "bash"} {
		path, err := exec.LookPath(name)
		if err == nil {
			err = os.Symlink(path, filepath.Join(dir, name))
		}
		if err != nil {
			return fmt.Errorf("find program: %w", err)
		}
	}
	return nil
}

// told runs a block with the programs of a folder, and returns what kubectl was told.
func told(ctx context.Context, dir string, block Block) ([]Command, error) {
	if out, err := exec.CommandContext(ctx, "bash", "-n", "-c", block.Text).CombinedOutput(); err != nil { //nolint:gosec // a page of the repository
		return nil, fmt.Errorf("%w: %s\n%s", err, out, block.Text)
	}
	files, err := os.MkdirTemp(dir, "block-")
	if err != nil {
		return nil, fmt.Errorf("make folder of a block: %w", err)
	}
	record, missing := filepath.Join(files, "record"), filepath.Join(files, "missing")
	run := exec.CommandContext(ctx, "bash", "-c", prelude+"\n"+block.Text+"\nwait") //nolint:gosec // a page of the repository
	run.Env, run.Dir = []string{"PATH=" + dir, "RECORD=" + record, "MISSING=" + missing}, files
	_ = run.Run()                                       // the programs do nothing, so that tests of what they print fail
	if names, err := os.ReadFile(missing); err == nil { //nolint:gosec // written above
		return nil, fmt.Errorf("no program %s: add it to programs() if readers have it", strings.Join(strings.Fields(string(names)), ", "))
	}
	text, err := os.ReadFile(record) //nolint:gosec // written above
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read record: %w", err)
	}
	var out []Command
	for _, command := range strings.Split(strings.TrimSuffix(string(text), "\x00\x01\x00"), "\x00\x01\x00") {
		args := strings.Split(command, "\x00")
		at, err := strconv.Atoi(args[0])
		if err != nil {
			return nil, fmt.Errorf("read line of a command: %w", err)
		}
		out = append(out, Command{Line: block.Line + at - 2, Args: args[1:]}) // the prelude is line 1
	}
	return out, nil
}
