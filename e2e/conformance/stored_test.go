package conformance_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidb-groups/tidb-groups/operators/pdgroup/persisted"
	"github.com/tidb-groups/tidb-groups/shared/pdclient"
)

// storedItems is a file with one item of each form that PD has, none as PD has it.
const storedItems = `
[schedule]
leader-schedule-limit = 8
low-space-ratio = 0.85
max-store-down-time = "1h30m"
enable-debug-metrics = true
halt-scheduling = true
[replication]
location-labels = ["region", "zone"]
max-replicas = 5
[pd-server]
flow-round-by-digit = 4
dashboard-address = "none"
[replication-mode.dr-auto-sync]
label-key = "zone"
[keyspace]
wait-region-split = false
`

// PD-21: what a file says of the tables that PD stores is given to PD by its API, is
// shown from then on, and is not given twice, whichever member is asked.
func TestStoredItemsOfAFile(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p *scenarioRun) {
		p.lead(t, "pd-1")
		p.follow(t, "pd-1", "pd-2")
		p.up3(t)
		client, err := pdclient.NewDialer(p.b.URL("pd-2"), pdclient.WithConfig())(types.NamespacedName{Name: "a"})
		require.NoError(t, err)
		t.Cleanup(client.Close)
		o := operator{client, p}
		items := persisted.ParseItems(storedItems)
		missing := persisted.FindMissing(items, o.view(t).Config)
		assert.Len(t, missing, len(items), "%v", missing)
		for _, item := range missing {
			assert.NoError(t, o.SetConfig(t.Context(), map[string]any{item.Key: item.Send}), item.String())
		}
		assert.Empty(t, persisted.FindMissing(items, o.view(t).Config))
		p.lead(t, "pd-3")
		p.follow(t, "pd-3", "pd-2")
		missing = persisted.FindMissing(items, o.view(t).Config)
		if p.isReal() {
			// PD of April 2024 does not load this one; it is not known whether v8.5.7 does.
			// The operator gives it to each leader again.
			require.Len(t, missing, 1)
			assert.Equal(t, "pd-server.flow-round-by-digit", missing[0].Key)
			assert.NoError(t, o.SetConfig(t.Context(), map[string]any{missing[0].Key: missing[0].Send}))
			missing = persisted.FindMissing(items, o.view(t).Config)
		}
		assert.Empty(t, missing, "the next leader has it")
		for _, wrong := range []struct {
			key   string
			value any
			why   string
		}{
			{"schedule.no-such-key", 1, "not found"},
			{"schedule.max-store-down-time", "soon", "invalid duration"},
			{"schedule.leader-schedule-limit", "many", "cannot unmarshal"},
			{"replication-mode.no-such-key", "x", "not found"},
			{"no-such-table.key", 1, "not found"},
		} {
			t.Run(wrong.key, func(t *testing.T) {
				refused(t, o.SetConfig(t.Context(), map[string]any{wrong.key: wrong.value}), http.StatusBadRequest, wrong.why)
			})
		}
	})
}
