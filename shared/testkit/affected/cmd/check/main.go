// Check tests one package and all that depend on it, but for what starts a control
// plane. "make check" runs it:
//
//	check ./shared/store apis shared operators
//
// The package and the modules are directories of the source tree.
package main

import (
	"context"
	"errors"
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
	if len(args) < 2 {
		return errors.New("name a package and the modules to look for its dependents in")
	}
	root, err := binaries.Root()
	if err != nil {
		return err
	}
	changed, err := affected.ImportPath(root, args[0])
	if err != nil {
		return err
	}
	var errs []error
	tested, left := 0, []string(nil)
	for _, module := range args[1:] {
		tests, err := affected.List(ctx, filepath.Join(root, module))
		if err != nil {
			return err
		}
		run, apart := affected.Split(tests, changed)
		tested, left = tested+len(run), append(left, apart...)
		if len(run) > 0 {
			errs = append(errs, test(ctx, filepath.Join(root, module), run))
		}
	}
	if len(left) > 0 {
		fmt.Println("left out, because their tests start a control plane; \"make test\" runs them:")
	}
	for _, name := range left {
		fmt.Println("  " + name)
	}
	if tested == 0 {
		errs = append(errs, fmt.Errorf("no test of %s or of what depends on it was run", args[0]))
	}
	return errors.Join(errs...)
}

// test runs the tests of packages of a module; the go tool names each as it ends.
func test(ctx context.Context, module string, packages []string) error {
	cmd := exec.CommandContext(ctx, "go", append([]string{"test", "-timeout", "5m"}, packages...)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = module, os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("tests of %s: %w", filepath.Base(module), err)
	}
	return nil
}
