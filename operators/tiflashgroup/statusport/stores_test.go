package statusport_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/tiflashgroup/statusport"
	"github.com/tidb-groups/tidb-groups/shared/httpclient"
	"github.com/tidb-groups/tidb-groups/shared/statusports"
	"github.com/tidb-groups/tidb-groups/shared/testkit/loopback"
)

// stores are Instances whose pods are ready.
func stores(count int) []*v1alpha1.Instance {
	var out []*v1alpha1.Instance
	for n := range count {
		i := &v1alpha1.Instance{}
		i.Name, i.Generation = fmt.Sprintf("flash-%d", n), 1
		i.Status.PodUID, i.Status.PodIP = types.UID(i.Name), fmt.Sprintf("10.0.0.%d", n+1)
		i.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionPodReady, Status: metav1.ConditionTrue, ObservedGeneration: 1}}
		out = append(out, i)
	}
	return out
}

// openly is how stores are connected to without TLS.
func openly(*v1alpha1.Instance) *tls.Config { return nil }

// storeSimulation are stores that answer as a test says.
type storeSimulation struct {
	mu     sync.Mutex
	states map[string]string // by host; "mute" does not answer
	asked  map[string]int
}

func (p *storeSimulation) ask(ctx context.Context, host string) (string, error) {
	p.mu.Lock()
	p.asked[host]++
	state := p.states[host]
	p.mu.Unlock()
	if state == "mute" {
		<-ctx.Done()
		return "", errors.New("no answer in time")
	}
	return state, nil
}

func (p *storeSimulation) say(host, state string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.states[host] = state
}

// FL-06, P9: a process that serves, or does not tell, is asked once, one that does not
// serve yet is asked again, and unreachable ones hold nothing up for long.
func TestFL06StoresAreAskedUntilTheyServe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &storeSimulation{states: map[string]string{"10.0.0.1": "Running", "10.0.0.2": "Idle", "10.0.0.4": "mute"}, asked: map[string]int{}}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		m := statusports.New(ctx, p.ask, statusport.IsFinal, time.Now)
		key, all := types.NamespacedName{Namespace: "shop", Name: "flash"}, stores(4) // the third does not tell
		said, pending := m.Observe(key, all, openly)
		assert.Empty(t, said)
		assert.True(t, pending)
		synctest.Wait()
		assert.Len(t, m.Answers(), 3, "the group is woken up")
		said, pending = m.Observe(key, all, openly)
		assert.True(t, pending, "one has not answered")
		assert.Equal(t, "Running", said["flash-0"].State)
		assert.True(t, said["flash-0"].IsFrom(all[0]))
		assert.Equal(t, "Idle", said["flash-1"].State)
		assert.Empty(t, said["flash-2"].State)

		<-time.After(statusports.FirstAnswerTimeout)
		synctest.Wait()
		said, pending = m.Observe(key, all, openly)
		assert.False(t, pending)
		require.Error(t, said["flash-3"].Err)
		synctest.Wait()
		assert.Equal(t, 1, p.asked["10.0.0.1"])
		assert.Equal(t, 2, p.asked["10.0.0.2"])
		assert.Equal(t, 1, p.asked["10.0.0.3"])
		for len(m.Answers()) > 0 {
			<-m.Answers()
		}
		<-time.After(statusports.FirstAnswerTimeout)
		m.Observe(key, all, openly)
		synctest.Wait()
		assert.Empty(t, m.Answers(), "an answer that is the same wakes no group")

		// Another process says nothing before it was asked.
		p.say("10.0.0.2", "Running")
		all[1].Status.PodUID = "another"
		said, pending = m.Observe(key, all, openly)
		assert.True(t, pending)
		assert.NotContains(t, said, "flash-1")
		synctest.Wait()
		said, _ = m.Observe(key, all, openly)
		assert.Equal(t, "Running", said["flash-1"].State)
		assert.True(t, said["flash-1"].IsFrom(all[1]))

		// One whose pod is not ready is not asked, and one of a forgotten group again.
		all[0].Status.Conditions[0].Status = metav1.ConditionFalse
		said, _ = m.Observe(key, all, openly)
		assert.NotContains(t, said, "flash-0")
		m.Forget(key)
		said, _ = m.Observe(key, all[1:2], openly)
		assert.Empty(t, said)
		synctest.Wait()
		assert.Equal(t, 1, p.asked["10.0.0.1"])
	})
}

func TestFL06TheStatusPortIsAskedAsTiFlashWantsIt(t *testing.T) {
	status, path, said := http.StatusOK, "", "Ready\n"
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path = r.Method + " " + r.URL.Path
		w.WriteHeader(status)
		_, _ = w.Write([]byte(said))
	})
	server, host := loopback.NewServer(t, 20292, handler)
	server.Start()
	state, err := statusport.ReadState(t.Context(), host)
	require.NoError(t, err)
	assert.Equal(t, "Ready", state)
	assert.Equal(t, "GET /tiflash/store-status", path)
	said = "AKIA0123456789"
	state, err = statusport.ReadState(t.Context(), host)
	require.EqualError(t, err, "get http://"+host+":20292/tiflash/store-status: the answer is not a store's state", "it is not repeated")
	assert.Empty(t, state)
	said, status = "Ready\n", http.StatusNotFound
	state, err = statusport.ReadState(t.Context(), host)
	require.NoError(t, err, "a version that does not tell")
	assert.Empty(t, state)
	status = http.StatusServiceUnavailable
	_, err = statusport.ReadState(t.Context(), host)
	require.EqualError(t, err, "get http://"+host+":20292/tiflash/store-status: 503 Service Unavailable")
}

func TestSEC01AStoreIsAskedOverTLSByTheCertificateOfItsCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config, got := &tls.Config{MinVersion: tls.VersionTLS12}, make(chan *tls.Config, 2)
		m := statusports.New(t.Context(), func(ctx context.Context, _ string) (string, error) {
			got <- httpclient.TLSFromContext(ctx)
			return statusport.Running, nil
		}, statusport.IsFinal, time.Now)
		m.Observe(types.NamespacedName{Name: "flash"}, stores(2), func(i *v1alpha1.Instance) *tls.Config {
			return map[string]*tls.Config{"flash-0": config}[i.Name]
		})
		synctest.Wait()
		assert.ElementsMatch(t, []*tls.Config{config, nil}, []*tls.Config{<-got, <-got})
	})
}
