// Vulncheck checks modules for known vulnerabilities, with the pinned govulncheck. The
// Makefile uses it:
//
//	vulncheck apis shared      fails as well when the database does not answer
//	vulncheck -optional apis   says so and goes on
//
// Modules are directories of the source tree. $GOVULNDB names another database than the Go
// project's, such as file:///srv/vulndb.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/tidb-groups/tidb-groups/shared/testkit/binaries"
	"github.com/tidb-groups/tidb-groups/shared/testkit/vulncheck"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "vulncheck:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	optional := flag.Bool("optional", false, "say that nothing was checked, rather than fail, when the database does not answer")
	flag.Parse()
	if flag.NArg() == 0 {
		return errors.New("name a module")
	}
	root, err := binaries.Root()
	if err != nil {
		return err
	}
	options := vulncheck.Options{
		Program:  func(ctx context.Context) (string, error) { return binaries.Path(ctx, "govulncheck") },
		Database: cmp.Or(os.Getenv("GOVULNDB"), vulncheck.Database),
		Optional: *optional,
		Out:      os.Stdout,
	}
	for _, module := range flag.Args() {
		options.Modules = append(options.Modules, filepath.Join(root, module))
	}
	return vulncheck.Run(ctx, options)
}
