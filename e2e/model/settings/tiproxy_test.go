package settings_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/e2e/model/settings"
)

func TestTiProxyTakesAPartOfItsFileOrNothing(t *testing.T) {
	c, err := settings.NewTiProxy(map[string]any{"proxy": map[string]any{"max-connections": 7}})
	require.NoError(t, err)
	put := func(text string) (int, string) {
		w := httptest.NewRecorder()
		c.TiProxy(w, httptest.NewRequest(http.MethodPut, "/api/admin/config/", strings.NewReader(text)))
		return w.Code, w.Body.String()
	}
	code, _ := put("[log]\nlevel = 'warn'\n[proxy]\nconn-buffer-size = 2048\n")
	assert.Equal(t, http.StatusOK, code)
	code, says := put("[log]\nlevel = 'error'\n[proxy]\nconn-buffer-size = 1\n")
	assert.Equal(t, http.StatusInternalServerError, code)
	assert.Contains(t, says, "between 1K and 16M")
	code, _ = put("[log\n")
	assert.Equal(t, http.StatusInternalServerError, code)

	w := httptest.NewRecorder()
	c.TiProxy(w, httptest.NewRequest(http.MethodGet, "/api/admin/config/?format=json", nil))
	var shown map[string]any
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &shown))
	assert.Equal(t, map[string]any{"log": map[string]any{"level": "warn"}, "proxy": map[string]any{"max-connections": 7.0, "conn-buffer-size": 2048.0}}, shown)

	code, _ = put("[labels]\nzone = 'a'\n")
	assert.Equal(t, http.StatusOK, code)
	code, says = put("labels.zone = 7\n")
	assert.Equal(t, http.StatusInternalServerError, code)
	assert.Contains(t, says, "labels.zone")
	code, _ = put("[labels]\nteam = 'x'\n")
	assert.Equal(t, http.StatusOK, code)
	for key, want := range map[string]string{"labels.zone": "a", "labels.team": "x"} {
		has, _ := c.Value(key)
		assert.Equal(t, want, has, "labels are added one by one")
	}

	_, err = settings.NewTiProxy(map[string]any{"log": map[string]any{"level": "loud"}})
	require.ErrorContains(t, err, "unrecognized level")
}
