// Command mutants builds deliberate bugs into the suite and shows which of them
// the rig catches.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"syscall"
	"time"

	"github.com/tidb-groups/tidb-groups/e2e/mutants"
	"github.com/tidb-groups/tidb-groups/shared/testkit/binaries"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	jobs := flag.Int("jobs", 2, "how many mutants run at the same time")
	only := flag.String("run", "", "run only the mutants whose name matches this regular expression")
	flag.Parse()
	if flag.NArg() > 0 {
		return fmt.Errorf("%q is no flag: name mutants with -run %s", flag.Arg(0), flag.Arg(0))
	}
	wanted, err := regexp.Compile(*only)
	if err != nil {
		return fmt.Errorf("read -run: %w", err)
	}
	root, err := binaries.Root()
	if err != nil {
		return err
	}
	all, err := mutants.All()
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(m mutants.Mutant) bool { return !wanted.MatchString(m.Name) })
	dir, err := os.MkdirTemp("", "tidb-groups-mutants-")
	if err != nil {
		return fmt.Errorf("make room: %w", err)
	}
	runner := mutants.Runner{Root: root, Dir: dir, Jobs: *jobs, Done: func(v mutants.Verdict) {
		if len(v.Mutant.Edits) > 0 {
			fmt.Printf("%-30s %s after %s\n", v.Mutant.Name, v.By(), v.Took.Round(time.Second))
		}
	}}
	verdicts, broken := runner.Run(ctx, all)
	fmt.Println()
	caught, err := mutants.WriteTable(os.Stdout, verdicts)
	if err = errors.Join(broken, err); err != nil {
		return err
	}
	if caught < len(all) {
		return fmt.Errorf("%d of %d mutants live", len(all)-caught, len(all))
	}
	return os.RemoveAll(dir)
}
