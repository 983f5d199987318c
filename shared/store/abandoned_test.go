package store_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/conditions"
	"github.com/tidb-groups/tidb-groups/shared/group"
	"github.com/tidb-groups/tidb-groups/shared/lease"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/store"
)

func TestStoresThatADeletedGroupHasLeftBehindAreNamed(t *testing.T) {
	hot := func(n, state string) pd.Store {
		return pd.Store{ID: "9" + n, Address: "hot-" + n + ".hot-peer.ns.svc:20160", State: state, Regions: 1}
	}
	one := "3 of 3 stores are Up; store 90 (hot-0) does not run and its group is gone: have PD remove it: kubectl -n ns exec svc/pd -- /pd-ctl store delete 90; or make the group again, with its claims, and scale it to 0"
	for name, c := range map[string]struct {
		stores []pd.Store
		change func(*group.Snapshot)
		says   string
	}{
		"nothing is left":                       {nil, nil, "3 of 3 stores are Up"},
		"its pods have just stopped":            {[]pd.Store{hot("0", pd.StateUp)}, nil, "3 of 3 stores are Up"},
		"PD misses it":                          {[]pd.Store{hot("0", pd.StateDisconnected)}, nil, one},
		"PD has given it up, which changes not": {[]pd.Store{hot("0", pd.StateDown)}, nil, one},
		"a person has PD remove it":             {[]pd.Store{hot("0", pd.StateOffline)}, nil, "3 of 3 stores are Up"},
		"there are two":                         {[]pd.Store{hot("0", pd.StateDown), hot("1", pd.StateDown)}, nil, one + "; and 1 more"},
		"its Instance is there": {[]pd.Store{hot("0", pd.StateDown)}, func(s *group.Snapshot) {
			i := member(0, "90")
			i.Name = "hot-0"
			s.Peers = append(s.Peers, i)
		}, "3 of 3 stores are Up"},
		"its Instance is made anew": {[]pd.Store{hot("0", pd.StateDisconnected)}, func(s *group.Snapshot) {
			s.Lease = lease.State{Holder: lease.Holder{Kind: v1alpha1.KindTiKVGroup, Instance: "hot-0"}, Returns: "hot"}
		}, "3 of 3 stores are Up"},
		"a TiFlash is none of TiKV's": {[]pd.Store{{ID: "90", Address: "hot-0.hot-peer.ns.svc:3930", State: pd.StateDown, Labels: map[string]string{"engine": "tiflash"}}}, nil, "3 of 3 stores are Up"},
	} {
		t.Run(name, func(t *testing.T) {
			g, s := world()
			s.PD.Stores = append(s.PD.Stores, c.stores...)
			if c.change != nil {
				c.change(&s)
			}
			set := conditions.New(nil, 1, now())
			store.PutHealth(g, s, store.Matches(g, s, v1alpha1.PortTiKV), store.Gate{}, set)
			got := set.Get(v1alpha1.ConditionStoresHealthy)
			assert.Equal(t, c.says, got.Message)
			assert.Equal(t, v1alpha1.ReasonStoresHealthy, got.Reason, "the group's own are well")
		})
	}
}
