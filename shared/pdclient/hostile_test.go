package pdclient_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/shared/pd"
)

// perAnswer is what one answer of a PD may take at most, in bytes; an operator has
// 128 MiB for all of them.
const perAnswer = 64 << 20

// peak runs a piece of work and returns by how much the heap was larger at most.
func peak(t *testing.T, work func()) uint64 {
	t.Helper()
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)
	before, most := stats.HeapAlloc, stats.HeapAlloc
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				runtime.ReadMemStats(&stats)
				most = max(most, stats.HeapAlloc)
			}
		}
	}()
	work()
	close(stop)
	<-stopped
	return most - before
}

// endless serves each path, a text that is repeated up to so many bytes, and says how
// much of it was taken.
func endless(t *testing.T, path, head, repeated string, bytes int64, others map[string]answer) (string, *atomic.Int64) {
	t.Helper()
	var sent atomic.Int64
	chunk := strings.Repeat(repeated, 1+(32<<10)/len(repeated))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != path {
			a := others[r.URL.Path]
			w.WriteHeader(a.status)
			_, _ = io.WriteString(w, a.body)
			return
		}
		_, _ = io.WriteString(w, head)
		for sent.Load() < bytes {
			n, err := io.WriteString(w, chunk)
			sent.Add(int64(n))
			if err != nil {
				return
			}
		}
	}))
	t.Cleanup(server.Close)
	return server.URL, &sent
}

// P5, P10: the owner of a namespace decides what PD's Service answers there. No answer
// takes the memory that an operator has for everybody.
func TestP10NoAnswerOfAPDTakesTheMemoryOfOthers(t *testing.T) {
	good := map[string]answer{
		membersPath: recording(t, "10-up3-members"), healthPath: recording(t, "10-up3-health"),
		storesPath: recording(t, "10-up3-stores"), replicatePath: recording(t, "10-up3-config-replicate"),
		evictedPath: recording(t, "10-up3-scheduler-config-evict-leader-scheduler-list"),
		schedulers:  recording(t, "41-schedulers-two"),
		rulesPath:   recording(t, "10-up3-config-rules"),
	}
	const down = "/pd/api/v1/regions/check/down-peer"
	view := func(ctx context.Context, c pd.Client) error { _, err := c.View(ctx); return err }
	unhealthy := func(ctx context.Context, c pd.Client) error { _, err := c.UnhealthyRegions(ctx); return err }
	servers := func(ctx context.Context, c pd.Client) error { _, err := c.Servers(ctx); return err }
	find := func(ctx context.Context, c pd.Client) error {
		_, _, err := c.FindRegion(ctx, "1", func(pd.Region) bool { return false })
		return err
	}
	peers := strings.Repeat(`{"id":1,"store_id":2},`, 63) + `{"id":1,"store_id":2}`
	for _, c := range []struct {
		name, path, head, repeated string
		ask                        func(context.Context, pd.Client) error
		why                        string
	}{
		{"stores", storesPath, `{"stores":[{}`, ",{}", view, "stores cannot be used: it has more than 20000 stores"},
		{"a store of labels", storesPath, `{"stores":[{"store":{"labels":[{}`, ",{}", view, "stores cannot be used: a part of it is longer than 65536 bytes"},
		{"stores of labels", storesPath, `{"stores":[{}`, `,{"store":{"labels":[{}` + strings.Repeat(",{}", 64) + `]}}`, view, "stores cannot be used: it has something with 65 labels, more than 64"},
		{"stores with long names", storesPath, `{"stores":[{}`, `,{"store":{"address":"` + strings.Repeat("x", 60<<10) + `"}}`, view, "stores cannot be used: it is too long"},
		{"a name without end", storesPath, `{"stores":[{"store":{"address":"`, "x", view, "stores cannot be used: a part of it is longer than 65536 bytes"},
		{"an unknown field", storesPath, `{"other":[{}`, ",{}", view, "stores cannot be used: a part of it is longer than 65536 bytes"},
		{"keys", storesPath, `{"":0`, `,"` + strings.Repeat("x", 1<<10) + `":0`, view, "stores cannot be used: it is too long"},
		{"nothing", storesPath, ``, "        ", view, "stores cannot be used: a part of it is longer than 65536 bytes"},
		{"members", membersPath, `{"members":[{}`, ",{}", view, "members cannot be used: it has more than 64 members"},
		{"URLs of a member", membersPath, `{"members":[{"client_urls":[""`, `,""`, view, "members cannot be used: a part of it is longer than 65536 bytes"},
		{"health", healthPath, `[{}`, ",{}", view, "health cannot be used: it has more than 64 members"},
		{"replication", replicatePath, `{"a":0`, `,"a":0`, view, "replicate-config cannot be used: it is too long"},
		{"schedulers", schedulers, `["x"`, `,"x"`, view, "schedulers cannot be used: it is too long"},
		{"evicted", evictedPath, `{"store-id-ranges":{"1":0`, `,"1":0`, view, "evict-leader-config cannot be used: it is too long"},
		{"rules", rulesPath, `[{}`, ",{}", view, "rules cannot be used: it has more than 10000 rules"},
		{"rules with long names", rulesPath, `[{}`, `,{"id":"` + strings.Repeat("x", 60<<10) + `"}`, view, "rules cannot be used: it is too long"},
		{"rules of tables without end", rulesPath, `[{}`, `,{"group_id":"tiflash","role":"learner","start_key":"` + strings.Repeat("x", 1<<10) + `"}`, view, "rules cannot be used: it is too long"},
		{"labels of rules", rulesPath, `[{}`, `,{"location_labels":[""` + strings.Repeat(`,""`, 64) + `]}`, view, "rules cannot be used: it has something with 65 labels, more than 64"},
		{"regions without peers", down, `{"regions":[{}`, ",{}", unhealthy, "regions-down-peer cannot be used: it has more than 40000 regions"},
		{"regions full of peers", down, `{"regions":[{}`, `,{"peers":[` + peers + `]}`, unhealthy, "regions-down-peer cannot be used: it has more than 40000 regions"},
		{"peers of a region", down, `{"regions":[{"peers":[{}`, ",{}", unhealthy, "regions-down-peer cannot be used: a part of it is longer than 65536 bytes"},
		{"many peers of regions", down, `{"regions":[{}`, `,{"peers":[{}` + strings.Repeat(",{}", 64) + `]}`, unhealthy, "regions-down-peer cannot be used: it has something with 65 peers, more than 64"},
		{"servers", "/v3/kv/range", `{"kvs":[{}`, ",{}", servers, "servers cannot be used: it has more than 20000 keys"},
		{"a region that is sought", "/pd/api/v1/regions/store/1", `{"regions":[{"start_key":"`, "x", find, "regions-of-store cannot be used: a part of it is longer than 65536 bytes"},
		{"nested", storesPath, "", "[", view, "stores cannot be used: it is not an object"},
		{"nested regions", down, `{"regions":[`, "[", unhealthy, "regions-down-peer cannot be used: invalid character '[' exceeded max depth"},
	} {
		t.Run(c.name, func(t *testing.T) {
			url, sent := endless(t, c.path, c.head, c.repeated, 128<<20, good)
			client := dial(t, url)
			took := peak(t, func() {
				err := c.ask(within(t, time.Minute), client)
				require.ErrorContains(t, err, "PD's answer to "+c.why)
				assert.Less(t, len(err.Error()), 400)
			})
			assert.LessOrEqual(t, took, uint64(perAnswer))
			t.Logf("%d KiB of heap, %d KiB sent", took>>10, sent.Load()>>10)
		})
	}
}

// A list of regions that differ is what takes most of what is allowed.
func TestP10TheLongestListOfRegionsStaysSmall(t *testing.T) {
	var body bytes.Buffer
	body.WriteString(`{"count":1,"regions":[{}`)
	for n := 1; n < 39_999; n++ {
		fmt.Fprintf(&body, `,{"id":%d,"leader":{"store_id":%d},"peers":[{"id":1,"store_id":10000001},{"id":2,"store_id":10000002},{"id":3,"store_id":10000003},{"id":4,"store_id":10000004},{"id":5,"store_id":10000005}]}`, n, n)
	}
	body.WriteString(`]}`)
	server := newStandIn(t, map[string]answer{
		"/pd/api/v1/regions/check/down-peer":    {http.StatusOK, body.String()},
		"/pd/api/v1/regions/check/pending-peer": {http.StatusOK, body.String()},
		"/pd/api/v1/regions/check/miss-peer":    {http.StatusOK, `{"regions":[{"id":40000},{"id":40001}]}`},
	})
	client := dial(t, server.URL)
	var err error
	took := peak(t, func() { _, err = client.UnhealthyRegions(within(t, time.Minute)) })
	require.EqualError(t, err, "list unhealthy regions: PD's answer to regions-miss-peer cannot be used: it has more than 40000 regions")
	assert.LessOrEqual(t, took, uint64(perAnswer))
	t.Logf("%d KiB of heap", took>>10)
}

// A compressed answer is never asked for, and not believed: 8 KiB of it are 8 MiB.
func TestP10CompressedAnswersAreNotDecompressed(t *testing.T) {
	var packed bytes.Buffer
	writer := gzip.NewWriter(&packed)
	_, err := io.WriteString(writer, `{"stores":[{}`+strings.Repeat(",{}", (8<<20)/3)+"]}")
	require.NoError(t, err)
	require.NoError(t, writer.Close())
	members := recording(t, "10-up3-members")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assert.Empty(t, r.Header.Get("Accept-Encoding"))
		switch r.URL.Path {
		case membersPath:
			_, _ = io.WriteString(w, members.body)
		case healthPath:
			_, _ = io.WriteString(w, "[]")
		default:
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(packed.Bytes())
		}
	}))
	t.Cleanup(server.Close)
	client := dial(t, server.URL)
	took := peak(t, func() { _, err = client.View(within(t, time.Minute)) })
	require.EqualError(t, err, `PD's answer to stores cannot be used: invalid character '\x1f' looking for beginning of value`)
	assert.LessOrEqual(t, took, uint64(perAnswer))
}

// What PD likes as its answer's header is bounded as well, and what follows the answer
// is not believed to be part of it.
func TestP10HeadersOfAnAnswerAreBounded(t *testing.T) {
	header, after := strings.Repeat("x", 100<<10), ""
	members := recording(t, "10-up3-members")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Long", header)
		_, _ = io.WriteString(w, members.body+after)
	}))
	t.Cleanup(server.Close)
	_, err := dial(t, server.URL).View(within(t, time.Minute))
	require.EqualError(t, err, "PD at "+server.URL+" does not answer: network error")
	header, after = "", "{}"
	_, err = dial(t, server.URL).View(within(t, time.Minute))
	require.EqualError(t, err, "PD's answer to members cannot be used: there is more after it")
}
