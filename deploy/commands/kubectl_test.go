package commands_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// What the shell of a page hands to this program, which runs there as kubectl.
const (
	resultsFile = "COMMANDS_RESULTS"
	kubectlPath = "COMMANDS_KUBECTL"
	kubeconfig  = "COMMANDS_KUBECONFIG" // pages name one of their own
)

// result is what came of a command.
type result struct {
	Line   int
	Args   []string
	Ran    []string // what kubectl was told; nothing if it was not run
	Code   int
	Stdout string
	Stderr string
}

// notRun are the verbs that are only compared with the kinds, by deploy/docs, and why.
func notRun() map[string]string {
	return map[string]string{
		"exec":         "needs a container that runs",
		"logs":         "needs a container that runs",
		"port-forward": "needs a container that runs",
		"rollout undo": "needs the ReplicaSets of the controller of Deployments",
	}
}

// verb is the verb of a command, with the second word of those that have two.
func verb(args []string) string {
	if len(args) > 2 && args[0] == "-n" {
		args = args[2:]
	}
	if len(args) > 1 && args[0] == "rollout" {
		return args[0] + " " + args[1]
	}
	if len(args) == 0 {
		return ""
	}
	return args[0]
}

// mentions are commands within lines that a page names and users do not type.
func mentions() map[string]string {
	return map[string]string{
		"wait":            "the verb",
		"explain":         "the verb",
		"apply":           "the verb",
		"delete -k":       "the verb",
		"delete instance": "the verb",
		"get tidb -w":     "which kubectl refuses, as the page says",
	}
}

// isRun reports whether a command is run.
func isRun(args []string) bool {
	return notRun()[verb(args)] == "" && mentions()[strings.Join(args, " ")] == ""
}

// asTyped is what kubectl is told for a command of a page. Names that a page leaves to the
// reader are filled in. What deletes, and what touches the whole Kubernetes, is asked of the
// API server without being done, so that the next command finds its objects; nothing waits
// for long; and a field that is not there is an error.
func asTyped(args []string) []string {
	out := filled(args)
	switch v := verb(args); {
	case v == "get" && slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, "jsonpath=") }):
		out = append(out, "--allow-missing-template-keys=false")
	case v == "wait":
		out = append(out, "--timeout=5s")
	case slices.Contains([]string{"delete", "cordon", "uncordon", "drain"}, v), v == "apply" && slices.Contains(args, "-k"):
		out = append(out, "--dry-run=server")
	}
	return out
}

// blanks are the words that stand for names.
var blanks = regexp.MustCompile(`\b(NAME|PDGROUP|GROUP|KIND|NODE|CLAIM|INSTANCE)\b|"ID"`)

// filled are arguments with names of objects that there are.
func filled(args []string) []string {
	name := "basic-tikv-0"
	for _, a := range args {
		switch a {
		case "node":
			name = "node-1"
		case "logbackup":
			name = "pitr"
		case "restore":
			name = "again"
		}
	}
	names := map[string]string{"NAME": name, "PDGROUP": "basic-pd", "GROUP": "basic-pd", "KIND": "pdgroup", "NODE": "node-1", "CLAIM": "tikv-basic-tikv-3", "INSTANCE": "basic-tikv-3", `"ID"`: `"1"`}
	out := slices.Clone(args)
	for i, a := range out {
		if !strings.HasPrefix(a, "custom-columns=") {
			out[i] = strings.ReplaceAll(blanks.ReplaceAllStringFunc(a, func(s string) string { return names[s] }), "=...", "=zone-a")
		}
	}
	return out
}

// typed runs a command of a page, prints what kubectl prints, and writes down what came of
// it.
func typed(args []string) error {
	line, err := strconv.Atoi(os.Getenv("AT"))
	if err != nil {
		return fmt.Errorf("read line of the page: %w", err)
	}
	r := result{Line: line, Args: args}
	if isRun(args) {
		r.Ran = asTyped(args)
		err := once(&r)
		for i := 0; err == nil && i < len(r.Ran); i++ {
			err = answered(r.Ran, i)
		}
		if err != nil {
			return err
		}
	}
	if err := write(r); err != nil {
		return err
	}
	fmt.Print(r.Stdout) // for the shell, which may put it into the next command
	return nil
}

// once runs a command. That of a whole overlay takes seconds and says the same on each page:
// what came of it the first time is taken again.
func once(r *result) error {
	if verb(r.Args) != "apply" || !slices.Contains(r.Args, "-k") {
		return r.run()
	}
	path := filepath.Join(os.Getenv("HOME"), strings.ReplaceAll(strings.Join(r.Args, " "), "/", "_"))
	line := r.Line
	if text, err := os.ReadFile(path); err == nil { //nolint:gosec // written below
		err = json.Unmarshal(text, r)
		r.Line = line
		return err
	}
	if err := r.run(); err != nil {
		return err
	}
	text, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("write result: %w", err)
	}
	unfinished := path + strconv.Itoa(os.Getpid()) // two pages may be the first
	return errors.Join(os.WriteFile(unfinished, text, 0o600), os.Rename(unfinished, path))
}

// run has kubectl do what it is told. One that watches is ended when it has printed
// something.
func (r *result) run() error {
	watches, timeout := slices.Contains(r.Ran, "-w"), 3*time.Minute // on a loaded machine
	if watches {
		timeout = time.Minute
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Getenv(kubectlPath), r.Ran...) //nolint:gosec // a page of the repository
	cmd.Env = append(os.Environ(), "KUBECONFIG="+os.Getenv(kubeconfig))
	stdout, stderr := output{printed: func() {}}, bytes.Buffer{}
	if watches {
		stdout.printed = cancel
	}
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	r.Stdout, r.Stderr, r.Code = stdout.text.String(), stderr.String(), cmd.ProcessState.ExitCode()
	if watches && r.Stdout != "" {
		r.Code = 0
	}
	if exit := (*exec.ExitError)(nil); err != nil && ctx.Err() == nil && !errors.As(err, &exit) {
		return fmt.Errorf("run kubectl: %w", err)
	}
	return nil
}

// output is what a program prints.
type output struct {
	text    bytes.Buffer
	printed func()
}

// Write adds what the program prints, and calls printed.
func (o *output) Write(p []byte) (int, error) {
	defer o.printed()
	return o.text.Write(p)
}

// answered plays the operators, which answer an annotation of an Instance by another.
func answered(args []string, i int) error {
	const prefix = "groups.tidb.dev/"
	answers := map[string]string{"restart": "restarted", "evict-leaders": "leaders-evicted"}
	key, value, given := strings.Cut(strings.TrimPrefix(args[i], prefix), "=")
	if args[0] != "annotate" || !given || answers[key] == "" {
		return nil
	}
	answer := slices.Clone(args)
	answer[i] = prefix + answers[key] + "=" + value
	r := result{Ran: append(answer, "--overwrite")}
	return r.run()
}

// write adds a result to the file.
func write(r result) error {
	text, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("write result: %w", err)
	}
	file, err := os.OpenFile(os.Getenv(resultsFile), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("write result: %w", err)
	}
	_, err = file.Write(append(text, '\n'))
	return errors.Join(err, file.Close())
}
