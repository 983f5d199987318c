package bench

import (
	"context"
	"fmt"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/e2e/rig"
)

const (
	// zoneNodes is how many nodes a case with many stores has, over three zones.
	zoneNodes = 6
	// oldVersion is what clusters start with, and newVersion what a roll brings.
	oldVersion, newVersion = "v8.5.7", "v8.5.8"
)

// withStores gives a cluster so many stores over three zones. Those of one zone are restarted
// together.
func withStores(c *v1alpha1.TidbCluster, stores int) {
	c.Spec.PD.Config = "[replication]\nlocation-labels = [\"zone\"]\nisolation-level = \"zone\"\n"
	c.Spec.TiKV[0].Replicas = ptr.To(int32(stores)) //nolint:gosec // a few hundred
	c.Spec.TiKV[0].RestartTogether = "zone"
}

// rollStores has the stores of all clusters restarted with a new version, and waits until nothing is
// left to do.
func rollStores(ctx context.Context, r *rig.Rig, of Case) error {
	for at := range of.Clusters {
		c := &v1alpha1.TidbCluster{}
		c.Name, c.Namespace = clusterName(at), r.Namespace()
		if err := r.User().Get(ctx, client.ObjectKeyFromObject(c), c); err != nil {
			return fmt.Errorf("get TidbCluster %s: %w", c.Name, err)
		}
		before := client.MergeFrom(c.DeepCopy())
		c.Spec.TiKV[0].Version = newVersion
		if err := r.User().Patch(ctx, c, before, client.FieldOwner("user")); err != nil {
			return fmt.Errorf("patch TidbCluster %s: %w", c.Name, err)
		}
	}
	return awaitAll(ctx, r, of)
}
