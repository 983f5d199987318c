package settings_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/e2e/model/settings"
	tidbport "github.com/tidb-groups/tidb-groups/operators/tidbgroup/statusport"
	"github.com/tidb-groups/tidb-groups/operators/tikvgroup/statusport"
	online "github.com/tidb-groups/tidb-groups/shared/settings"
)

func sample(kind online.Kind) string {
	return map[online.Kind]string{online.Text: "warn", online.LogLevel: "warn", online.Number: "3", online.Fraction: "3", online.Bool: "true", online.Size: "3MB", online.Duration: "3s"}[kind]
}

func TestTiKVTakesEveryItemOfTheOperatorsListAndShowsIt(t *testing.T) {
	c, err := settings.NewTiKV(nil)
	require.NoError(t, err)
	for _, item := range statusport.SettingsTable().Items {
		text := sample(item.Kind)
		require.NoError(t, c.Change(map[string]string{item.Key: text}))
		shown, has := c.Value(item.Key)
		assert.True(t, has, item.Key)
		assert.Equal(t, item.Kind.Normalize(text), item.Kind.Normalize(shown), item.Key)
	}
}

func TestTiKVRefusesWhatItDoesNotKnowAndTakesAllOrNone(t *testing.T) {
	c, err := settings.NewTiKV(map[string]any{"raftstore": map[string]any{"apply-pool-size": 2}})
	require.NoError(t, err)
	post := func(body string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		c.TiKV(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/config?persist=false", strings.NewReader(body)))
		return w
	}
	w := post(`{"raftstore.apply-pool-size":"4","raftstore.capacity":"1GB"}`)
	assert.Equal(t, http.StatusInternalServerError, w.Code)
	assert.Equal(t, `failed to update, error: "config raftstore.capacity can not be changed"`, w.Body.String())
	value, _ := c.Value("raftstore.apply-pool-size")
	assert.Equal(t, "2", value)
	assert.Equal(t, http.StatusOK, post(`{"raftstore.apply-pool-size":4}`).Code)
	value, _ = c.Value("raftstore.apply-pool-size")
	assert.Equal(t, "4", value)

	_, err = settings.NewTiKV(map[string]any{"raftstore": map[string]any{"raft-entry-max-size": "lots"}})
	assert.ErrorContains(t, err, "raftstore.raft-entry-max-size")
}

func TestTiDBTakesEveryItemOfTheOperatorsListAndShowsWhatItShows(t *testing.T) {
	c, err := settings.NewTiDB(nil)
	require.NoError(t, err)
	server := httptest.NewServer(http.HandlerFunc(c.TiDB))
	t.Cleanup(server.Close)
	for _, item := range tidbport.SettingsTable().Items {
		text := map[online.Kind]string{online.Text: "warn", online.Number: "3", online.Bool: "true"}[item.Kind]
		if strings.HasPrefix(item.Key, "instance.tidb_") {
			text = "1"
		}
		response, err := http.PostForm(server.URL+"/settings", url.Values{item.Name: {text}}) //nolint:noctx // a test
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		assert.Equal(t, http.StatusOK, response.StatusCode, item.Key)
		runs, has := c.Value(item.Key)
		assert.True(t, has, item.Key)
		assert.Equal(t, item.Kind.Normalize(text), item.Kind.Normalize(runs), item.Key)
	}
	response, err := http.PostForm(server.URL+"/settings", url.Values{"deadlock_history_capacity": {"10001"}}) //nolint:noctx // a test
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	assert.Equal(t, http.StatusBadRequest, response.StatusCode)
}
