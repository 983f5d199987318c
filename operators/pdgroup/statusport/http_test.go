package statusport_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/operators/pdgroup/statusport"
	"github.com/tidb-groups/tidb-groups/shared/testkit/loopback"
)

// PD-10: by its sources a member answers 200 if it has loaded the regions, and 500 if not; one that is
// still starting 503, and a version that knows no such path 404.
func TestPD10AMemberSaysWhetherItHasLoadedTheRegions(t *testing.T) {
	status := http.StatusOK
	s, host := loopback.NewServer(t, 2379, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, "/pd/api/v2/ready", r.URL.Path)
		w.WriteHeader(status)
	}))
	s.Start()
	for answer, want := range map[int]string{
		http.StatusOK: statusport.Loaded, http.StatusInternalServerError: statusport.Loading,
		http.StatusServiceUnavailable: statusport.Loading, http.StatusNotFound: "",
	} {
		status = answer
		state, err := statusport.ReadState(t.Context(), host)
		require.NoError(t, err)
		assert.Equal(t, want, state)
	}
	s.Close()
	_, err := statusport.ReadState(t.Context(), host)
	require.ErrorContains(t, err, "connection refused")
	assert.True(t, statusport.IsFinal(statusport.Loaded))
	assert.False(t, statusport.IsFinal(statusport.Loading))
}
