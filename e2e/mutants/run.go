package mutants

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/tidb-groups/tidb-groups/e2e/overlay"
)

// limit is how long a test may take. The longest wait gives up after 200 s of running time: seven minutes
// and a half were seen until then.
const limit = 12 * time.Minute

// Verdict is what has come of one mutant.
type Verdict struct {
	// Mutant that was run; without edits it is a test without any bug.
	Mutant Mutant
	// Caught says that the test failed and said what it should.
	Caught bool
	// Said is the line that told.
	Said string
	// Why says why it was not caught, and where the test's output is.
	Why string
	// Took is how long the test ran until it failed, control plane included.
	Took time.Duration
}

// By says what caught the mutant.
func (v Verdict) By() string {
	switch {
	case !v.Caught:
		return "NOT caught"
	case strings.Contains(v.Said, "alarm: "):
		return "model"
	case strings.Contains(v.Said, "violation: "):
		return "watcher"
	case v.Mutant.Module != "e2e":
		return "own test"
	}
	return "outcome"
}

// Runner runs mutants.
type Runner struct {
	// Root of the tree.
	Root string
	// Dir keeps what is built, and the output of tests that did not go as they
	// should.
	Dir string
	// Jobs is how many mutants are run at the same time.
	Jobs int
	// Done is told of each verdict as it comes; may be nil.
	Done func(Verdict)
}

// Run runs mutants, and their tests without any bug, and returns the verdicts in
// the order of the mutants. A test that fails without any bug is an error: it
// proves nothing.
func (r Runner) Run(ctx context.Context, all []Mutant) ([]Verdict, error) {
	work := slices.Concat(all, withoutMutations(all))
	verdicts, errs := make([]Verdict, len(work)), make([]error, len(work))
	free := make(chan struct{}, max(1, r.Jobs))
	var running sync.WaitGroup
	for i, m := range work {
		free <- struct{}{}
		running.Go(func() {
			defer func() { <-free }()
			verdicts[i], errs[i] = r.one(ctx, filepath.Join(r.Dir, fmt.Sprintf("%02d-%s", i, m.Name)), m)
			if errs[i] != nil {
				verdicts[i] = Verdict{Mutant: m, Why: "it could not be run"}
			} else if r.Done != nil {
				r.Done(verdicts[i])
			}
		})
	}
	running.Wait()
	return verdicts[:len(all)], errors.Join(errs...)
}

// withoutMutations returns the tests of mutants as mutants without a bug. Parts of one test
// are run together.
func withoutMutations(all []Mutant) []Mutant {
	var out []Mutant
	parts := map[string][]string{}
	for _, m := range all {
		test, part, _ := strings.Cut(m.Test, "/")
		key := m.Module + " " + m.Package + " " + test
		if _, again := parts[key]; !again {
			out = append(out, Mutant{Name: noBug, Module: m.Module, Package: m.Package, Test: test})
		}
		if !slices.Contains(parts[key], "("+part+")") {
			parts[key] = append(parts[key], "("+part+")")
		}
	}
	for i, m := range out {
		if all := parts[m.Module+" "+m.Package+" "+m.Test]; !slices.Contains(all, "()") {
			out[i].Test += "/" + strings.Join(all, "|")
		}
	}
	return out
}

// noBug is the name of what is run without a bug.
const noBug = "no-bug"

// one builds the test of a mutant and runs it.
func (r Runner) one(ctx context.Context, dir string, m Mutant) (Verdict, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return Verdict{}, fmt.Errorf("make room for mutant %s: %w", m.Name, err)
	}
	binary := filepath.Join(dir, "test")
	args := []string{"test", "-c", "-o", binary, "-ldflags=-s -w"}
	if len(m.Edits) > 0 {
		changed, err := overlay.Apply(r.Root, m.Edits)
		if err != nil {
			return Verdict{}, fmt.Errorf("mutant %s: %w", m.Name, err)
		}
		table, err := overlay.Write(r.Root, dir, changed)
		if err != nil {
			return Verdict{}, err
		}
		args = append(args, "-overlay", table)
	}
	if err := overlay.RunGo(ctx, r.Root, m.Module, append(args, m.Package)...); err != nil {
		return Verdict{}, fmt.Errorf("build mutant %s: %w", m.Name, err)
	}
	defer func() { _ = os.Remove(binary) }() // large, and built again when needed
	begin := time.Now()
	out, failed, err := r.test(ctx, binary, m)
	if err != nil {
		return Verdict{}, fmt.Errorf("run mutant %s: %w", m.Name, err)
	}
	v := Verdict{Mutant: m, Took: time.Since(begin)}
	log := filepath.Join(dir, "output.txt")
	if err := os.WriteFile(log, out, 0o600); err != nil {
		return Verdict{}, fmt.Errorf("keep output of mutant %s: %w", m.Name, err)
	}
	if len(m.Edits) == 0 {
		if failed {
			return v, fmt.Errorf("it fails without any bug, and proves nothing: %s: see %s", strings.Join(findFailedTests(out), ", "), log)
		}
		return v, nil
	}
	v.judge(out, failed, log)
	return v, nil
}

// judge looks for what the test should have said.
func (v *Verdict) judge(out []byte, failed bool, log string) {
	says := regexp.MustCompile(v.Mutant.Says)
	for line := range strings.Lines(string(out)) {
		if at := says.FindStringIndex(line); failed && at != nil {
			v.Caught, v.Said = true, strings.TrimSpace(line[at[0]:])
			return
		}
	}
	v.Why = "the test passes: see " + log
	if failed {
		v.Why = fmt.Sprintf("the test fails, but does not say %q: see %s", v.Mutant.Says, log)
	}
}

// findFailedTests returns the tests that failed, the innermost first.
func findFailedTests(out []byte) []string {
	var names []string
	for _, found := range regexp.MustCompile(`--- FAIL: (\S+)`).FindAllStringSubmatch(string(out), -1) {
		if !slices.Contains(names, found[1]) {
			names = append(names, found[1])
		}
	}
	return names
}

// test runs a test binary and says whether it failed. Neither of them failing is
// the error.
func (r Runner) test(ctx context.Context, binary string, m Mutant) (out []byte, failed bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, limit+time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, "-test.run", m.Test, "-test.v", "-test.timeout", limit.String())
	cmd.Dir = filepath.Join(r.Root, m.Module, m.Package)
	// What the test has started goes with it: its guardian sees to that.
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 30 * time.Second
	out, err = cmd.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		return out, true, nil
	case err == nil && bytes.Contains(out, []byte("no tests to run")):
		return out, false, fmt.Errorf("there is no test %s", m.Test)
	}
	return out, false, err
}
