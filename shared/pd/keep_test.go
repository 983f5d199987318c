package pd_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidb-groups/tidb-groups/shared/pd"
)

// closing is a client that notes that it was closed.
type closing struct{ closed bool }

func (c *closing) View(context.Context) (pd.View, error) { return pd.View{}, nil }
func (c *closing) SetStoreLabels(context.Context, string, map[string]string) error {
	return nil
}
func (c *closing) EnablePlacementRules(context.Context) error { return nil }
func (c *closing) Close()                                     { c.closed = true }

func TestKeepForgetsOnlyPDsOfTheNamespaceThatNobodyNames(t *testing.T) {
	clients := map[types.NamespacedName]*closing{}
	poller := pd.NewPoller(func(key types.NamespacedName) (pd.Client, error) {
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
