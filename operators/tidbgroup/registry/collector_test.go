package registry_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tidb-groups/tidb-groups/operators/tidbgroup/registry"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/pd/pdtest"
)

const (
	enough = 10 * time.Second
	beat   = 5 * time.Millisecond
)

// listening counts how often PD's servers are listed.
type listening struct {
	*pdtest.PD
	mu    sync.Mutex
	looks int
}

func (l *listening) Servers(ctx context.Context) ([]pd.Server, error) {
	l.mu.Lock()
	l.looks++
	l.mu.Unlock()
	return l.PD.Servers(ctx)
}

func (l *listening) looked() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.looks
}

// collecting returns a Collector for one PD.
func collecting(t *testing.T, timeout time.Duration) (*registry.Collector, *listening) {
	t.Helper()
	l := &listening{PD: pdtest.New(pd.View{})}
	return registry.NewCollector(func(name types.NamespacedName) (registry.PD, error) {
		assert.Equal(t, pdName, name)
		return l, nil
	}, registry.Timing{Between: beat, Timeout: timeout, Call: time.Second}), l
}

func TestDB19ServersThatHaveLeftAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, l := collecting(t, enough)
		leaving := sql("db-2", 5)
		leaving.Alive = true
		stranger := pd.Server{Address: "10.0.0.7:4000", Revision: 1}
		l.RegisterServers(sql("db-0", 3), leaving, stranger)
		c.Collect(t.Context(), having("db-0", "db-1"))
		require.Eventually(t, func() bool { return l.looked() > 3 }, enough, beat, "its lease may end soon")
		left, err := l.PD.Servers(t.Context())
		require.NoError(t, err)
		assert.Len(t, left, 3, "a server that lives is listed")

		l.RegisterServers(sql("db-0", 3), sql("db-2", 5), stranger)
		require.Eventually(t, func() bool { return len(l.Calls()) == 1 }, enough, beat)
		assert.Equal(t, []string{"forget " + leaving.Address}, l.Calls())
		left, err = l.PD.Servers(t.Context())
		require.NoError(t, err)
		assert.Equal(t, []pd.Server{sql("db-0", 3), stranger}, left)
	})
}

func TestDB19PDIsAskedOnceForTheSameMembers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, l := collecting(t, enough)
		l.RegisterServers(sql("db-0", 3))
		c.Collect(t.Context(), having("db-0"))
		require.Eventually(t, func() bool { return l.looked() == 1 }, enough, beat)
		for range 10 {
			c.Collect(t.Context(), having("db-0"))
		}
		c.Collect(t.Context(), having("db-0", "db-1"))
		require.Eventually(t, func() bool { return l.looked() == 2 }, enough, beat, "the members have changed")
		c.Forget(groupName)
		c.Collect(t.Context(), having("db-0", "db-1"))
		require.Eventually(t, func() bool { return l.looked() == 3 }, enough, beat, "a new group of the same name")
		assert.Never(t, func() bool { return l.looked() > 3 }, 20*beat, beat)
	})
}

func TestDB19TheCollectorGoesOnWhenPDAnswersAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, l := collecting(t, enough)
		l.Refuse(errors.New("no leader"))
		l.RegisterServers(sql("db-7", 3))
		c.Collect(t.Context(), having())
		require.Eventually(t, func() bool { return l.looked() > 2 }, enough, beat)
		l.Refuse(nil)
		require.Eventually(t, func() bool { return len(l.Calls()) == 1 }, enough, beat)
	})
}

func TestDB19APDThatDidNotAnswerForTooLongIsAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, l := collecting(t, 4*beat)
		l.Refuse(errors.New("no leader"))
		l.RegisterServers(sql("db-7", 3))
		gaveUp := make(chan string, 1)
		c.Collect(log.IntoContext(t.Context(), funcr.New(func(_, args string) { gaveUp <- args }, funcr.Options{})), having())
		select {
		case <-gaveUp:
		case <-time.After(enough):
			t.Fatal("it goes on looking")
		}
		l.Refuse(nil)
		require.Eventually(t, func() bool { c.Collect(t.Context(), having()); return len(l.Calls()) == 1 }, enough, beat)
	})
}

func TestDB19TheCollectorGivesUpOnALivingServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, l := collecting(t, 4*beat)
		lives := sql("db-7", 3)
		lives.Alive = true
		l.RegisterServers(lives)
		said := make(chan string, 1)
		c.Collect(log.IntoContext(t.Context(), funcr.New(func(_, args string) { said <- args }, funcr.Options{})), having())
		select {
		case text := <-said:
			assert.Contains(t, text, lives.Address)
		case <-time.After(enough):
			t.Fatal("it goes on looking")
		}
		assert.Greater(t, l.looked(), 1)
		assert.Empty(t, l.Calls())
	})
}
