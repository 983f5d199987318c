package rig

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/tidb-groups/tidb-groups/e2e/remedy"
	"github.com/tidb-groups/tidb-groups/shared/testkit/controlplane"
)

// shell is where command lines of messages are pasted: sh, with a kubectl that has full
// access and no namespace of its own.
type shell struct {
	plane *controlplane.ControlPlane
}

// paste runs a line, with words that its kubectl is given beside.
func (s shell) paste(ctx context.Context, line, editor, beside string) error {
	// A function, not a folder in PATH: the words come last, as a user adds them.
	script := fmt.Sprintf("kubectl() { %s \"$@\" %s; }\n%s\n", s.plane.KubectlPath, beside, line)
	cmd := exec.CommandContext(ctx, "sh", "-c", script) //nolint:gosec // lines that a user is told to paste
	cmd.Env = append(s.plane.KubectlEnv(), "KUBE_EDITOR="+editor)
	out, err := cmd.CombinedOutput()
	switch said := strings.TrimSpace(string(out)); {
	case err != nil:
		return fmt.Errorf("%w: %s", err, said)
	case strings.Contains(said, "Warning: unknown field"):
		return errors.New(said) // which the API server drops
	}
	return nil
}

// try runs a command so that nothing comes of it.
func (s shell) try(ctx context.Context, c remedy.Command) error {
	line, beside := c.Line, ""
	if word := c.Placeholder(); word != "" && !slices.Contains(remedy.Placeholders(), word) {
		return fmt.Errorf("%s is to be filled in, and is no placeholder that package remedy knows", word)
	}
	line = strings.ReplaceAll(line, "FILE", os.DevNull)
	switch c.Effect() {
	case remedy.Changes:
		beside = "--dry-run=server"
	case remedy.Unknown:
		return fmt.Errorf("no message tells to do that")
	}
	err := s.paste(ctx, line, "true", beside)
	if err != nil && c.Effect() != remedy.Changes && reachesNode(err.Error()) {
		return nil
	}
	return err
}

// reachesNode reports whether a command has come as far as the kubelet, of which this
// world has none: there is such a pod, and such a container.
func reachesNode(said string) bool {
	for _, words := range []string{"no preferred addresses found", "dial tcp", "is waiting to start", "previous terminated container", "container not found", "does not have a host assigned", "error dialing backend"} {
		if strings.Contains(said, words) {
			return true
		}
	}
	return false
}

// Paste implements scenario.World.
func (r *Rig) Paste(ctx context.Context, line, editor string) error {
	beside := ""
	if c := remedy.Commands(line); len(c) == 1 && c[0].Verb() == "delete" {
		beside = "--wait=false"
	}
	return shell{plane: r.plane}.paste(ctx, line, editor, beside)
}

// Try runs a command line so that nothing comes of it: what it would change is only
// looked at by the API server.
func (r *Rig) Try(ctx context.Context, line string) error {
	commands := remedy.Commands(line)
	if len(commands) != 1 || commands[0].Line != line {
		return fmt.Errorf("%q is not one command", line)
	}
	return shell{plane: r.plane}.try(ctx, commands[0])
}
