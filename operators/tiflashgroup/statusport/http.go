package statusport

import (
	"context"
	"errors"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/settings"
)

// Running is what a store says that serves. What it says on its way there and back
// is Idle, Ready, Stopping and Terminated.
const Running = "Running"

// port is where TiFlash's proxy answers about the store.
const port = settings.Port(v1alpha1.PortTiFlashProxyState)

// HTTP asks the store on a host for its state: GET /tiflash/store-status, of which the
// body counts. A version that does not know the path says nothing of itself: the state
// is empty.
func HTTP(ctx context.Context, host string) (string, error) {
	state, err := port.Text(ctx, host, "/tiflash/store-status")
	if errors.Is(err, settings.ErrNotFound) {
		return "", nil
	}
	return state, err
}
