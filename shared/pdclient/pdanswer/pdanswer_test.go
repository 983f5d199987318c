package pdanswer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/shared/pd"
)

// repeated is a list of n equal elements.
func repeated(n int, element string) string {
	return "[" + strings.TrimSuffix(strings.Repeat(element+",", n), ",") + "]"
}

func health(members int) string { return repeated(members, `{"member_id":1,"health":true}`) }

// peers is an answer of one region.
func peers(n int) string {
	return fmt.Sprintf(`{"count":1,"regions":[{"id":7,"peers":%s}]}`, repeated(n, `{"id":1,"store_id":1}`))
}

func regions(most int, counted bool) *Regions {
	return &Regions{Bytes: 1 << 20, Most: most, Counted: counted, Each: func(int64, pd.Region) error { return nil }}
}

// P10: what an answer may hold is counted while it is read, to the last one that may be.
func TestP10OnlyValidAnswersAreAccepted(t *testing.T) {
	for name, c := range map[string]struct {
		body  string
		into  any
		wrong string
	}{
		"as many members as there may be":       {health(maxMembers), &Health{}, ""},
		"one more":                              {health(maxMembers + 1), &Health{}, "it has more than 64 members"},
		"as many peers as a region may have":    {peers(maxLabels), regions(1, true), ""},
		"one more peer":                         {peers(maxLabels + 1), regions(1, true), "it has something with 65 peers, more than 64"},
		"no list at all":                        {`{"kvs":null}`, &Keys{}, ""},
		"something else than a list":            {`{"kvs":{}}`, &Keys{}, "its keys are no list"},
		"something else than an object":         {`[]`, &Keys{}, "it is not an object"},
		"unknown fields are skipped":            {`{"header":{"revision":"9"},"kvs":[],"more":[[1]]}`, &Keys{}, ""},
		"one element that is too long":          {`{"kvs":[{"key":"` + strings.Repeat("A", 2*maxPiece) + `"}]}`, &Keys{}, "a part of it is longer than 65536 bytes"},
		"more after the answer":                 {`{"kvs":[]} {}`, &Keys{}, "there is more after it"},
		"only its beginning":                    {`{"kvs":[`, &Keys{}, io.ErrUnexpectedEOF.Error()},
		"nothing":                               {``, &Keys{}, io.ErrUnexpectedEOF.Error()},
		"fewer regions than it says":            {`{"count":2,"regions":[{"id":7}]}`, regions(9, true), "it has 1 regions and says 2"},
		"fewer where a part was asked for":      {`{"count":2,"regions":[{"id":7}]}`, regions(9, false), ""},
		"a configuration that is read at once":  {`{"max-replicas":3}`, &Replicate{}, ""},
		"a longer one than anybody has":         {`{"location-labels":"` + strings.Repeat("A", maxConfig) + `"}`, &Replicate{}, "it is too long"},
		"placement rules that are neither":      {`{"enable-placement-rules":"maybe"}`, &Replicate{}, `read "maybe" as a boolean`},
		"a list that is longer than was wanted": {`{"count":2,"regions":[{"id":7},{"id":8}]}`, regions(1, true), "it has more than 1 regions"},
	} {
		t.Run(name, func(t *testing.T) {
			broken, err := Decode(strings.NewReader(c.body), c.into)
			require.NoError(t, broken, "the connection is whole")
			if c.wrong == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.wrong)
		})
	}
}

// A connection that breaks says nothing against the answer.
func TestABrokenConnectionIsReported(t *testing.T) {
	broken, err := Decode(io.MultiReader(strings.NewReader(`{"kvs":[`), brokenPipe{}), &Keys{})
	require.ErrorIs(t, broken, io.ErrClosedPipe)
	require.Error(t, err)
}

type brokenPipe struct{}

func (brokenPipe) Read([]byte) (int, error) { return 0, io.ErrClosedPipe }

// viewOfTwo is what PD says of a store of a state that it last heard of at a time, beside one that is Up.
func viewOfTwo(state string, heard, newest time.Time) pd.View {
	answer := Stores{stores: make([]store, 2)}
	answer.stores[0].Store.ID, answer.stores[0].Store.StateName = 1, state
	answer.stores[0].Status.LastHeartbeat = heard
	answer.stores[1].Store.ID, answer.stores[1].Store.StateName = 2, pd.StateUp
	answer.stores[1].Status.LastHeartbeat = newest
	view := pd.View{}
	AddStores(&view, answer)
	return view
}

// A store that is removed is Offline for PD whether it runs or not; when PD last heard of it tells
// that it does not, by when it heard of the others, whatever time it is there.
func TestAStoreThatIsRemovedIsMissedOnceItSendsNothing(t *testing.T) {
	newest := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		state  string
		ago    time.Duration
		missed bool
	}{
		"it was heard of with the others": {pd.StateOffline, 0, false},
		"its next word is due":            {pd.StateOffline, 19 * time.Second, false},
		"it is overdue":                   {pd.StateOffline, 20 * time.Second, true},
		"PD says so itself":               {pd.StateDisconnected, 20 * time.Second, false},
	} {
		view := viewOfTwo(c.state, newest.Add(-c.ago), newest)
		assert.Equal(t, c.missed, view.Stores[0].Missed, name)
		assert.False(t, view.Stores[1].Missed, name)
	}
}

// A new leader of PD finds a heartbeat stored that may be five minutes older than the last one: what
// is longer ago is certain. Nothing is of a store that PD never heard.
func TestTheAgeOfAHeartbeatIsWhatIsCertain(t *testing.T) {
	newest := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		last time.Time
		age  time.Duration
	}{
		"it was heard of with the others":    {newest, 0},
		"another leader may have heard more": {newest.Add(-unstored), 0},
		"no leader can have":                 {newest.Add(-unstored - time.Hour), time.Hour},
		"it was never heard of":              {time.Unix(0, 0), 0},
		"an older PD tells nothing":          {time.Time{}, 0},
	} {
		view := viewOfTwo(pd.StateDown, c.last, newest)
		assert.Equal(t, c.age, view.Stores[0].HeartbeatAge, name)
		assert.Zero(t, view.Stores[1].HeartbeatAge, name)
	}
}

// PD gives no regions to a store with less than a fifth of its disk free, unless it has few
// and 8 GiB are free, as on a disk that others fill. Of what cannot be read nothing is said, so
// that no store is taken for full by mistake.
func TestADiskIsFullWithLessThanAFifthFree(t *testing.T) {
	for name, c := range map[string]struct {
		capacity, available string
		regions             int
		full                bool
	}{
		"a fifth is free":                      {"100GiB", "20GiB", 100, false},
		"less than a fifth":                    {"100GiB", "19.9GiB", 100, true},
		"nothing":                              {"1TiB", "0B", 100, true},
		"sizes of other units":                 {"1TiB", "300GiB", 100, false},
		"a disk without a size":                {"0B", "0B", 100, false},
		"a size that is not there":             {"", "", 100, false},
		"free space of no size":                {"100GiB", "little", 100, false},
		"less than a fifth, with few regions":  {"1TiB", "150GiB", 99, false},
		"little, with few regions":             {"100GiB", "8GiB", 99, true},
		"as much, with few regions, but a bit": {"100GiB", "8.1GiB", 99, false},
	} {
		assert.Equal(t, c.full, hasLowSpace(c.capacity, c.available, c.regions), name)
	}
}

// PD-21: what PD stores is compared item by item, so each has a key and its own value.
func TestPD21ItemsOfAConfigurationHaveKeysWithDots(t *testing.T) {
	var answer map[string]json.RawMessage
	require.NoError(t, json.Unmarshal([]byte(`{
		"schedule": {"max-snapshot-count": 64, "store-limit": {"1": {"add-peer": 15}}, "schedulers-v2": [{"type": "hot-region"}], "nothing": null},
		"log": {"level": "info"}
	}`), &answer))
	var v pd.View
	AddConfig(&v, answer)
	assert.Equal(t, map[string]string{
		"schedule.max-snapshot-count":     "64",
		"schedule.store-limit.1.add-peer": "15",
		"schedule.schedulers-v2":          `[{"type": "hot-region"}]`,
		"schedule.nothing":                "null",
	}, v.Config, "and nothing of tables that PD reads from its file")
}

func TestLabelsOfPlacesAreReadInTheirOrder(t *testing.T) {
	for _, c := range []struct {
		text string
		want []string
	}{{"zone,host", []string{"zone", "host"}}, {" zone , host ,", []string{"zone", "host"}}, {"", nil}} {
		var v pd.View
		AddReplicate(&v, Replicate{LocationLabels: c.text, PlacementRules: true})
		assert.Equal(t, c.want, v.LocationLabels, "%q", c.text)
		assert.True(t, v.PlacementRules)
	}
}

// P5: TiDB gives PD a rule for each table, and each partition, with replicas that are learners. What
// they ask for is alike, and a cluster of very many is managed as any other.
func TestVeryManyRulesOfTablesThatAskForTheSameAreOne(t *testing.T) {
	var body strings.Builder
	body.WriteString(`[{"group_id": "pd", "id": "default", "start_key": "", "end_key": "", "role": "voter", "count": 3}`)
	for table := range 30_000 {
		fmt.Fprintf(&body, `,
  {
    "group_id": "tiflash",
    "id": "table-%d-r",
    "index": 120,
    "start_key": "7480000000%08xff2d5f720000000000fa",
    "end_key": "7480000000%08xff2e00000000000000f8",
    "role": "learner",
    "is_witness": false,
    "count": %d,
    "label_constraints": [
      {
        "key": "engine",
        "op": "in",
        "values": [
          "tiflash"
        ]
      }
    ],
    "create_timestamp": 1764430000
  }`, table, table, table, 1+table%2)
	}
	body.WriteString("]")
	var answer Rules
	broken, err := Decode(strings.NewReader(body.String()), &answer)
	require.NoError(t, errors.Join(broken, err))
	var v pd.View
	AddRules(&v, answer)
	var ids []string
	for _, r := range v.Rules {
		ids = append(ids, r.ID)
	}
	assert.Equal(t, []string{"default", "table-0-r", "table-1-r"}, ids)
}
