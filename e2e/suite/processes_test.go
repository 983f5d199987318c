//go:build e2e

package suite_test

import (
	"context"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/deploy/tree"
)

// noticed is how long connections may fail after a TiDB died or stood still: until
// its kubelet has seen it, and kube-proxy leaves it out.
const noticed = 15 * time.Second

// A process that is killed is started again in its pod. No client notices that PD's
// leader was: TiDB goes on with the next one. A TiDB takes its connections along.
func killsPDAndTiDB(t *testing.T, ns string) {
	t.Helper()
	id := clusterID(t, ns)
	leader := pdGroup(t, ns).Status.Leader
	failed := dies(t, ns, leader)
	assert.Empty(t, failed)
	assert.Equal(t, id, clusterID(t, ns))
	killed := time.Now()
	for _, f := range dies(t, ns, "basic-tidb-0") {
		assert.Less(t, f.began.Sub(killed), noticed, f.why)
	}
}

// dies kills a process and waits until it runs again in the same pod. It returns
// which connections failed meanwhile.
func dies(t *testing.T, ns, name string) []failure {
	t.Helper()
	before, started := instance(t, ns, name), restarts(t, ns, name)
	clients := connect(t, ns)
	began := time.Now()
	signal(t, ns, name, syscall.SIGKILL)
	await(t, ns, name+" restarted and everything Ready", func(nodes []*tree.Node) bool {
		return restarts(t, ns, name) > started && tree.IsAllGood(nodes)
	})
	asked, failed := clients.stop()
	t.Logf("%s was killed, and everything Ready after %s; %d connections made meanwhile, %d failed", name, time.Since(began).Round(100*time.Millisecond), asked, len(failed))
	after := instance(t, ns, name)
	assert.Equal(t, before.Status.PodUID, after.Status.PodUID, "the pod stays")
	assert.Equal(t, before.Status.Member.ID, after.Status.Member.ID)
	return failed
}

// hangs stops the processes of a store, of PD's leader and of a TiDB, one after the
// other, without ending them.
func hangs(t *testing.T, ns string) {
	t.Helper()
	stops(t, ns, "basic-tikv-1", func(t *testing.T) {
		awaitWord(t, ns, "basic-tikv-1", "is not ready")
		awaitGroupWord(t, ns, "basic-tikv", "basic-tikv-1")
		query(t, ns)
	})
	leader := pdGroup(t, ns).Status.Leader
	clients := connect(t, ns)
	stops(t, ns, leader, func(t *testing.T) {
		// The kernel still accepts connections for it, so that its probe passes: it
		// is PD that calls it unhealthy, and has another leader.
		await(t, ns, "another leader than "+leader+", and its Instance not Ready", func([]*tree.Node) bool {
			status := pdGroup(t, ns).Status
			return status.Leader != "" && status.Leader != leader && isUnhealthy(status.Members, leader) && isNotReady(t, ns, leader)
		})
	})
	_, failed := clients.stop()
	assert.Empty(t, failed, "no connection needs PD's leader")
	stops(t, ns, "basic-tidb-1", func(t *testing.T) {
		awaitWord(t, ns, "basic-tidb-1", "is not ready")
		serves(t, ns)
	})
}

// stops stops a process of a member, has a look at what is said then, and lets it go
// on: its pod stays as it is.
func stops(t *testing.T, ns, name string, look func(*testing.T)) {
	t.Helper()
	before, started := instance(t, ns, name), restarts(t, ns, name)
	began := time.Now()
	signal(t, ns, name, syscall.SIGSTOP)
	named := t.Run(name+" is named", look)
	t.Logf("%s was named after %s", name, time.Since(began).Round(100*time.Millisecond))
	signal(t, ns, name, syscall.SIGCONT)
	if !named {
		t.FailNow()
	}
	awaitAll(t, ns, 1)
	assert.Equal(t, before.Status.PodUID, instance(t, ns, name).Status.PodUID, "the pod stays")
	assert.Equal(t, started, restarts(t, ns, name))
}

// serves waits until no client is sent to a server that does not answer: with two of
// them, ten connections in a row do not meet the same one by chance.
func serves(t *testing.T, ns string) {
	t.Helper()
	address, row := serviceAddress(t, ns), 0
	require.Eventually(t, func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		if ask(ctx, address) == nil {
			row++
		} else {
			row = 0
		}
		return row == 10
	}, readyTimeout, between)
}

func pdGroup(t *testing.T, ns string) *v1alpha1.PDGroup {
	t.Helper()
	var g v1alpha1.PDGroup
	require.NoError(t, shared.session.Client.Get(t.Context(), types.NamespacedName{Namespace: ns, Name: "basic-pd"}, &g))
	return &g
}

// isUnhealthy tells whether PD calls a member so.
func isUnhealthy(members []v1alpha1.PDMember, name string) bool {
	for _, m := range members {
		if m.Name == name {
			return !m.Healthy
		}
	}
	return false
}

// isNotReady tells whether an Instance says that it is not Ready.
func isNotReady(t *testing.T, ns, name string) bool {
	t.Helper()
	return says(instance(t, ns, name).Status.Conditions, v1alpha1.ConditionReady, "")
}
