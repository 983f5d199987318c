package conformance_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidb-groups/tidb-groups/e2e/model"
	"github.com/tidb-groups/tidb-groups/operators/pdgroup/resign"
	"github.com/tidb-groups/tidb-groups/operators/tikvgroup/handover"
	"github.com/tidb-groups/tidb-groups/shared/pdclient"
)

// KV-16: the program in the pods of TiKV speaks to PD with requests of its own. What
// comes of them is what the operators see.
func TestTheOrdersOfAStoresPod(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p *scenarioRun) {
		p.lead(t, "pd-1")
		stores := []model.StoreMeta{{ID: 1, Address: "b-0:20160", Version: "8.5.7"}, {ID: 4, Address: "b-1:20160", Version: "8.5.7"}, {ID: 5, Address: "b-2:20160", Version: "8.5.7"}}
		p.b.Bootstrap(t, stores[0])
		for _, s := range stores {
			p.b.Put(t, s)
			p.b.Heartbeat(t, s.ID)
		}
		client, err := pdclient.NewDialer(p.b.URL("pd-1"))(types.NamespacedName{Name: "a"})
		require.NoError(t, err)
		t.Cleanup(client.Close)
		o := operator{client, p}
		within := 10 * time.Second // all of it is waited for; a busy PD has answered by then
		if p.isReal() {
			within = timeout
			p.alive[1], p.alive[4], p.alive[5] = true, true, true
		}
		p.until(t, 0, "its leaders can go elsewhere", func() bool {
			first, last := o.store(t, "1"), o.store(t, "5")
			return first.Leaders > 0 && (!p.isReal() || last.Regions >= manyRegions)
		})

		job := handover.Job{PD: p.b.URL("pd-2"), Address: "b-0:20160", Record: filepath.Join(t.TempDir(), "record"), Poll: 10 * time.Millisecond}
		ctx, cancel := context.WithTimeout(t.Context(), within)
		defer cancel()
		err = job.Stop(ctx)
		if left := o.store(t, "1").Leaders; left > 0 {
			require.ErrorContains(t, err, fmt.Sprintf("the store is stopped with %d leaders", left), "the clock stands still")
		} else {
			require.NoError(t, err)
		}
		assert.Equal(t, []string{"1"}, o.view(t).EvictLeader)
		assert.FileExists(t, job.Record)
		require.NoError(t, job.Start(t.Context(), time.Minute))
		assert.Empty(t, o.view(t).EvictLeader)
		assert.NoFileExists(t, job.Record)

		require.NoError(t, client.EvictLeaders(t.Context(), "1"))
		ctx, cancel = context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_ = job.Stop(ctx) // the leader stays or goes
		require.NoError(t, job.Start(t.Context(), time.Minute))
		assert.Equal(t, []string{"1"}, o.view(t).EvictLeader, "what others keep away stays away")
	})
}

// The program in the pods of PD speaks to its own member.
func TestTheOrdersOfAMembersPod(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p *scenarioRun) {
		p.lead(t, "pd-1")
		p.follow(t, "pd-1", "pd-2", "pd-3")
		stop := func(member string) error {
			ctx, cancel := context.WithTimeout(t.Context(), timeout)
			defer cancel()
			return resign.Job{PD: p.b.URL(member), Name: member}.Stop(ctx)
		}
		require.NoError(t, stop("pd-2"))
		assert.Equal(t, "pd-1", p.leader(t, "pd-2", ""), "one that follows is stopped as it is")
		require.NoError(t, stop("pd-1"))
		assert.NotEqual(t, "pd-1", p.leader(t, "pd-2", ""), "it returns when another one leads")
	})
}
