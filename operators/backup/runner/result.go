package runner

import (
	"fmt"
	"os"

	"github.com/tidb-groups/tidb-groups/operators/backup/result"
)

// writeResult writes a result where Kubernetes reads it.
func writeResult(r result.Result, path string) error {
	text, err := r.Encode()
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, text, 0o600); err != nil { //nolint:gosec // whose Job it is names the file
		return fmt.Errorf("write result: %w", err)
	}
	return nil
}
