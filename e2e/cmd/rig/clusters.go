package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/e2e/objects"
	"github.com/tidb-groups/tidb-groups/e2e/rig"
	"github.com/tidb-groups/tidb-groups/e2e/scenario"
	"github.com/tidb-groups/tidb-groups/shared/testkit/controlplane"
)

// clusterTime is how long one cluster may take on a slow machine when many come
// up at once: their number bounds the whole.
const clusterTime = 15 * time.Second

// manyClusters makes clusters in one namespace, all at once and with one set of
// operators, and waits until all of them are Ready and nothing is left to do. How
// soon each is spoken of is not judged: the processor serves one after the other.
func (o options) manyClusters(ctx context.Context, plane *controlplane.ControlPlane) (err error) {
	ctx, cancel := context.WithTimeout(ctx, rig.Patience+time.Duration(o.clusters)*clusterTime)
	defer cancel()
	r, err := rig.Open(ctx, plane, rig.Options{Name: "clusters", ClusterWide: true, Silence: time.Duration(o.clusters) * clusterTime})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	if o.changes {
		r.Watcher.CountChanges()
	}
	if err := r.StartOperators(ctx, rig.Operators()...); err != nil {
		return err
	}
	began := time.Now()
	var keys []objects.Key
	for at := range o.clusters {
		c := cluster(fmt.Sprintf("c%d", at))
		c.Namespace = r.Namespace()
		keys = append(keys, objects.Key{Kind: v1alpha1.KindTidbCluster, Name: c.Name})
		if err := r.User().Create(ctx, c, client.FieldOwner("user")); err != nil {
			return fmt.Errorf("create TidbCluster %s: %w", c.Name, err)
		}
	}
	ready := 0 // the first so many are converged; what became of them later is looked at in the end
	err = r.Await(ctx, func(o rig.Objects) error {
		for ; ready < len(keys); ready++ {
			if err := o.Converged(keys[ready].Kind, keys[ready].Name); err != nil {
				return err
			}
		}
		return o.AllConverged()
	})
	took := time.Since(began).Round(100 * time.Millisecond)
	seen := r.Observed()
	births := 0
	for _, n := range seen.Births {
		births += n
	}
	again := 0
	for key, uids := range seen.UIDs {
		if key.Kind == "Pod" {
			again += len(uids) - 1
		}
	}
	fmt.Printf("%d clusters of 3 PD, 3 TiKV and 1 TiDB in %s: %d cluster IDs born, %d pods and claims, %d pods replaced, requests: %s, %d alarms, %d violations\n",
		o.clusters, took, births, len(seen.UIDs), again, scenario.ByVerb(seen.Requests), len(seen.Alarms), len(seen.Violations))
	if o.requests {
		printRequests(seen.Requests)
	}
	if o.changes {
		changes := r.Watcher.Changes()
		for _, change := range rig.MostOften(changes) {
			fmt.Printf("%5d  %-20s %s\n", changes[change], change.Kind, change.Fields)
		}
	}
	err = errors.Join(err, r.StopOperators(context.WithoutCancel(ctx), r.Running()...))
	for _, bad := range slices.Concat(seen.Alarms, seen.Violations) {
		err = errors.Join(err, errors.New(bad))
	}
	if err == nil && births != o.clusters {
		err = fmt.Errorf("%d cluster IDs were born for %d clusters", births, o.clusters)
	}
	return err
}

// cluster returns a TidbCluster of 3 PD, 3 TiKV and 1 TiDB.
func cluster(name string) *v1alpha1.TidbCluster {
	data := []v1alpha1.Volume{{Name: "data", Storage: resource.MustParse("1Gi")}}
	c := &v1alpha1.TidbCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	c.Spec.Version = "v8.5.7"
	c.Spec.PD.Replicas, c.Spec.PD.Volumes = ptr.To[int32](3), data
	tikv := v1alpha1.TiKVEntry{}
	tikv.Replicas, tikv.Volumes = ptr.To[int32](3), data
	tidb := v1alpha1.TiDBEntry{}
	tidb.Replicas = ptr.To[int32](1)
	c.Spec.TiKV, c.Spec.TiDB = []v1alpha1.TiKVEntry{tikv}, []v1alpha1.TiDBEntry{tidb}
	return c
}
