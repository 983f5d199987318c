package rig

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/tidb-groups/tidb-groups/e2e/workload/memorydb"
	"github.com/tidb-groups/tidb-groups/shared/operator"
)

// again is how soon a process that ended with an error is started again.
const again = 50 * time.Millisecond

// ActorSuffix ends the names of the controllers that play what is no operator.
const ActorSuffix = "-actor"

// actor plays scheduler, kubelet and volume binder for one namespace. It
// watches; what it is told of, it does at once.
type actor struct {
	client    client.Client
	live      client.Reader // not from a cache
	namespace string
	databases *Databases
	addresses *addresses
	members   []Membership // of another operator
	delays    Delays
	volumes   bool // an operator reads PersistentVolumes
	fail      func(error)
	wake      chan event.GenericEvent // pods to look at again
	nodeWake  chan event.GenericEvent // nodes to look at again

	mu        sync.Mutex
	seen      map[types.UID]time.Time // pods, when first met in their present state
	assumed   map[types.UID]string    // nodes of pods that are about to be bound
	processes map[types.NamespacedName]*process
	crashing  map[types.UID]*crash
	handovers map[types.UID]*handing
	lost      map[string]time.Time // nodes that are off the network, since when
	full      map[string]bool      // nodes whose disk is
	records   string               // directory of files: what hooks and backups write
	// stores returns a server of S3.
	stores func() (*s3, error)
	// speaks returns a database that speaks MySQL's protocol.
	speaks func() (*memorydb.Server, error)
}

// phaseField is the index of pods by their phase.
const phaseField = "status.phase"

// newActor starts the actor and returns when its caches are filled.
func newActor(ctx context.Context, cfg *rest.Config, namespace string, a *actor) error {
	scheme, err := operator.NewScheme()
	if err != nil {
		return fmt.Errorf("build scheme: %w", err)
	}
	manager, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme: scheme,
		Cache: cache.Options{
			DefaultNamespaces: map[string]cache.Config{namespace: {}},
			DefaultTransform:  cache.TransformStripManagedFields(),
			ByObject: map[client.Object]cache.ByObject{
				&corev1.Node{}: {Label: labels.SelectorFromSet(labels.Set{labelRig: namespace})},
			},
		},
		Metrics:                metricsserver.Options{BindAddress: "0"},
		HealthProbeBindAddress: "0",
		Controller:             config.Controller{SkipNameValidation: ptr.To(true)},
	})
	if err != nil {
		return fmt.Errorf("build pod actor: %w", err)
	}
	err = manager.GetFieldIndexer().IndexField(ctx, &corev1.Pod{}, phaseField, func(o client.Object) []string {
		pod, ok := o.(*corev1.Pod)
		if !ok {
			return nil
		}
		return []string{string(pod.Status.Phase)}
	})
	if err != nil {
		return fmt.Errorf("index pods by their phase: %w", err)
	}
	a.client, a.live, a.namespace = manager.GetClient(), manager.GetAPIReader(), namespace
	a.wake, a.nodeWake = make(chan event.GenericEvent, 64), make(chan event.GenericEvent, 64)
	a.seen, a.assumed, a.lost = map[types.UID]time.Time{}, map[types.UID]string{}, map[string]time.Time{}
	a.full = map[string]bool{}
	a.processes, a.crashing = map[types.NamespacedName]*process{}, map[types.UID]*crash{}
	a.handovers = map[types.UID]*handing{}
	if a.records, err = os.MkdirTemp("", "rig-"); err != nil {
		return fmt.Errorf("make a directory for files: %w", err)
	}
	a.speaks, a.stores = sync.OnceValues(mysqlStarter(ctx)), sync.OnceValues(s3Starter(ctx, a.records))
	context.AfterFunc(ctx, func() { _ = os.RemoveAll(a.records) }) // the rig ends
	err = ctrl.NewControllerManagedBy(manager).
		Named("pod"+ActorSuffix).
		For(&corev1.Pod{}).
		Watches(&corev1.PersistentVolumeClaim{}, handler.Funcs{DeleteFunc: a.claimGone}).
		Watches(&corev1.PersistentVolumeClaim{}, handler.EnqueueRequestsFromMapFunc(a.waiting)).
		Watches(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(a.waiting)).
		Watches(&storagev1.StorageClass{}, handler.EnqueueRequestsFromMapFunc(a.waiting)).
		Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(a.waiting)).
		WatchesRawSource(source.Channel(a.wake, &handler.EnqueueRequestForObject{})).
		WithOptions(controller.Options{MaxConcurrentReconciles: 16}).
		Complete(a)
	if err != nil {
		return fmt.Errorf("build pod actor: %w", err)
	}
	if err := (&nodeActor{a}).setUp(manager); err != nil {
		return err
	}
	if err := (&claimActor{a}).setUp(manager); err != nil {
		return err
	}
	go func() {
		if err := manager.Start(ctx); err != nil {
			a.fail(fmt.Errorf("run pod actor: %w", err))
		}
	}()
	if !manager.GetCache().WaitForCacheSync(ctx) {
		return fmt.Errorf("fill the pod actor's caches: %w", context.Cause(ctx))
	}
	return nil
}

// Reconcile brings one pod to where its spec and the simulated world have it.
func (a *actor) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	pod := &corev1.Pod{}
	err := a.client.Get(ctx, request.NamespacedName, pod)
	if apierrors.IsNotFound(err) {
		return reconcile.Result{}, a.stop(request.NamespacedName, "")
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	if err := a.stop(request.NamespacedName, pod.UID); err != nil {
		return reconcile.Result{}, err
	}
	var left time.Duration
	switch {
	case a.isLost(pod.Spec.NodeName):
		return reconcile.Result{}, nil // its kubelet hears nothing and says nothing
	case pod.DeletionTimestamp != nil:
		left, err = a.terminate(ctx, pod)
	case isOver(pod):
		return reconcile.Result{}, nil
	case pod.Spec.NodeName == "":
		left, err = a.schedule(ctx, pod)
	case a.isFull(pod.Spec.NodeName):
		err = a.expel(ctx, pod)
	case copiesDatabase(pod):
		left, err = a.runCopy(ctx, pod)
	case runsSQL(pod):
		left, err = a.runSQL(ctx, pod)
	default:
		left, err = a.run(ctx, pod)
	}
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		// The pod has changed; its next version is on its way.
		return reconcile.Result{}, nil
	}
	return reconcile.Result{RequeueAfter: left}, err
}

// wait returns how long is left of a delay that began when the pod was first
// met in the named state.
func (a *actor) wait(pod *corev1.Pod, state string, delay time.Duration) time.Duration {
	if delay <= 0 {
		return 0
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	key := pod.UID + types.UID("/"+state)
	begin, known := a.seen[key]
	if !known {
		begin = time.Now()
		a.seen[key] = begin
	}
	return max(0, time.Until(begin.Add(delay)))
}

// waiting returns the pods that do not run yet and that an object may matter to:
// those that use a claim or ConfigMap; all of them where it is anything else.
func (a *actor) waiting(ctx context.Context, object client.Object) []reconcile.Request {
	// Nothing leaves but names, and of hundreds of clusters few pods are pending.
	options := []client.ListOption{client.UnsafeDisableDeepCopy, client.MatchingFields{phaseField: string(corev1.PodPending)}}
	if object.GetNamespace() != "" {
		options = append(options, client.InNamespace(object.GetNamespace()))
	}
	pods := &corev1.PodList{}
	if err := a.client.List(ctx, pods, options...); err != nil {
		a.fail(fmt.Errorf("list pods: %w", err))
		return nil
	}
	var out []reconcile.Request
	for i := range pods.Items {
		if concernsPod(object, &pods.Items[i]) {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&pods.Items[i])})
		}
	}
	return out
}

func concernsPod(object client.Object, pod *corev1.Pod) bool {
	var uses func(corev1.Volume) bool
	switch object.(type) {
	case *corev1.PersistentVolumeClaim:
		uses = func(v corev1.Volume) bool {
			return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == object.GetName()
		}
	case *corev1.ConfigMap:
		uses = func(v corev1.Volume) bool { return v.ConfigMap != nil && v.ConfigMap.Name == object.GetName() }
	default:
		return true
	}
	return slices.ContainsFunc(pod.Spec.Volumes, uses)
}

// poke lets a pod be looked at again.
func (a *actor) poke(ctx context.Context, pod *corev1.Pod) error {
	select {
	case a.wake <- event.GenericEvent{Object: pod}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
