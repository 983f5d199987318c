// Command parity writes docs/parity.md from e2e/architecture/parity.yaml. "make
// generate" runs it.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/tidb-groups/tidb-groups/e2e/architecture"
	"github.com/tidb-groups/tidb-groups/shared/testkit/binaries"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	root, err := binaries.Root()
	if err != nil {
		return err
	}
	all, err := architecture.ReadParity(root)
	if err != nil {
		return err
	}
	tests, err := architecture.FindTests(root)
	if err != nil {
		return err
	}
	page, err := architecture.RenderPage(all, tests)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(root, "docs", "parity.md"), []byte(page), 0o644); err != nil { //nolint:gosec // a file of the repository
		return fmt.Errorf("write document: %w", err)
	}
	return nil
}
