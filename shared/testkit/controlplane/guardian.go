package controlplane

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// guardianScript waits on a pipe that the test process holds. When the pipe
// closes, because the test process says so or because it died in whatever way,
// it kills every process whose number is noted, and removes the directory.
const guardianScript = `
cat >/dev/null
for note in "$1"/*.pid; do
	[ -f "$note" ] && kill -KILL "$(cat "$note")" 2>/dev/null
done
exec rm -rf -- "$1"
`

// guardian cleans a directory and the processes noted in it when its pipe closes.
type guardian struct {
	root string
	cmd  *exec.Cmd
	pipe io.Closer
}

func startGuardian(root string) (*guardian, error) {
	cmd := exec.Command("/bin/sh", "-c", guardianScript, "guardian", root)
	// Away from the terminal: an interrupt is meant for the test alone.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start guardian: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start guardian: %w", err)
	}
	return &guardian{root: root, cmd: cmd, pipe: pipe}, nil
}

// note tells the guardian of a process.
func (g *guardian) note(name string, pid int) error {
	if err := os.WriteFile(g.notePath(name), fmt.Appendf(nil, "%d", pid), 0o600); err != nil {
		return fmt.Errorf("note process of %s: %w", name, err)
	}
	return nil
}

func (g *guardian) notePath(name string) string { return filepath.Join(g.root, name+".pid") }

// wrap returns the path of a script that notes its own process and then becomes
// the program, with a heap of limit bytes. It is for programs that others start.
func (g *guardian) wrap(name, program string, limit int64) (string, error) {
	path := filepath.Join(g.root, name+".sh")
	script := fmt.Sprintf("#!/bin/sh\necho $$ >%s\nexport GOGC=%d GOMEMLIMIT=%d\nexec %s \"$@\"\n", quoteWord(g.notePath(name)), heapGrowth, limit, quoteWord(program))
	if err := os.WriteFile(path, []byte(script), 0o700); err != nil {
		return "", fmt.Errorf("wrap %s: %w", name, err)
	}
	return path, nil
}

// notedProcesses are the processes that were noted, by their names.
func (g *guardian) notedProcesses() (map[string]int, error) {
	notes, err := filepath.Glob(g.notePath("*"))
	if err != nil {
		return nil, fmt.Errorf("list notes: %w", err)
	}
	out := map[string]int{}
	for _, note := range notes {
		text, err := os.ReadFile(filepath.Clean(note))
		if err != nil {
			return nil, fmt.Errorf("read note: %w", err)
		}
		name := strings.TrimSuffix(filepath.Base(note), filepath.Ext(note))
		if out[name], err = strconv.Atoi(strings.TrimSpace(string(text))); err != nil {
			return nil, fmt.Errorf("read note of %s: %w", name, err)
		}
	}
	return out, nil
}

// forget withdraws all notes: the processes have ended, and the kernel may give
// their numbers to strangers.
func (g *guardian) forget() error {
	notes, err := filepath.Glob(g.notePath("*"))
	if err != nil {
		return fmt.Errorf("list notes: %w", err)
	}
	var errs []error
	for _, note := range notes {
		errs = append(errs, os.Remove(note))
	}
	return errors.Join(errs...)
}

// finish lets the guardian do its work and waits for it.
func (g *guardian) finish() error {
	return errors.Join(g.pipe.Close(), g.cmd.Wait())
}

// quoteWord makes a word of a POSIX shell.
func quoteWord(text string) string {
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
