package statusport

import (
	"context"
	"errors"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/settings"
)

// What is known of a member that tells.
const (
	// Loaded has all regions in memory.
	Loaded = "loaded"
	// Loading does not yet: as the leader it could place no region, and tell no client where one is.
	Loading = "loading"
)

// IsFinal reports whether a member of which something is known stays so until it ends.
func IsFinal(state string) bool { return state == Loaded }

// port is where a member answers for itself; it does not pass this question on to the leader.
const port = settings.Port(v1alpha1.PortPDClient)

// ReadState asks the member on a host: GET /pd/api/v2/ready, of which the status counts. Versions
// before v8.5.2 do not know the path.
func ReadState(ctx context.Context, host string) (string, error) {
	_, err := port.Text(ctx, host, "/pd/api/v2/ready")
	switch {
	case err == nil:
		return Loaded, nil
	case errors.Is(err, settings.ErrNotFound):
		return "", nil
	case errors.As(err, new(*settings.ServerError)):
		return Loading, nil
	}
	return "", err
}
