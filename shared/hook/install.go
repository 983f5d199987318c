package hook

import (
	"fmt"
	"os"
	"path/filepath"
)

// Install copies the program that runs to a place in a volume that other containers
// mount.
func Install(to string) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	return copyProgram(self, to)
}

func copyProgram(from, to string) error {
	content, err := os.ReadFile(from) //nolint:gosec // its own program
	if err != nil {
		return fmt.Errorf("install: %w", err)
	}
	// Never half a program under the name by which it is called.
	half := filepath.Join(filepath.Dir(to), "."+filepath.Base(to))
	if err := os.WriteFile(half, content, 0o755); err != nil { //nolint:gosec // other users run it
		return fmt.Errorf("install: %w", err)
	}
	if err := os.Rename(half, to); err != nil {
		return fmt.Errorf("install: %w", err)
	}
	return nil
}
