package pdtest_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/pd/pdtest"
)

// view asks the PD.
func view(t *testing.T, p *pdtest.PD) pd.View {
	t.Helper()
	v, err := p.View(t.Context())
	require.NoError(t, err)
	return v
}

func TestADeletedStoreIsOfflineUntilItsRegionsHaveMoved(t *testing.T) {
	p := pdtest.New(pd.View{MaxReplicas: 1})
	p.Register("a:20160")
	id := p.Register("b:20160")
	p.DelayRemoval(1)
	ctx := t.Context()
	require.NoError(t, p.DeleteStore(ctx, id))
	s, _ := view(t, p).Store(id)
	assert.Equal(t, pd.StateOffline, s.State)
	require.NoError(t, p.RestoreStore(ctx, id))
	require.NoError(t, p.DeleteStore(ctx, id))
	view(t, p)
	_, ok := view(t, p).Store(id)
	assert.False(t, ok, "a tombstone is not listed")
	assert.ErrorContains(t, p.RestoreStore(ctx, id), "410")
	assert.ErrorContains(t, p.DeleteStore(ctx, "1"), "ErrStoresNotEnough")
	assert.ErrorContains(t, p.DeleteStore(ctx, "9"), "404")
	assert.Equal(t, []string{"delete-store 2", "restore 2", "delete-store 2"}, p.Calls())
}

func TestEvictedLeadersGoToAnotherStore(t *testing.T) {
	p := pdtest.New(pd.View{})
	from, to := p.Register("a:20160"), p.Register("b:20160")
	p.Change(func(v *pd.View) { v.Stores[0].Leaders = 3 })
	require.NoError(t, p.EvictLeaders(t.Context(), from))
	require.NoError(t, p.EvictLeaders(t.Context(), from))
	v := view(t, p)
	assert.Equal(t, []string{from}, v.EvictLeader)
	s, _ := v.Store(to)
	assert.Equal(t, 3, s.Leaders)
	require.NoError(t, p.StopEvictingLeaders(t.Context(), from))
	require.NoError(t, p.StopEvictingLeaders(t.Context(), from))
	assert.Empty(t, view(t, p).EvictLeader)
	assert.ErrorContains(t, p.EvictLeaders(t.Context(), "9"), "500")

	p.HoldLeaders(true)
	require.NoError(t, p.EvictLeaders(t.Context(), to))
	s, _ = view(t, p).Store(to)
	assert.Equal(t, 3, s.Leaders, "they are held")
}

func TestTheLeaderMovesOnATransferOrARemoval(t *testing.T) {
	p := pdtest.New(pd.View{Leader: "a", Members: []pd.Member{{Name: "a", ID: "1"}, {Name: "b", ID: "2", Healthy: true}, {Name: "c", ID: "3"}}})
	require.NoError(t, p.TransferLeader(t.Context(), "c"))
	assert.Equal(t, "c", view(t, p).Leader)
	assert.Error(t, p.TransferLeader(t.Context(), "d"))
	require.NoError(t, p.DeleteMember(t.Context(), "3"))
	assert.Equal(t, "b", view(t, p).Leader)
	assert.Error(t, p.DeleteMember(t.Context(), "3"))
}
