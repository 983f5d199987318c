// Command generate writes what "make generate" derives inside this module: it
// finishes the CRDs that controller-gen wrote, and writes docs/conditions.md. It
// runs in the module's directory.
package main

import (
	"fmt"
	"os"

	"github.com/tidb-groups/tidb-groups/deploy/docs"
	"github.com/tidb-groups/tidb-groups/deploy/schema"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	if err := schema.FinishDir("crds"); err != nil {
		return err
	}
	if err := os.WriteFile("../docs/conditions.md", []byte(docs.Conditions()), 0o644); err != nil { //nolint:gosec // a file of the repository
		return fmt.Errorf("write document: %w", err)
	}
	return nil
}
