// Command generate writes what "make generate" derives inside this module: it
// finishes the CRDs that controller-gen wrote, and writes docs/conditions.md,
// docs/reference/api.md and the dashboard. It runs in the module's directory.
package main

import (
	"fmt"
	"os"

	"github.com/tidb-groups/tidb-groups/deploy/dashboard"
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
	api, err := docs.API("crds")
	if err != nil {
		return fmt.Errorf("write reference: %w", err)
	}
	graphs, err := dashboard.Render()
	if err != nil {
		return err
	}
	for path, text := range map[string]string{
		"../docs/conditions.md": docs.Conditions(), "../docs/reference/api.md": api, "components/grafana/tidb-clusters.json": string(graphs),
	} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil { //nolint:gosec // a file of the repository
			return fmt.Errorf("write document: %w", err)
		}
	}
	return nil
}
