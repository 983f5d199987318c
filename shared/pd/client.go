package pd

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
)

// Client asks one PD and orders it about. Every call ends with its context.
// An error is, or wraps, an *Unreachable, a *Refused or a *Malformed;
// errors.Is(err, ErrNotBootstrapped) tells that no store has registered yet.
type Client interface {
	// View asks for everything that a View holds. The returned View carries
	// the error too.
	View(ctx context.Context) (View, error)
	// SetStoreLabels sets labels of a store and leaves its others alone.
	SetStoreLabels(ctx context.Context, storeID string, labels map[string]string) error
	// EnablePlacementRules turns placement rules on; harmless if they are.
	EnablePlacementRules(ctx context.Context) error
	// Close gives the connections back.
	Close()
}

// Dialer returns a client of a PDGroup's PD without talking to it.
type Dialer func(pd types.NamespacedName) (Client, error)
