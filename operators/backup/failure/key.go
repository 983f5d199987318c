package failure

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

// ReadKey reads a key of a Secret that is mounted as a file. It is of what messages call it.
func ReadKey(file, of string) (string, error) {
	text, err := os.ReadFile(file) //nolint:gosec // of the Secret that is mounted
	switch value := strings.TrimSpace(string(text)); {
	case errors.Is(err, fs.ErrNotExist):
		return "", New(v1alpha1.ReasonMissingReference, "%s is not there", of)
	case err != nil:
		return "", fmt.Errorf("read %s: %w", of, err)
	case value == "":
		return "", New(v1alpha1.ReasonMissingReference, "%s is empty", of)
	default:
		return value, nil
	}
}
