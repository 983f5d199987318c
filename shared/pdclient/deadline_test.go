package pdclient_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/pd/polling"
	"github.com/tidb-groups/tidb-groups/shared/pdclient"
	"github.com/tidb-groups/tidb-groups/shared/turns"
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
	poller := polling.New(pdclient.NewDialer(serveLate(t, server, healthPath, 3*time.Second)))
	view := poller.Ask(t.Context(), basic)
	require.NoError(t, view.Err)
	assert.NotEmpty(t, view.Leader)
}

// PD of v8.5 waits three seconds for a leader before it says that there is none (in PD's sources
// pkg/utils/apiutil/serverapi.redirector.waitForLeader); it tells at once who leads by what it knows.
func TestAPDThatWaitsForALeaderHasNone(t *testing.T) {
	t.Parallel()
	assert.Less(t, pdclient.LeaderProbe, pdclient.AnswerDeadline)
	assert.Less(t, pdclient.AnswerDeadline, 3*time.Second)
	for leader, deadline := range map[string]time.Duration{"null": time.Minute, `{"name": "pd-0", "member_id": 7}`: time.Second} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/pd/api/v1/leader" && r.Header.Get("PD-Allow-follower-handle") != "" {
				_, _ = io.WriteString(w, leader)
				return
			}
			<-r.Context().Done() // it waits longer than it is waited for
		}))
		t.Cleanup(server.Close)
		lacks := leader == "null"
		_, err := dial(t, server.URL, pdclient.WithTiming(deadline, 50*time.Millisecond)).View(t.Context())
		assert.Equal(t, lacks, errors.Is(err, pd.ErrNoLeader), "%v", err)
		assert.Equal(t, !lacks, errors.Is(err, context.DeadlineExceeded), "%v", err)
	}
}

func TestAPDThatSaysNothingIsNamedWithinTwoSeconds(t *testing.T) {
	t.Parallel()
	for _, path := range []string{membersPath, storesPath, replicatePath} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			server := replay(t, "10-up3-members", "10-up3-health", "10-up3-stores", "10-up3-config-replicate")
			poller := polling.New(pdclient.NewDialer(serveLate(t, server, path, time.Minute)))
			begin := time.Now()
			view := poller.Ask(t.Context(), basic)
			require.ErrorIs(t, view.Err, context.DeadlineExceeded)
			assert.Less(t, time.Since(begin), 10*time.Second, "the poll itself ends after %s", turns.DefaultTiming().Deadline)
		})
	}
}
