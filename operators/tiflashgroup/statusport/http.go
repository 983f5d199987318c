package statusport

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/settings"
)

// Running is what a store says that serves.
const Running = "Running"

// IsFinal reports whether a store that says a state goes on saying it until it ends.
func IsFinal(state string) bool { return state == Running }

// storeStates are all that a store says: Running, and on its way there and back the others.
// What else is answered is no store's, and nothing for a status that many can read.
func storeStates() []string { return []string{Running, "Idle", "Ready", "Stopping", "Terminated"} }

var errWord = errors.New("the answer is not a store's state")

// port is where TiFlash's proxy answers about the store.
const port = settings.Port(v1alpha1.PortTiFlashProxyState)

// ReadState asks the store on a host for its state: GET /tiflash/store-status, of which the
// body counts. A version that does not know the path says nothing of itself: the state
// is empty.
func ReadState(ctx context.Context, host string) (string, error) {
	const path = "/tiflash/store-status"
	state, err := port.Text(ctx, host, path)
	switch {
	case errors.Is(err, settings.ErrNotFound):
		return "", nil
	case err == nil && !slices.Contains(storeStates(), state):
		return "", fmt.Errorf("get %s: %w", port.URL(ctx, host, path), errWord)
	}
	return state, err
}
