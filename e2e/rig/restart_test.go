package rig_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/e2e/rig"
)

// two has two groups of TiKV, and pods that take their time.
const two = `
metadata: {name: two}
spec:
  version: v8.5.7
  pd:
    replicas: 3
    volumes: [{name: data, storage: 1Gi}]
  tikv:
  - replicas: 2
    volumes: [{name: data, storage: 10Gi}]
  - name: hot
    replicas: 1
    volumes: [{name: data, storage: 10Gi}]
    storeLabels: {disk: ssd}
  tidb:
  - replicas: 1
`

// PD-19.
func TestARestartOfTheOperatorsReplacesNoPod(t *testing.T) {
	t.Parallel()
	slow := rig.Delays{Schedule: 20 * time.Millisecond, Start: 50 * time.Millisecond, Ready: 100 * time.Millisecond, Stop: 50 * time.Millisecond}
	r := rig.New(t, plane, rig.Options{Delays: slow})
	cluster := rig.Key{Kind: v1alpha1.KindTidbCluster, Name: "two"}
	begun := func(kind, prefix string) func(rig.Objects) error {
		return func(o rig.Objects) error {
			if len(o.Names(kind, prefix)) == 0 {
				return errors.New("nothing yet")
			}
			return nil
		}
	}
	r.Start(rig.Operators()...)
	r.Apply(parse[v1alpha1.TidbCluster](t, two))
	for _, moment := range []struct{ kind, prefix string }{
		{v1alpha1.KindInstance, "two-pd"}, {"Pod", "two-pd"}, {v1alpha1.KindInstance, "two-tikv"}, {v1alpha1.KindInstance, "two-tidb"},
	} {
		r.Await(rig.Patience, fmt.Sprintf("%s %s… exists", moment.kind, moment.prefix), begun(moment.kind, moment.prefix))
		r.Stop(rig.Operators()...)
		r.Start(rig.Operators()...)
	}
	r.AwaitConverged(cluster)
	r.PodsUnchanged()
	assert.Equal(t, 1, r.Databases.List()[0].Births())

	// Once all is well, a restart changes nothing at all.
	r.Stop(rig.Operators()...)
	before, versions := r.Requests.Counts(), r.Watcher.Versions()
	r.Start(rig.Operators()...)
	settled := time.NewTimer(3 * time.Second)
	defer settled.Stop()
	<-settled.C
	for request, count := range r.Requests.Since(before) {
		// An Event of before may still be on its way when its operator stops.
		assert.False(t, request.Writes() && request.Resource != "events", "%d × %s after a restart", count, request)
	}
	assert.Equal(t, versions, r.Watcher.Versions(), "versions of objects after a restart")
	r.AwaitConverged(cluster)
	r.PodsUnchanged()
}
