package tikv

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/pingcap/kvproto/pkg/metapb"
	"github.com/pingcap/kvproto/pkg/raft_serverpb"

	"github.com/tidb-groups/tidb-groups/e2e/tikv/engine"
	"github.com/tidb-groups/tidb-groups/e2e/tikv/placement"
	"github.com/tidb-groups/tidb-groups/e2e/tikv/raftstore"
	"github.com/tidb-groups/tidb-groups/e2e/tikv/settings"
)

// liftTimeout bounds how long a store waits for PD to lift its limit before it serves.
const liftTimeout = 10 * time.Second

// What the engine keeps of the store itself.
var (
	identKey = engine.StoreKey("ident")
	// offeredKey has the first region that was offered to PD, until PD's answer is known.
	offeredKey = engine.StoreKey("offered")
)

// describeStore tells PD's words about a store: its ID stays in the data directory once PD has
// given it.
func describeStore(ctx context.Context, e *engine.Engine, pd *placement.Client, s *settings.Settings) (*metapb.Store, error) {
	cluster, err := pd.Connect(ctx)
	if err != nil {
		return nil, err
	}
	id, err := identifyStore(ctx, e, pd, cluster)
	if err != nil {
		return nil, err
	}
	meta := &metapb.Store{
		Id: id, Address: s.AdvertiseAddr, StatusAddress: s.AdvertiseStatusAddr,
		GitHash: "test-double", StartTimestamp: time.Now().Unix(), DeployPath: "/",
	}
	for _, key := range slices.Sorted(maps.Keys(s.Labels)) {
		meta.Labels = append(meta.Labels, &metapb.StoreLabel{Key: key, Value: s.Labels[key]})
	}
	return meta, nil
}

// registerStore makes the store known to PD. The first store also gives the cluster its first
// region.
func registerStore(ctx context.Context, e *engine.Engine, pd *placement.Client, meta *metapb.Store, log *slog.Logger) error {
	if err := bootstrapCluster(ctx, e, pd, meta, log); err != nil {
		return err
	}
	if err := pd.PutStore(ctx, meta); err != nil {
		return err
	}
	lift, cancel := context.WithTimeout(ctx, liftTimeout)
	defer cancel()
	if err := pd.LiftLimit(lift, meta.Id); err != nil {
		log.Warn("PD keeps its limit of peers a minute: replication will take minutes", "error", err)
	}
	return nil
}

func identifyStore(ctx context.Context, e *engine.Engine, pd *placement.Client, cluster uint64) (uint64, error) {
	value, err := e.Get(identKey)
	if err != nil {
		return 0, err
	}
	var ident raft_serverpb.StoreIdent
	if err := ident.Unmarshal(value); err != nil {
		return 0, fmt.Errorf("read what store this is: %w", err)
	}
	if ident.ClusterId == cluster {
		return ident.StoreId, nil
	}
	if ident.ClusterId != 0 {
		return 0, fmt.Errorf("cluster ID mismatch: this directory's is %d, PD's is %d; you are trying to connect to another cluster",
			ident.ClusterId, cluster)
	}
	id, err := pd.AllocID(ctx)
	if err != nil {
		return 0, err
	}
	value, err = (&raft_serverpb.StoreIdent{ClusterId: cluster, StoreId: id}).Marshal()
	if err != nil {
		return 0, fmt.Errorf("write what store this is: %w", err)
	}
	return id, writeKey(e, identKey, value)
}

func writeKey(e *engine.Engine, key, value []byte) error {
	b := e.NewBatch()
	if err := b.Set(key, value); err != nil {
		return fmt.Errorf("write %q: %w", key, err)
	}
	return b.Commit()
}

// bootstrapCluster gives the cluster its first region if it has none. Several stores may
// try at a time: PD takes the offer of one, and a store that ends before it hears
// PD's answer finds out at its next start.
func bootstrapCluster(ctx context.Context, e *engine.Engine, pd *placement.Client, meta *metapb.Store, log *slog.Logger) error {
	value, err := e.Get(offeredKey)
	if err != nil {
		return err
	}
	offered := &metapb.Region{}
	if err := offered.Unmarshal(value); err != nil {
		return fmt.Errorf("read the first region that was offered: %w", err)
	}
	taken, err := pd.Bootstrapped(ctx)
	if err != nil || (taken && len(value) == 0) {
		return err
	}
	if len(value) == 0 {
		if offered, err = makeFirstRegion(ctx, e, pd, meta.Id); err != nil {
			return err
		}
	}
	if !taken {
		if _, err := pd.Bootstrap(ctx, meta, offered); err != nil {
			return err
		}
	}
	// Whether or not PD said so just now: it knows the region that it took.
	known, err := pd.KnownRegion(ctx, offered.Id)
	if err != nil {
		return err
	}
	b := e.NewBatch()
	if known != nil {
		log.Info("bootstrapped the cluster", "region", offered.Id)
		if err := raftstore.AddFirstRegion(b, offered); err != nil {
			return err
		}
	}
	if err := b.Delete(offeredKey); err != nil {
		return fmt.Errorf("forget the first region that was offered: %w", err)
	}
	return b.Commit()
}

func makeFirstRegion(ctx context.Context, e *engine.Engine, pd *placement.Client, store uint64) (*metapb.Region, error) {
	region, err := pd.AllocID(ctx)
	if err != nil {
		return nil, err
	}
	peer, err := pd.AllocID(ctx)
	if err != nil {
		return nil, err
	}
	offered := &metapb.Region{
		Id: region, RegionEpoch: &metapb.RegionEpoch{ConfVer: 1, Version: 1}, Peers: []*metapb.Peer{{Id: peer, StoreId: store}},
	}
	value, err := offered.Marshal()
	if err != nil {
		return nil, fmt.Errorf("offer the first region: %w", err)
	}
	return offered, writeKey(e, offeredKey, value)
}
