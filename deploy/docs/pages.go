package docs

import (
	"cmp"
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
	// becomes another program if there is one.
	stub = "#!/bin/bash\n{ printf '%s\\0' \"$AT\" \"$@\"; printf '\\1\\0'; } >>\"$RECORD\"\n" +
		"[ -z \"$KUBECTL\" ] || exec \"$KUBECTL\" \"$@\"\n"
	// prelude is the first line of the script: kubectl learns its line, and a program that
	// is missing is written down.
	prelude = `kubectl() { AT=$((BASH_LINENO[0] - 1)) command kubectl "$@"; }; command_not_found_handle() { echo "line $((BASH_LINENO[0] - 1)): no program $1" >>"$MISSING"; return 127; }`
)

// allowedPrograms are those, beside kubectl, date and bash, that pages may name. None is run.
func allowedPrograms() []string {
	return []string{"base64", "curl", "git", "go", "grep", "make", "mysql", "openssl", "sort", "tail"}
}

// Shell is where the commands of a page are run. Of other programs than kubectl only date
// and bash are run. As it is made, kubectl only writes down its arguments.
type Shell struct {
	// Kubectl is the program that kubectl becomes. It finds the line of the page in AT.
	Kubectl string
	// Env is what Kubectl has in its environment, beside PATH.
	Env []string
	// Dir is where the commands are run: in an empty folder, if it is not said.
	Dir string
}

// Commands returns what the sh and bash blocks of a page tell kubectl.
func Commands(ctx context.Context, page string) ([]Command, error) {
	return Shell{}.RunBlocks(ctx, page)
}

// RunBlocks runs all sh and bash blocks of a page, one after the other in one shell, and returns
// what kubectl was told. It is an error if a block is not the
// shell's language, or names a program that is not in the list.
func (s Shell) RunBlocks(ctx context.Context, page string) ([]Command, error) {
	var script strings.Builder
	line := 1
	for _, block := range Blocks(page, "sh", "bash") {
		if out, err := exec.CommandContext(ctx, "bash", "-n", "-c", block.Text).CombinedOutput(); err != nil { //nolint:gosec // a page of the repository
			return nil, fmt.Errorf("line %d: %w: %s\n%s", block.Line, err, out, block.Text)
		}
		script.WriteString(strings.Repeat("\n", block.Line-line) + block.Text)
		line = block.Line + strings.Count(block.Text, "\n")
	}
	return s.run(ctx, script.String())
}

// RunInline runs what a page tells kubectl within its lines, each command apart.
func (s Shell) RunInline(ctx context.Context, page string) ([]Command, error) {
	blank := func(block string) string { return strings.Repeat("\n", strings.Count(block, "\n")) }
	page = regexp.MustCompile("(?ms)^ *```.*?^ *```").ReplaceAllStringFunc(page, blank)
	command := regexp.MustCompile("`(kubectl [^`\n]*)`")
	var script strings.Builder
	for line := range strings.Lines(page) {
		for _, m := range command.FindAllStringSubmatch(line, -1) {
			script.WriteString(m[1] + "; ")
		}
		script.WriteString("\n")
	}
	return s.run(ctx, script.String())
}

// run runs a script, whose lines are those of a page, and returns what kubectl was told.
func (s Shell) run(ctx context.Context, script string) ([]Command, error) {
	dir, err := os.MkdirTemp("", "commands-")
	if err != nil {
		return nil, fmt.Errorf("make folder of programs: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path := filepath.Join(dir, "bin")
	if err := writePrograms(path); err != nil {
		return nil, err
	}
	record, missing := filepath.Join(dir, "record"), filepath.Join(dir, "missing")
	run := exec.CommandContext(ctx, "bash", "-c", prelude+"\n"+script+"\nwait") //nolint:gosec // a page of the repository
	run.Env = append([]string{"PATH=" + path, "RECORD=" + record, "MISSING=" + missing, "KUBECTL=" + s.Kubectl}, s.Env...)
	run.Dir = cmp.Or(s.Dir, dir)
	_ = run.Run()                                       // the programs do nothing, so that tests of what they print fail
	if names, err := os.ReadFile(missing); err == nil { //nolint:gosec // written above
		return nil, fmt.Errorf("%s: add it to programs() if readers have it", strings.ReplaceAll(strings.TrimSpace(string(names)), "\n", ", "))
	}
	text, err := os.ReadFile(record) //nolint:gosec // written above
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read record: %w", err)
	}
	return parseCommands(string(text))
}

// writePrograms writes the programs that pages may name into a folder.
func writePrograms(dir string) error {
	texts := map[string]string{"kubectl": stub}
	for _, name := range allowedPrograms() {
		texts[name] = "#!/bin/bash\n"
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return fmt.Errorf("make folder of programs: %w", err)
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

// parseCommands reads what the stubs have written down.
func parseCommands(record string) ([]Command, error) {
	var out []Command
	for _, command := range strings.Split(strings.TrimSuffix(record, "\x00\x01\x00"), "\x00\x01\x00") {
		args := strings.Split(command, "\x00")
		line, err := strconv.Atoi(args[0])
		if err != nil {
			return nil, fmt.Errorf("read line of a command: %w", err)
		}
		out = append(out, Command{Line: line, Args: args[1:]})
	}
	return out, nil
}
