package operator

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tidb-groups/tidb-groups/shared/apply"
	"github.com/tidb-groups/tidb-groups/shared/credentials"
	"github.com/tidb-groups/tidb-groups/shared/gate"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/pd/polling"
	"github.com/tidb-groups/tidb-groups/shared/pdclient"
	"github.com/tidb-groups/tidb-groups/shared/revision"
	"github.com/tidb-groups/tidb-groups/shared/shard"
	"github.com/tidb-groups/tidb-groups/shared/status"
)

// Definition is what one operator brings.
type Definition struct {
	// Name of the operator, such as pdgroup. It is the field owner of all its
	// writes, the leader lease is named after it.
	Name string
	// Kind that it reconciles.
	Kind string
	// List returns an empty list of the kind, for metrics.
	List func() client.ObjectList
	// Beside are further kinds that the operator reconciles.
	Beside []Kind
	// Expires returns when a claim of a former member is deleted, false if never, for
	// metrics; nil for an operator that looks after no claims.
	Expires func(claim *corev1.PersistentVolumeClaim) (time.Time, bool)
	// Cached says which objects the cache holds besides the suite's own kinds, and by
	// which selector; it may narrow those of a kind that every cache holds.
	Cached map[client.Object]cache.ByObject
	// Dialer is one of pdclient's; nil for an operator that never asks PD.
	Dialer Dialer
	// Tools says that the operator brings a program of its image into pods.
	Tools bool
	// Setup adds the controller to the manager.
	Setup func(ctx context.Context, env Env) error
}

// Dialer reaches PD by a URL template, whose names it looks up in the cluster's domain, with
// the certificates of the clusters, and registers the metrics of the calls.
type Dialer func(urlTemplate, clusterDomain string, of pdclient.TLS, registry prometheus.Registerer) (pd.Dialer, error)

// Kind is a kind that an operator reconciles, and how an empty list of it is made, for
// metrics.
type Kind struct {
	Name string
	List func() client.ObjectList
}

// Env is what Setup gets: everything that an operator needs from outside.
type Env struct {
	// Name of the operator.
	Name string
	// Manager to add the controller to.
	Manager ctrl.Manager
	// Client reads from the cache and writes to the API server.
	Client client.Client
	// Live reads from the API server.
	Live client.Reader
	// Scheme of all kinds.
	Scheme *runtime.Scheme
	// Status writes status as the operator.
	Status status.Writer
	// Applied remembers which objects need no write.
	Applied *apply.Memory
	// Records remembers what ControllerRevisions store.
	Records *revision.Memory
	// Recorder of Events.
	Recorder events.EventRecorder
	// PD polls PD, once for all operators of the process; nil unless the Definition has a Dialer.
	PD *polling.Poller
	// Credentials are what clusters are connected to with.
	Credentials *credentials.Store
	// Image that the operator runs from; empty if it does not know. See Flags.
	Image string
	// ClusterScoped says that all namespaces are watched, and with them what
	// belongs to none, such as nodes.
	ClusterScoped bool
	// Controller options, concurrency and timeouts, from the flags.
	Controller controller.Options
	// PerNamespace is how many of the operator's workers one namespace may have.
	PerNamespace int
	// Scope are the namespaces of the operator's shard; nil without one.
	Scope *shard.Scope
	// Waits remembers who has owed an answer since when.
	Waits *gate.Waits
	// Outcomes counts the ends of steps.
	Outcomes Outcomes
	// Now is the clock.
	Now func() time.Time
}

// InScope returns a reconciler that acts only in the namespaces of the operator's shard.
// Every controller has it outermost.
func (e Env) InScope(inner reconcile.Reconciler) reconcile.Reconciler {
	if e.Scope == nil {
		return inner
	}
	return e.Scope.Gate(inner)
}

// Apply writes objects as the operator.
func (e Env) Apply() apply.Writer {
	return apply.Writer{Client: e.Client, Owner: e.Name, Memory: e.Applied, Live: e.Live}
}

// Find reads an object from the cache and, if it is not there, from the API
// server: what a cache does not show may still be there.
func (e Env) Find(ctx context.Context, key client.ObjectKey, into client.Object) error {
	err := e.Client.Get(ctx, key, into)
	if apierrors.IsNotFound(err) {
		err = e.Live.Get(ctx, key, into)
	}
	return err
}
