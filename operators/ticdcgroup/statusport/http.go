package statusport

import (
	"context"
	"errors"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/settings"
)

// States of a capture.
const (
	// Owner schedules the tables of all captures.
	Owner = "Owner"
	// Capture is any other.
	Capture = "Capture"
)

// port is where TiCDC answers about itself.
const port = settings.Port(v1alpha1.PortTiCDC)

// ReadState asks the capture on a host whether it is the owner: GET /api/v1/status. A version
// that does not know the path does not tell: the state is empty.
func ReadState(ctx context.Context, host string) (string, error) {
	status, err := port.Get(ctx, host, "/api/v1/status")
	switch {
	case errors.Is(err, settings.ErrNotFound):
		return "", nil
	case err != nil:
		return "", err
	case status["is_owner"] == true:
		return Owner, nil
	}
	return Capture, nil
}

// IsFinal reports that no state is: another capture may become the owner at any time.
func IsFinal(string) bool { return false }
