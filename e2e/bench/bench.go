package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/e2e/rig"
	"github.com/tidb-groups/tidb-groups/e2e/scenario"
	"github.com/tidb-groups/tidb-groups/shared/status"
	"github.com/tidb-groups/tidb-groups/shared/testkit/controlplane"
)

// clusterTime is how long one cluster may take on a slow machine when many come
// up at once: their number bounds the whole.
const clusterTime = 15 * time.Second

// ready is how long a pod takes from the moment it is scheduled until it is Ready. It
// is the same for every suite that is measured, so that what is compared is the operators.
const ready = time.Second

// Case is what is measured.
type Case struct {
	// Clusters that are created at once, each of 3 PD, 3 TiKV and 2 TiDB.
	Clusters int
	// Idle is for how long the operators are watched when nothing is left to do; zero
	// for not at all.
	Idle time.Duration
	// Restart has the operators stopped and started again in the end.
	Restart bool
	// TLS has each cluster speak TLS, MySQL too, with certificates of a CA of its own.
	TLS bool
	// Foreign is how many foreign ConfigMaps, Secrets and Pods of 100 KiB there are, of
	// each kind, before the operators start.
	Foreign int
	// Stores is how many TiKV stores each cluster has over three zones, which are rolled in
	// the end; zero for 3 stores and no roll.
	Stores int
	// Edits is how often a user edits one more cluster while others start, at most.
	Edits int

	// changes has what every write changes; nil unless LogChanges was called.
	changes *changes
}

// storeTime is how long the start or restart of one store may take.
const storeTime = 10 * time.Second

// foreignTime is how long one foreign object may take to be made.
const foreignTime = time.Second

// deadline bounds a whole run of the case.
func (c Case) deadline() time.Duration {
	return rig.Timeout + time.Duration(c.Clusters)*clusterTime + c.Idle + time.Duration(c.Foreign)*foreignTime + 2*time.Duration(c.Clusters*c.Stores)*storeTime
}

// options are those of a rig in which a case is measured: with the operators' own delay of messages, and
// no watcher that judges each version.
func (c Case) options(name string) rig.Options {
	out := rig.Options{
		Name: name, ClusterWide: true, Unjudged: true, Delays: rig.Delays{Ready: ready}, MessageDelay: status.MessageDelay,
	}
	if c.Stores > 0 {
		out.Nodes, out.Database = zoneNodes, scenario.Database{Speed: 20, Regions: c.Stores}
	}
	return out
}

// Result is what a case has cost.
type Result struct {
	// Clusters of the case.
	Clusters int `json:"clusters"`
	// Took is the time from the first cluster's creation until all were Ready and nothing
	// was left to do.
	Took time.Duration `json:"took"`
	// Floor is how long StatefulSets of as many pods took right before; zero if not measured.
	Floor time.Duration `json:"floor,omitempty"`
	// Stores of each cluster, if they were rolled.
	Stores int `json:"stores,omitempty"`
	// Start, Idle, Restart and Roll are what was asked and used in each phase.
	Start   Cost  `json:"start"`
	Idle    *Cost `json:"idle,omitempty"`
	Restart *Cost `json:"restart,omitempty"`
	Roll    *Cost `json:"roll,omitempty"`
	// Changes are what writes changed during the start, if they were logged.
	Changes map[Change]int `json:"-"`
}

// Cost is what the operators asked of the API server and used of the processor.
type Cost struct {
	// Took is how long the phase was.
	Took time.Duration `json:"took"`
	// Requests by operator, verb and resource.
	Requests map[rig.Request]int `json:"-"`
	// Conflicts are the requests that were refused in the phase because the operator had not
	// seen the newest version of the object.
	Conflicts map[rig.Request]int `json:"-"`
	// Writes of all operators, conflicts included.
	Writes int `json:"writes"`
	// Reads of all operators: gets, lists, and watches that were begun.
	Reads int `json:"reads"`
	// Reconciles by operator.
	Reconciles map[string]int `json:"reconciles"`
	// PodsReplaced is how many pods were deleted and made again.
	PodsReplaced int `json:"podsReplaced"`
	// Processor time by operator; what the simulated world used has no name.
	Processor map[string]time.Duration `json:"processor"`
	// ControlPlane is the processor time of the API server's process and of etcd's.
	ControlPlane map[string]time.Duration `json:"controlPlane,omitempty"`
	// Functions are the operators' time by the function that was running, the most first.
	Functions []Function `json:"-"`
	// Profile of the processor, for go tool pprof.
	Profile []byte `json:"-"`
}

// Operators is the processor time of all operators.
func (c Cost) Operators() time.Duration {
	var out time.Duration
	for name, spent := range c.Processor {
		if name != "" && name != collector {
			out += spent
		}
	}
	return out
}

// World is the processor time of what stands for pods, databases and people.
func (c Cost) World() time.Duration { return c.Processor[""] }

// Measure runs a case on a control plane.
func Measure(ctx context.Context, plane *controlplane.ControlPlane, c Case) (result Result, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.deadline())
	defer cancel()
	r, err := openForeign(ctx, plane, c.options("bench"), c)
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	if err := r.StartOperators(ctx, rig.Operators()...); err != nil {
		return result, err
	}
	m := meter{rig: r, plane: plane}
	result.Clusters, result.Stores = c.Clusters, c.Stores
	if _, err := c.changes.next(); err != nil { // what was before is not the operators' start
		return result, err
	}
	began := time.Now()
	result.Start, err = m.measure(func() error { return bringUp(ctx, r, c) })
	result.Took = time.Since(began)
	if err == nil {
		result.Changes, err = c.changes.next()
	}
	if err == nil && c.Idle > 0 {
		result.Idle, err = optionalCost(m.measure(func() error { return waitFor(ctx, c.Idle) }))
	}
	if err == nil && c.Restart {
		result.Restart, err = optionalCost(m.measure(func() error { return restartAndWatch(ctx, r) }))
	}
	if err == nil && c.Stores > 0 {
		result.Roll, err = optionalCost(m.measure(func() error { return rollStores(ctx, r, c) }))
	}
	seen := r.Observed()
	err = errors.Join(err, r.StopOperators(context.WithoutCancel(ctx), r.Running()...))
	return result, checkObserved(err, seen, c.Clusters)
}

// checkObserved adds to how a run with so many clusters ended what should not have been.
func checkObserved(err error, seen scenario.Observed, clusters int) error {
	err = errors.Join(err, observedError(seen))
	bootstraps := 0
	for _, n := range seen.Bootstraps {
		bootstraps += n
	}
	if err == nil && bootstraps != clusters {
		err = fmt.Errorf("%d PD clusters were bootstrapped, not %d", bootstraps, clusters)
	}
	return err
}

// observedError is an error that names the alarms and violations that were seen.
func observedError(seen scenario.Observed) error {
	var errs []error
	for _, what := range append(seen.Alarms, seen.Violations...) {
		errs = append(errs, errors.New(what))
	}
	return errors.Join(errs...)
}

func optionalCost(c Cost, err error) (*Cost, error) { return &c, err }

// bringUp creates clusters and waits until all are Ready and nothing is left to do.
func bringUp(ctx context.Context, r *rig.Rig, of Case) error {
	for at := range of.Clusters {
		c := newCluster(clusterName(at), r.Namespace())
		if of.Stores > 0 {
			withStores(c, of.Stores)
		}
		if of.TLS {
			c.Spec.TLS = &v1alpha1.ClusterTLS{CertificateSource: v1alpha1.CertificateSource{SelfSigned: &v1alpha1.SelfSigned{}}}
			c.Spec.TiDB[0].TLS = &v1alpha1.TiDBTLS{MySQL: &v1alpha1.MySQLTLS{}}
		}
		if err := createCluster(ctx, r, c); err != nil {
			return err
		}
	}
	return awaitAll(ctx, r, of)
}

// createCluster makes a cluster as a user does.
func createCluster(ctx context.Context, r *rig.Rig, c *v1alpha1.TidbCluster) error {
	if err := r.User().Create(ctx, c, client.FieldOwner("user")); err != nil {
		return fmt.Errorf("create TidbCluster %s: %w", c.Name, err)
	}
	return nil
}

// clusterName is the name of a cluster of a case.
func clusterName(at int) string { return fmt.Sprintf("c%d", at) }

// awaitAll waits until all clusters are Ready and nothing is left to do.
func awaitAll(ctx context.Context, r *rig.Rig, of Case) error {
	// What became of the first ones later is looked at in the end.
	converged := eachOnce(of.Clusters, func(o rig.Objects, at int) error {
		return o.Converged(v1alpha1.KindTidbCluster, clusterName(at))
	})
	return r.Await(ctx, func(o rig.Objects) error {
		if err := converged(o); err != nil {
			return err
		}
		return o.AllConverged()
	})
}

// eachOnce is content when a check was content with each of so many, one after the other. None
// is checked again: with many, each look would take as long as all.
func eachOnce(many int, check func(o rig.Objects, at int) error) func(rig.Objects) error {
	done := 0
	return func(o rig.Objects) error {
		for ; done < many; done++ {
			if err := check(o, done); err != nil {
				return err
			}
		}
		return nil
	}
}

// waitFor waits while nothing changes.
func waitFor(ctx context.Context, period time.Duration) error {
	timer := time.NewTimer(period)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// settled is for how long restarted operators are watched after they have filled
// their caches and queued every object.
const settled = 10 * time.Second

// restartAndWatch stops all operators, starts them again and watches them.
func restartAndWatch(ctx context.Context, r *rig.Rig) error {
	if err := restartOperators(ctx, r); err != nil {
		return err
	}
	return waitFor(ctx, settled)
}

// restartOperators stops all operators and starts them again.
func restartOperators(ctx context.Context, r *rig.Rig) error {
	if err := r.StopOperators(ctx, rig.Operators()...); err != nil {
		return err
	}
	return r.StartOperators(ctx, rig.Operators()...)
}

// newCluster returns a TidbCluster of 3 PD, 3 TiKV and 2 TiDB.
func newCluster(name, namespace string) *v1alpha1.TidbCluster {
	data := []v1alpha1.Volume{{Name: "data", Storage: resource.MustParse("1Gi")}}
	c := &v1alpha1.TidbCluster{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}}
	c.Spec.Version = oldVersion
	c.Spec.PD.Replicas, c.Spec.PD.Volumes = ptr.To[int32](3), data
	tikv, tidb := v1alpha1.TiKVEntry{}, v1alpha1.TiDBEntry{}
	tikv.Replicas, tikv.Volumes = ptr.To[int32](3), data
	tidb.Replicas = ptr.To[int32](2)
	c.Spec.TiKV, c.Spec.TiDB = []v1alpha1.TiKVEntry{tikv}, []v1alpha1.TiDBEntry{tidb}
	return c
}
