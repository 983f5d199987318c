package polling_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/pd/polling"
)

// closing is a client that notes that it was closed. Nothing else is asked of
// it.
type closing struct {
	pd.Client
	closed bool
}

func (c *closing) Close() { c.closed = true }

func TestKeepForgetsOnlyUnusedPDsOfTheNamespace(t *testing.T) {
	clients := map[types.NamespacedName]*closing{}
	poller := polling.New(func(key types.NamespacedName) (pd.Client, error) {
		clients[key] = &closing{}
		return clients[key], nil
	})
	named, unnamed, elsewhere := types.NamespacedName{Namespace: "a", Name: "named"},
		types.NamespacedName{Namespace: "a", Name: "unnamed"}, types.NamespacedName{Namespace: "b", Name: "unnamed"}
	for _, key := range []types.NamespacedName{named, unnamed, elsewhere} {
		poller.Watch(key, false)
		_, err := poller.Client(key)
		require.NoError(t, err)
	}
	poller.Keep("a", []string{"named"})
	assert.False(t, clients[named].closed)
	assert.True(t, clients[unnamed].closed)
	assert.False(t, clients[elsewhere].closed)
}
