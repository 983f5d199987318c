package conformance_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/pdclient"
)

// operator is the operators' client of a PD that the test plays.
type operator struct {
	pd.Client
	run *scenarioRun
}

// view asks PD.
func (o operator) view(t *testing.T) pd.View {
	t.Helper()
	v, err := o.View(t.Context())
	require.NoError(t, err)
	return v
}

// store returns a store that PD lists.
func (o operator) store(t *testing.T, id string) pd.Store {
	t.Helper()
	s, ok := o.view(t).Store(id)
	require.True(t, ok, "no store %s", id)
	return s
}

// refused requires that PD refused something, with a text.
func refused(t *testing.T, err error, status int, text string) {
	t.Helper()
	var refusal *pd.Refused
	require.ErrorAs(t, err, &refusal)
	assert.Equal(t, status, refusal.Status)
	assert.Contains(t, refusal.Body, text)
}

// TestTheOperatorsOrders gives every order that the operators know by the
// client that they use, and sees what comes of it.
func TestTheOperatorsOrders(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p *scenarioRun) {
		client, err := pdclient.NewDialer(p.b.URL("pd-1"))(types.NamespacedName{Namespace: "default", Name: "basic-pd"})
		require.NoError(t, err)
		t.Cleanup(client.Close)
		o := operator{client, p}
		p.lead(t, "pd-1")
		o.beforeAnyStore(t)
		p.up3(t)
		p.add(t, p.store(420, "4", "h4", "z2"))
		p.joined(t, 420)
		o.rules(t)
		o.evictions(t)
		o.removals(t)
		o.loseStore(t)
		o.members(t)
	})
}

func (o operator) beforeAnyStore(t *testing.T) {
	v := o.view(t)
	assert.False(t, v.Bootstrapped)
	assert.Empty(t, v.Rules)
	assert.Empty(t, v.EvictLeader)
	regions, err := o.UnhealthyRegions(t.Context())
	require.NoError(t, err)
	assert.Empty(t, regions)
	require.ErrorIs(t, o.EvictLeaders(t.Context(), "1"), pd.ErrNotBootstrapped)
	require.ErrorIs(t, o.DeleteStore(t.Context(), "1"), pd.ErrNotBootstrapped)
}

func (o operator) rules(t *testing.T) {
	ctx := t.Context()
	standard := []pd.Rule{{Group: "pd", ID: "default", Role: "voter", Count: 3, LocationLabels: []string{"zone", "host"}}}
	assert.Equal(t, standard, o.view(t).Rules)
	require.NoError(t, o.SetConfig(ctx, map[string]any{"replication.enable-placement-rules": "false"}))
	o.run.expect(t, http.StatusPreconditionFailed, http.MethodGet, "pd-1", "/pd/api/v1/config/rules", "")
	v := o.view(t)
	assert.False(t, v.PlacementRules)
	assert.Empty(t, v.Rules)
	require.NoError(t, o.EnablePlacementRules(ctx))
	assert.Equal(t, standard, o.view(t).Rules)
	refused(t, o.SetConfig(ctx, map[string]any{"schedule.no-such-key": 1}), http.StatusBadRequest, "no-such-key not found")
}

func (o operator) evictions(t *testing.T) {
	ctx := t.Context()
	assert.NotZero(t, o.store(t, "4").Leaders)
	for range 2 {
		require.NoError(t, o.EvictLeaders(ctx, "4"))
		assert.Equal(t, []string{"4"}, o.view(t).EvictLeader)
	}
	refused(t, o.EvictLeaders(ctx, "77"), http.StatusInternalServerError, "store 77 not found")
	o.run.until(t, 10*time.Second, "leaders go", func() bool { return o.store(t, "4").Leaders == 0 })
	assert.NotZero(t, o.store(t, "4").Regions)
	for range 2 {
		require.NoError(t, o.StopEvictingLeaders(ctx, "4"))
		assert.Empty(t, o.view(t).EvictLeader)
	}
}

func (o operator) removals(t *testing.T) {
	ctx := t.Context()
	for range 2 {
		require.NoError(t, o.DeleteStore(ctx, "420"))
		assert.Equal(t, pd.StateOffline, o.store(t, "420").State)
	}
	refused(t, o.DeleteStore(ctx, "5"), http.StatusBadRequest, "ErrStoresNotEnough")
	refused(t, o.DeleteStore(ctx, "77"), http.StatusNotFound, "store 77 not found")
	for range 2 {
		require.NoError(t, o.RestoreStore(ctx, "420"))
		assert.Equal(t, pd.StateUp, o.store(t, "420").State)
	}
	require.NoError(t, o.DeleteStore(ctx, "420"))
	o.run.alive[420] = false
	before := o.view(t)
	o.run.until(t, 2*time.Minute, "a tombstone is not listed", func() bool {
		_, listed := o.view(t).Store("420")
		return !listed
	})
	assert.False(t, before.Equal(o.view(t)))
	refused(t, o.RestoreStore(ctx, "420"), http.StatusGone, "ErrStoreRemoved")
	refused(t, o.DeleteStore(ctx, "420"), http.StatusGone, "ErrStoreRemoved")
}

// loseStore has a store die, which is sooner Down than by default.
func (o operator) loseStore(t *testing.T) {
	ctx := t.Context()
	regions, err := o.UnhealthyRegions(ctx)
	require.NoError(t, err)
	assert.Empty(t, regions)
	require.NoError(t, o.SetConfig(ctx, map[string]any{"schedule.max-store-down-time": "1m"}))
	o.run.alive[5] = false
	o.run.until(t, 65*time.Second, "it is Down, and leaders tell of its peers", func() bool {
		s := o.store(t, "5")
		regions, err = o.UnhealthyRegions(ctx)
		require.NoError(t, err)
		return s.State == pd.StateDown && len(regions) == s.Regions
	})
	for _, r := range regions {
		assert.NotEmpty(t, r.LeaderStore)
		assert.NotEqual(t, "5", r.LeaderStore)
		assert.Len(t, r.Peers, 3)
		for _, peer := range r.Peers {
			assert.Equal(t, pd.Peer{StoreID: peer.StoreID, Voter: true, Down: peer.StoreID == "5"}, peer)
		}
	}
	o.run.alive[5] = true
	o.run.run(t, 10*time.Second)
}

func (o operator) members(t *testing.T) {
	require.NoError(t, o.TransferLeader(t.Context(), "pd-2"))
	require.Eventually(t, func() bool {
		v, err := o.View(t.Context())
		return err == nil && v.Leader == "pd-2"
	}, time.Minute, 50*time.Millisecond, "a transfer is only submitted")
	refused(t, o.TransferLeader(t.Context(), "pd-99"), http.StatusInternalServerError, "no valid pd to transfer etcd leader")
	refused(t, o.DeleteMember(t.Context(), "12345"), http.StatusInternalServerError, "member not found")
	v := o.view(t)
	third, ok := v.Member("pd-3")
	require.True(t, ok)
	// etcd counts a member only after five seconds.
	require.Eventually(t, func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		err := o.DeleteMember(ctx, third.ID)
		t.Logf("delete member: %v", err)
		var refusal *pd.Refused
		if errors.As(err, &refusal) {
			// It may have happened and be answered by etcd's client with a failure.
			return o.run.isReal() && strings.Contains(refusal.Body, "member not found")
		}
		assert.NoError(t, err)
		return err == nil
	}, time.Minute, 200*time.Millisecond)
	require.Eventually(t, func() bool {
		v, err := o.View(t.Context())
		names := []string{}
		for _, m := range v.Members {
			names = append(names, m.Name)
		}
		return err == nil && slices.Equal(names, []string{"pd-1", "pd-2"})
	}, time.Minute, 50*time.Millisecond)
}
