package rig

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/e2e/objects"
	"github.com/tidb-groups/tidb-groups/shared/testkit/invariants"
)

// reasonDeadline is how long an object may be without a word on why it is not
// what its spec asks for, unless the rig's options say otherwise.
const reasonDeadline = 5 * time.Second

// Kinds of Kubernetes that the watcher looks at beside the suite's own.
const (
	kindPod   = "Pod"
	kindClaim = "PersistentVolumeClaim"
)

// watchedResources returns what the watcher watches, by kind.
func watchedResources() map[string]schema.GroupVersionResource {
	own := func(resource string) schema.GroupVersionResource {
		return v1alpha1.GroupVersion().WithResource(resource)
	}
	core := schema.GroupVersion{Version: "v1"}
	other := func(group, resource string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Group: group, Version: "v1", Resource: resource}
	}
	out := map[string]schema.GroupVersionResource{
		v1alpha1.KindTidbCluster: own("tidbclusters"),
		v1alpha1.KindInstance:    own("instances"),
		kindPod:                  core.WithResource("pods"),
		kindClaim:                core.WithResource("persistentvolumeclaims"),
		"Service":                core.WithResource("services"),
		"ConfigMap":              core.WithResource("configmaps"),
		"ControllerRevision":     other("apps", "controllerrevisions"),
		"PodDisruptionBudget":    other("policy", "poddisruptionbudgets"),
		"Lease":                  other("coordination.k8s.io", "leases"),
		"Job":                    other("batch", "jobs"),
	}
	for _, c := range v1alpha1.ComponentTable() {
		out[c.Kind] = own(c.Resource)
	}
	for _, kind := range v1alpha1.BackupKinds() {
		out[kind] = own(strings.ToLower(kind) + "s")
	}
	return out
}

// operatorOf returns the operator that answers for a kind.
func operatorOf(kind string) string { return v1alpha1.OperatorOf(kind) }

// Key names an object of the rig's namespace.
type Key = objects.Key

// Objects are all objects of a namespace at one moment.
type Objects = objects.Set

// Watcher sees every version of every object of a namespace through a watch of
// its own, and notes what must not be.
type Watcher struct {
	client         dynamic.Interface
	namespace      string
	reasonDeadline time.Duration // for its operator to say something
	unjudged       bool          // only the newest version of each object is kept

	mu         sync.Mutex
	objects    map[Key]*unstructured.Unstructured
	versions   int
	changed    chan struct{} // closed and renewed at every event
	violations []string
	timeline   map[string]time.Time // first time of each milestone
	unreported map[Key]*unreported
	operators  map[string]bool // that run
	consent    map[string]bool // claims that may go
	uids       map[Key][]types.UID
	history    *history
	written    map[string]string // latest version of each kind that the user wrote
	seen       map[string]string // latest version of each kind that a watch brought
	remedies   *remedies         // nil if what statuses tell to run is not tried
	looks      int               // questions to the API server that are not answered yet
	looked     *sync.Cond        // told when the last one is
}

// unreported is an object whose operator has not spoken about its present
// generation yet.
type unreported struct {
	generation int64
	timer      *time.Timer
}

// WatchNamespace starts a watcher of a namespace whose operators are not this
// process's: what they do not report is not held against them.
func WatchNamespace(ctx context.Context, cfg *rest.Config, namespace string) (*Watcher, error) {
	return watchNamespace(ctx, cfg, newWatcher(namespace, reasonDeadline))
}

// newWatcher returns a watcher that sees nothing yet.
func newWatcher(namespace string, deadline time.Duration) *Watcher {
	w := &Watcher{
		namespace: namespace, reasonDeadline: deadline,
		objects: map[Key]*unstructured.Unstructured{}, changed: make(chan struct{}),
		timeline: map[string]time.Time{}, unreported: map[Key]*unreported{},
		operators: map[string]bool{}, consent: map[string]bool{}, uids: map[Key][]types.UID{}, history: newHistory(),
		written: map[string]string{}, seen: map[string]string{},
	}
	w.looked = sync.NewCond(&w.mu)
	return w
}

// watchNamespace starts a watcher and returns when it sees all there is.
func watchNamespace(ctx context.Context, cfg *rest.Config, w *Watcher) (*Watcher, error) {
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("build watcher: %w", err)
	}
	w.client = client
	arrivals := make(chan arrival, batch)
	if w.unjudged {
		go w.receive(ctx, arrivals)
		return w, w.keep(ctx, arrivals)
	}
	for kind, resource := range watchedResources() {
		if err := w.watch(ctx, kind, resource, arrivals); err != nil {
			return nil, err
		}
	}
	go w.receive(ctx, arrivals)
	go w.supervise(ctx)
	return w, nil
}

// arrival is one version of an object that a watch brings.
type arrival struct {
	event  watch.EventType
	object *unstructured.Unstructured
}

// batch is how many versions are taken in at once, at most.
const batch = 256

// receive takes in what the watches bring until the context ends. One goroutine
// does so for all of them, and as much at once as there is: a dozen that wait for
// one lock stand still when the processor has much else to do.
func (w *Watcher) receive(ctx context.Context, arrivals <-chan arrival) {
	for {
		var all []arrival
		select {
		case one := <-arrivals:
			all = append(all, one)
		case <-ctx.Done():
			return
		}
		for len(arrivals) > 0 && len(all) < batch {
			all = append(all, <-arrivals)
		}
		w.see(ctx, all...)
	}
}

func (w *Watcher) watch(ctx context.Context, kind string, resource schema.GroupVersionResource, arrivals chan<- arrival) error {
	list, err := w.client.Resource(resource).Namespace(w.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list %s: %w", kind, err)
	}
	// How the objects that exist already were made was not seen.
	w.mu.Lock()
	for i := range list.Items {
		w.take(watch.Added, &list.Items[i])
	}
	w.seen[kind] = list.GetResourceVersion()
	w.wake()
	w.mu.Unlock()
	// The API server ends the watch of a client that is slower than it; this goes
	// on from where it was.
	events, err := watchtools.NewRetryWatcherWithContext(ctx, list.GetResourceVersion(), &cache.ListWatch{
		WatchFuncWithContext: w.client.Resource(resource).Namespace(w.namespace).Watch,
	})
	if err != nil {
		return fmt.Errorf("watch %s: %w", kind, err)
	}
	go func() {
		defer events.Stop()
		for event := range events.ResultChan() {
			object, ok := event.Object.(*unstructured.Unstructured)
			if !ok || event.Type == watch.Error {
				w.violate("the watch of %s failed: %v", kind, event.Object)
				return
			}
			select {
			case arrivals <- arrival{event.Type, object}:
			case <-ctx.Done():
			}
		}
		if ctx.Err() == nil {
			w.violate("the watch of %s ended", kind)
		}
	}()
	return nil
}

// keep lets an informer of each kind bring the newest versions. Unlike a watch it lists again when
// the API server has forgotten where it was, so versions may be missed.
func (w *Watcher) keep(ctx context.Context, arrivals chan<- arrival) error {
	informers := dynamicinformer.NewFilteredDynamicSharedInformerFactory(w.client, 0, w.namespace, nil)
	bring := objects.NewHandler(func(object *unstructured.Unstructured, there bool) {
		event := watch.Modified
		if !there {
			event = watch.Deleted
		}
		select {
		case arrivals <- arrival{event, object}:
		case <-ctx.Done():
		}
	})
	for kind, resource := range watchedResources() {
		informer := informers.ForResource(resource).Informer()
		_, err := informer.AddEventHandler(bring)
		if err == nil {
			err = informer.SetTransform(ctrlcache.TransformStripManagedFields())
		}
		if err != nil {
			return fmt.Errorf("watch %s: %w", kind, err)
		}
	}
	informers.Start(ctx.Done())
	for resource, full := range informers.WaitForCacheSync(ctx.Done()) {
		if !full {
			return fmt.Errorf("list %s: %w", resource.Resource, context.Cause(ctx))
		}
	}
	return nil
}

// see takes versions of objects in.
func (w *Watcher) see(ctx context.Context, all ...arrival) {
	if ctx.Err() != nil {
		return
	}
	w.mu.Lock()
	var trials []trial
	for _, one := range all {
		w.take(one.event, one.object)
		if w.remedies != nil {
			trials = append(trials, w.remedies.take(one.event, one.object)...)
		}
	}
	// Who is woken waits for them, too.
	w.looks += len(trials)
	w.wake()
	w.mu.Unlock()
	for _, t := range trials {
		go func() {
			defer w.answered()
			w.remedies.try(ctx, t)
		}()
	}
	if w.unjudged {
		return
	}
	for _, one := range all {
		w.ask(ctx, one.event, one.object)
	}
}

// take takes one version of an object in.
func (w *Watcher) take(event watch.EventType, object *unstructured.Unstructured) {
	key := Key{Kind: object.GetKind(), Name: object.GetName()}
	w.versions++
	w.seen[key.Kind] = newerVersion(w.seen[key.Kind], object.GetResourceVersion())
	if event == watch.Deleted {
		delete(w.objects, key)
	} else {
		w.objects[key] = object
		w.identify(key, object)
	}
	if w.unjudged {
		return
	}
	for _, broken := range slices.Concat(invariants.Check(object), w.history.judge(event, object, time.Now())) {
		w.note(object, broken)
	}
	w.mark(event, object)
	w.hear(event, object)
	w.claim(event, object)
}

// note notes a violation at a version of an object.
func (w *Watcher) note(object *unstructured.Unstructured, what string) {
	w.violations = append(w.violations, fmt.Sprintf("%s (resourceVersion %s)", what, object.GetResourceVersion()))
}

func (w *Watcher) violate(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.violations = append(w.violations, fmt.Sprintf(format, args...))
	w.wake()
}

// wake lets who waits look again.
func (w *Watcher) wake() {
	close(w.changed)
	w.changed = make(chan struct{})
}

// identify keeps every UID that a pod or claim of a name ever had.
func (w *Watcher) identify(key Key, object *unstructured.Unstructured) {
	if (key.Kind == kindPod || key.Kind == kindClaim) && !slices.Contains(w.uids[key], object.GetUID()) {
		w.uids[key] = append(w.uids[key], object.GetUID())
	}
}

// mark keeps the first time at which an object existed and each of its
// conditions was True.
func (w *Watcher) mark(event watch.EventType, object *unstructured.Unstructured) {
	if event == watch.Deleted {
		return
	}
	now := time.Now()
	first := func(what string) {
		if name := object.GetKind() + "/" + object.GetName() + "/" + what; w.timeline[name].IsZero() {
			w.timeline[name] = now
		}
	}
	first("Exists")
	for _, c := range objects.Conditions(object) {
		if c.Status == metav1.ConditionTrue {
			first(c.Type)
		}
	}
}

// hear watches over objects that are changed: the operator has to say something
// about the new generation in time, be it that it is converged.
func (w *Watcher) hear(event watch.EventType, object *unstructured.Unstructured) {
	key := Key{Kind: object.GetKind(), Name: object.GetName()}
	if object.GroupVersionKind().Group != v1alpha1.GroupName {
		return
	}
	before := w.unreported[key]
	spoken := event == watch.Deleted || slices.ContainsFunc(objects.Conditions(object), func(c metav1.Condition) bool {
		return c.Type == v1alpha1.ConditionReady && c.ObservedGeneration == object.GetGeneration()
	})
	switch {
	case spoken && before != nil:
		before.timer.Stop()
		delete(w.unreported, key)
	case spoken:
	case before == nil || before.generation != object.GetGeneration():
		if before != nil {
			before.timer.Stop()
		}
		w.unreported[key] = w.startDeadline(key, object.GetGeneration())
	}
}

// startDeadline notes a violation if the operator of an object has not said anything in time.
func (w *Watcher) startDeadline(key Key, generation int64) *unreported {
	return &unreported{generation: generation, timer: time.AfterFunc(w.reasonDeadline, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if still := w.unreported[key]; still != nil && still.generation == generation && w.operators[operatorOf(key.Kind)] {
			w.violations = append(w.violations, fmt.Sprintf("%s: its operator has said nothing about generation %d for %s", key, generation, w.reasonDeadline))
			w.wake()
		}
	})}
}

// claim notes claims that go without consent. One that never had a
// volume holds nothing, and may be recreated with another class.
func (w *Watcher) claim(event watch.EventType, object *unstructured.Unstructured) {
	volume, _, _ := unstructured.NestedString(object.Object, "spec", "volumeName")
	if object.GetKind() != kindClaim || w.consent[object.GetName()] || volume == "" {
		return
	}
	if event == watch.Deleted || object.GetDeletionTimestamp() != nil {
		w.consent[object.GetName()] = true // said once
		w.note(object, "claim "+object.GetName()+" is deleted without consent")
	}
}

// running tells which operators are expected to speak.
func (w *Watcher) running(name string, runs bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.operators[name] = runs
	if !runs {
		return
	}
	// Its time begins now.
	for key, s := range w.unreported {
		if operatorOf(key.Kind) == name {
			s.timer.Stop()
			w.unreported[key] = w.startDeadline(key, s.generation)
		}
	}
}

// Consent lets claims go.
func (w *Watcher) Consent(claims ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, name := range claims {
		w.consent[name] = true
	}
}

// Violations returns what must not have been, once all that is looked at is
// answered.
func (w *Watcher) Violations() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.looks > 0 {
		w.looked.Wait()
	}
	return slices.Clone(w.violations)
}

// Versions is how many versions of objects were seen.
func (w *Watcher) Versions() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.versions
}

// UIDs returns every UID that each pod and claim ever had.
func (w *Watcher) UIDs() map[Key][]types.UID {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := map[Key][]types.UID{}
	for key, uids := range w.uids {
		out[key] = slices.Clone(uids)
	}
	return out
}

// First is when an object first existed ("Exists") or had a condition True;
// zero if never. The last one counts of all objects of the kind whose name
// begins with prefix.
func (w *Watcher) First(kind, prefix, what string) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	var last time.Time
	for name, at := range w.timeline {
		parts := strings.Split(name, "/")
		if parts[0] == kind && strings.HasPrefix(parts[1], prefix) && parts[2] == what && at.After(last) {
			last = at
		}
	}
	return last
}

// Await returns once a condition over all objects holds; what it is not content
// with is what it returns.
func (w *Watcher) Await(ctx context.Context, holds func(Objects) error) error {
	for {
		w.mu.Lock()
		changed := w.changed
		last := w.late()
		if last == nil {
			last = holds(objects.NewSet(w.objects))
		}
		w.mu.Unlock()
		if last == nil {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), last)
		}
	}
}

// Now calls look with all objects as they are now.
func (w *Watcher) Now(look func(Objects)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	look(objects.NewSet(w.objects))
}
