package storage

import (
	"crypto/x509"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The Job that deletes files runs in an image of the operators, which holds no file but programs.
func TestBR04CloudsAreKnownInAnImageWithoutFiles(t *testing.T) {
	const asked = "ASKED_FOR_ROOTS"
	if os.Getenv(asked) != "" {
		known, err := x509.SystemCertPool()
		require.NoError(t, err)
		assert.False(t, known.Equal(x509.NewCertPool()), "no authority is known")
		return
	}
	none := filepath.Join(t.TempDir(), "none")
	again := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$") //nolint:gosec // this test
	again.Env = append(os.Environ(), asked+"=1", "SSL_CERT_FILE="+none, "SSL_CERT_DIR="+none)
	said, err := again.CombinedOutput()
	require.NoError(t, err, string(said))
}
