// Check tests one package and all that depend on it, but for what starts a control
// plane. "make check" runs it:
//
//	check -apart e2e/tikv ./shared/store apis shared operators
//
// The package and the modules are directories of the source tree. A module that stands apart
// is looked at for its own packages alone.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/tidb-groups/tidb-groups/shared/testkit/affected"
	"github.com/tidb-groups/tidb-groups/shared/testkit/binaries"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "check:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	set := flag.NewFlagSet("check", flag.ContinueOnError)
	apart := set.String("apart", "", "module that no other one uses; its tests are linked with -checklinkname=0, as TiDB's code needs it")
	if err := set.Parse(args); err != nil {
		return fmt.Errorf("parse flags: %w", err)
	}
	if set.NArg() < 2 {
		return errors.New("name a package and the modules to look for its dependents in")
	}
	root, err := binaries.Root()
	if err != nil {
		return err
	}
	changed, err := affected.ImportPath(root, set.Arg(0))
	if err != nil {
		return err
	}
	var errs []error
	tested, left := 0, map[string][]string{}
	modules := affected.Modules(changed, *apart, set.Args()[1:])
	for _, module := range modules {
		tests, err := affected.List(ctx, filepath.Join(root, module))
		if err != nil {
			return err
		}
		var run []string
		run, left[module] = affected.Split(tests, changed)
		tested += len(run)
		if len(run) == 0 {
			continue
		}
		if module == *apart {
			run = append([]string{"-ldflags=-checklinkname=0"}, run...)
		}
		errs = append(errs, runTests(ctx, filepath.Join(root, module), run))
	}
	fmt.Print(affected.DescribeUntested(changed, modules, left))
	if tested == 0 {
		errs = append(errs, fmt.Errorf("no test of %s or of what depends on it was run", set.Arg(0)))
	}
	return errors.Join(errs...)
}

// runTests runs the tests of packages of a module, with flags before their names; the go tool
// names each as it ends.
func runTests(ctx context.Context, module string, packages []string) error {
	cmd := exec.CommandContext(ctx, "go", append([]string{"test", "-timeout", "5m"}, packages...)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = module, os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("tests of %s: %w", filepath.Base(module), err)
	}
	return nil
}
