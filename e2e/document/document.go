// Package document writes figures into pages of docs: what stands between two lines
// that name the command which writes it.
package document

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// Dirty ends the name of a commit whose files have been changed since: what was found out
// about it cannot be checked. Pages do not count, which are written by such commands.
const Dirty = "-dirty"

// DescribeCommit names what the tree at root is, for figures that are made of it.
func DescribeCommit(ctx context.Context, root string) (string, error) {
	commit, err := exec.CommandContext(ctx, "git", "-C", root, "rev-parse", "--short", "HEAD").Output()
	if err != nil {
		return "", fmt.Errorf("ask git for the commit: %w", err)
	}
	changed, err := exec.CommandContext(ctx, "git", "-C", root, "status", "--porcelain", "--untracked-files=no", "--", ":/", ":(top,exclude)docs").Output()
	if err != nil {
		return "", fmt.Errorf("ask git for changed files: %w", err)
	}
	name := strings.TrimSpace(string(commit))
	if len(changed) > 0 {
		name += Dirty
	}
	return name, nil
}

// beginMarker and end are the lines around what a command has written.
func beginMarker(command string) string { return "<!-- written by " + command + ": begin -->" }
func endMarker(command string) string   { return "<!-- written by " + command + ": end -->" }

// Write puts a text into a page, in place of what the command has written there before. It is
// an error if the page has no lines of the command.
func Write(page, command, text string) error {
	old, err := os.ReadFile(page)
	if err != nil {
		return fmt.Errorf("read %s: %w", page, err)
	}
	before, rest, found := strings.Cut(string(old), beginMarker(command))
	_, after, ended := strings.Cut(rest, endMarker(command))
	if !found || !ended {
		return fmt.Errorf("write tables into %s: it has no lines %q and %q", page, beginMarker(command), endMarker(command))
	}
	return writePage(page, before+renderBlock(command, text)+after)
}

// WriteSection is Write, and makes a section with the command's lines if there is none, before another
// section, or at the page's end if there is no such either. Headings are without their "## ".
func WriteSection(page, heading, before, command, text string) error {
	old, err := os.ReadFile(page)
	if err != nil {
		return fmt.Errorf("read %s: %w", page, err)
	}
	if strings.Contains(string(old), beginMarker(command)) {
		return Write(page, command, text)
	}
	section := "## " + heading + "\n\n" + renderBlock(command, text) + "\n\n"
	above, below, found := strings.Cut(string(old), "## "+before+"\n")
	if !found {
		return writePage(page, strings.TrimRight(string(old), "\n")+"\n\n"+strings.TrimRight(section, "\n")+"\n")
	}
	return writePage(page, above+section+"## "+before+"\n"+below)
}

func renderBlock(command, text string) string {
	return beginMarker(command) + "\n\n" + text + "\n" + endMarker(command)
}

func writePage(page, text string) error {
	if err := os.WriteFile(page, []byte(text), 0o644); err != nil { //nolint:gosec // a file of the repository
		return fmt.Errorf("write %s: %w", page, err)
	}
	return nil
}
