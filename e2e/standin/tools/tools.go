// Package tools has stand-ins for the tools that copy a database, as scripts of a shell.
package tools

import (
	_ "embed" // the scripts
	"fmt"
	"os"
)

//go:embed dumpling.sh
var dumpling []byte

//go:embed lightning.sh
var lightning []byte

// Write writes the stand-in for a tool, which its path in its own image names, into a file.
func Write(tool, into string) error {
	script := map[string][]byte{"/dumpling": dumpling, "/tidb-lightning": lightning}[tool]
	if script == nil {
		return fmt.Errorf("there is no stand-in for %s", tool)
	}
	if err := os.WriteFile(into, script, 0o700); err != nil { //nolint:gosec // a program
		return fmt.Errorf("write the stand-in for %s: %w", tool, err)
	}
	return nil
}
