package pdclient_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/pdclient"
)

// serveLate answers as server does, and one path only after some time.
func serveLate(t *testing.T, server *standIn, path string, after time.Duration) string {
	t.Helper()
	late := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == path {
			select {
			case <-time.After(after):
			case <-r.Context().Done():
				return
			}
		}
		a := server.answers[r.URL.Path]
		w.WriteHeader(a.status)
		_, _ = io.WriteString(w, a.body)
	}))
	t.Cleanup(late.Close)
	return late.URL
}

// PD asks one member after the other, and waits three seconds for each that a dead node keeps
// from answering (in PD's sources server/cluster.CheckHealth).
func TestPDIsKnownWhileItWaitsForMembersThatDoNotAnswer(t *testing.T) {
	t.Parallel()
	server := replay(t, "10-up3-members", "10-up3-health", "10-up3-stores", "10-up3-config-replicate")
	poller := pd.NewPoller(pdclient.NewDialer(serveLate(t, server, healthPath, 3*time.Second)))
	view := poller.Ask(t.Context(), basic)
	require.NoError(t, view.Err)
	assert.NotEmpty(t, view.Leader)
}

func TestAPDThatSaysNothingIsNamedWithinTwoSeconds(t *testing.T) {
	t.Parallel()
	for _, path := range []string{membersPath, storesPath, replicatePath} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			server := replay(t, "10-up3-members", "10-up3-health", "10-up3-stores", "10-up3-config-replicate")
			poller := pd.NewPoller(pdclient.NewDialer(serveLate(t, server, path, time.Minute)))
			begin := time.Now()
			view := poller.Ask(t.Context(), basic)
			require.ErrorIs(t, view.Err, context.DeadlineExceeded)
			assert.Less(t, time.Since(begin), 4*time.Second)
		})
	}
}
