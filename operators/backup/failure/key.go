package failure

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

// ReadKey reads a key of a Secret that is mounted as a file, without the space around it. It is of
// what messages call it.
func ReadKey(file, of string) (string, error) { return readKey(file, of, strings.TrimSpace) }

// ReadPassword reads a password of a Secret. Space around it belongs to it, the end of its line does not.
func ReadPassword(file, of string) (string, error) {
	return readKey(file, of, func(text string) string { return strings.TrimRight(text, "\r\n") })
}

func readKey(file, of string, trim func(string) string) (string, error) {
	text, err := os.ReadFile(file) //nolint:gosec // of the Secret that is mounted
	switch value := trim(string(text)); {
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
