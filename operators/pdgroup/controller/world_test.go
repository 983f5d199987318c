package controller

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/apply"
	"github.com/tidb-groups/tidb-groups/shared/operator"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/pd/pdtest"
	"github.com/tidb-groups/tidb-groups/shared/testkit/controlplane"
	"github.com/tidb-groups/tidb-groups/shared/testkit/invariants"
)

// patience is what a condition gets on a machine that does much else; named is
// how soon a status must say what blocks.
const (
	patience = 20 * time.Second
	named    = 5 * time.Second
	tick     = 20 * time.Millisecond
)

// logs is where the operators log to; it may be read while they do.
var logs = &logBuffer{}

type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBuffer) Len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Len()
}

func (b *logBuffer) After(n int) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return string(b.text.Bytes()[n:])
}

// starting lets one manager at a time take the kind's metrics over.
var starting sync.Mutex

// world is one namespace in which the operator runs; the test plays the
// instance operator and PD.
type world struct {
	*testing.T
	ctx       context.Context
	namespace string
	pd        *fakePD
	writes    *writes
	// broken images never become ready.
	broken string
}

// writes counts what the operator sends that is not a read.
type writes struct {
	mu    sync.Mutex
	calls []string
}

func (w *writes) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		if r.Method != http.MethodGet {
			w.mu.Lock()
			w.calls = append(w.calls, r.Method+" "+r.URL.Path)
			w.mu.Unlock()
		}
		return next.RoundTrip(r)
	})
}

func (w *writes) list() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.calls)
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// fakePD is founded by the members that run.
type fakePD struct {
	*pdtest.PD
	id      string
	founded bool
	frozen  bool // what runs matters no more
}

// silentPD does not answer until it is founded.
func silentPD(id string) *fakePD {
	return &fakePD{PD: pdtest.New(pd.View{Err: errors.New("connection refused")}), id: id}
}

// started is what PD does when members run: the first generation founds the
// cluster once a majority of it runs, each later member joins.
func (f *fakePD) started(running map[string]bool, size int) {
	f.Change(func(v *pd.View) {
		if f.frozen {
			return
		}
		if !f.founded {
			if len(running) < size/2+1 {
				return
			}
			f.founded, v.Err = true, nil
			v.ClusterID = f.id
		}
		for name := range running {
			if _, listed := v.Member(name); !listed {
				v.Members = append(v.Members, pd.Member{Name: name, ID: "1" + name[len(name)-1:], ClientURL: "http://" + name})
			}
		}
		slices.SortFunc(v.Members, func(a, b pd.Member) int { return cmp.Compare(a.Name, b.Name) })
		for i := range v.Members {
			v.Members[i].Healthy = running[v.Members[i].Name]
		}
		if !running[v.Leader] {
			v.Leader = ""
		}
		if v.Leader == "" && len(running) > 0 {
			v.Leader = slices.MinFunc(v.Members, func(a, b pd.Member) int { return cmp.Compare(b2i(b.Healthy), b2i(a.Healthy)) }).Name
		}
	})
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// begin makes a namespace with a silent PD, its instance operator and a
// watcher of the status invariants, and starts the operator.
func begin(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	w := &world{T: t, ctx: t.Context(), namespace: controlplane.Namespace(t, api), writes: &writes{},
		pd: silentPD("7300000000000000001")}
	w.operate()
	w.follow(&v1alpha1.InstanceList{}, func(o client.Object) {
		if i, ok := o.(*v1alpha1.Instance); ok {
			w.play(i)
		}
	})
	w.follow(&v1alpha1.PDGroupList{}, func(client.Object) {})
	return w
}

// operate runs the operator until the returned function is called, or to the
// end of the test.
func (w *world) operate() (stop func()) {
	w.Helper()
	config := rest.CopyConfig(access)
	config.Wrap(w.writes.wrap)
	return w.start(config, operator.Flags{
		Namespaces: w.namespace, MetricsAddress: "0", ProbeAddress: "0", Concurrency: 2, ReconcileTimeout: time.Minute, ClientQPS: -1,
	})
}

func (w *world) start(config *rest.Config, flags operator.Flags) (stop func()) {
	w.Helper()
	ctx, cancel := context.WithCancel(background())
	dial := func(types.NamespacedName) (pd.Client, error) { return w.pd, nil }
	starting.Lock()
	manager, err := operator.NewManager(ctx, config, Definition(), flags, dial)
	starting.Unlock()
	require.NoError(w, err)
	done := make(chan error, 1)
	go func() { done <- manager.Start(ctx) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			assert.NoError(w, <-done)
		})
	}
	w.Cleanup(stop)
	return stop
}

// follow hands every version of the objects of a kind to do, and checks the
// invariants of their status.
func (w *world) follow(list client.ObjectList, do func(client.Object)) (stop func()) {
	w.Helper()
	ctx, cancel := context.WithCancel(background())
	watch, err := api.Watch(ctx, list, client.InNamespace(w.namespace))
	require.NoError(w, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for e := range watch.ResultChan() {
			o, ok := e.Object.(client.Object)
			if !ok || e.Type == "DELETED" {
				continue
			}
			fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
			if assert.NoError(w, err) {
				assert.Empty(w, invariants.Check(&unstructured.Unstructured{Object: fields}))
			}
			do(o)
		}
	}()
	stop = func() {
		cancel()
		watch.Stop()
		<-done
	}
	w.Cleanup(stop)
	return stop
}

// play is the instance operator: a pod runs unless its image is broken, an
// Instance is Ready when its gates are True, PD learns of what runs.
func (w *world) play(i *v1alpha1.Instance) {
	if i.DeletionTimestamp != nil {
		return
	}
	var template corev1.PodTemplateSpec
	if !assert.NoError(w, json.Unmarshal(i.Spec.PodTemplate.Raw, &template)) {
		return
	}
	runs := !i.Spec.Suspended && (w.broken == "" || !strings.Contains(template.Spec.Containers[0].Image, w.broken))
	ready, reason, message := metav1.ConditionTrue, v1alpha1.ReasonReady, "the pod runs"
	for _, g := range i.Spec.ReadinessGates {
		if !meta.IsStatusConditionTrue(i.Status.Conditions, g) {
			ready, reason, message = metav1.ConditionFalse, v1alpha1.ReasonGatesPending, "waiting for "+g
		}
	}
	podReason := v1alpha1.ReasonPodReady
	if !runs {
		ready, reason, message = metav1.ConditionFalse, v1alpha1.ReasonImagePullFailed, "image cannot be pulled"
		podReason = reason
		if i.Spec.Suspended {
			ready, reason, podReason = metav1.ConditionFalse, v1alpha1.ReasonSuspended, v1alpha1.ReasonSuspended
		}
	}
	podReady := metav1.ConditionFalse
	if runs {
		podReady = metav1.ConditionTrue
	}
	status := v1alpha1.InstanceStatus{ObservedGeneration: i.Generation, Revision: i.Spec.Revision}
	if !i.Spec.Suspended {
		status.PodUID, status.PodIP, status.NodeName = types.UID("pod-"+i.Name), "10.0.0.1", "n1"
	}
	put := func(kind string, s metav1.ConditionStatus, reason, message string) {
		at := metav1.NewTime(time.Now().Truncate(time.Second))
		if c := meta.FindStatusCondition(i.Status.Conditions, kind); c != nil && c.Status == s {
			at = c.LastTransitionTime
		}
		status.Conditions = append(status.Conditions, metav1.Condition{
			Type: kind, Status: s, Reason: reason, Message: message, ObservedGeneration: i.Generation, LastTransitionTime: at})
	}
	put(v1alpha1.ConditionReady, ready, reason, message)
	put(v1alpha1.ConditionUpToDate, metav1.ConditionTrue, v1alpha1.ReasonUpToDate, "everything matches the spec")
	put(v1alpha1.ConditionPodReady, podReady, podReason, message)
	if i.Status.ObservedGeneration == status.ObservedGeneration && holds(i.Status.Conditions, status.Conditions) {
		return
	}
	_, err := apply.Status(w.ctx, api, "instance", i, status)
	if err != nil && w.ctx.Err() == nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		assert.NoError(w, err)
	}
	w.tellPD()
}

func holds(have, want []metav1.Condition) bool {
	for _, c := range want {
		h := meta.FindStatusCondition(have, c.Type)
		if h == nil || h.Status != c.Status || h.Reason != c.Reason || h.Message != c.Message || h.ObservedGeneration != c.ObservedGeneration {
			return false
		}
	}
	return true
}

// tellPD lets PD know which members run.
func (w *world) tellPD() {
	var list v1alpha1.InstanceList
	if err := api.List(w.ctx, &list, client.InNamespace(w.namespace)); err != nil {
		return
	}
	running := map[string]bool{}
	for _, i := range list.Items {
		if meta.IsStatusConditionTrue(i.Status.Conditions, v1alpha1.ConditionPodReady) {
			running[i.Name] = true
		}
	}
	w.pd.started(running, 3)
}

// sample is the PDGroup that the tests begin with.
func sample(namespace string, changes ...func(*v1alpha1.PDGroup)) *v1alpha1.PDGroup {
	g := &v1alpha1.PDGroup{ObjectMeta: metav1.ObjectMeta{Name: "basic-pd", Namespace: namespace}}
	g.Spec.Version = "v8.5.7"
	g.Spec.Replicas = ptr.To(int32(3))
	g.Spec.Volumes = []v1alpha1.Volume{{Name: "data", Storage: resource.MustParse("1Gi")}}
	for _, change := range changes {
		change(g)
	}
	return g
}

// create creates a PDGroup.
func (w *world) create(changes ...func(*v1alpha1.PDGroup)) {
	w.Helper()
	require.NoError(w, api.Create(w.ctx, sample(w.namespace, changes...)))
}

// get reads the PDGroup.
func (w *world) get() *v1alpha1.PDGroup {
	w.Helper()
	g := &v1alpha1.PDGroup{}
	require.NoError(w, api.Get(w.ctx, client.ObjectKey{Namespace: w.namespace, Name: "basic-pd"}, g))
	return g
}

// edit changes the spec as a user does.
func (w *world) edit(change func(*v1alpha1.PDGroup)) {
	w.Helper()
	require.Eventually(w, func() bool {
		g := w.get()
		change(g)
		err := api.Update(w.ctx, g)
		if err != nil && !apierrors.IsConflict(err) {
			require.NoError(w, err)
		}
		return err == nil
	}, patience, tick)
}

// touch wakes the operator up without changing the spec.
func (w *world) touch(note string) {
	w.Helper()
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{"note":%q}}}`, note))
	require.NoError(w, api.Patch(w.ctx, w.get(), patch))
}

// instances reads the Instances by slot.
func (w *world) instances() []v1alpha1.Instance {
	w.Helper()
	var list v1alpha1.InstanceList
	require.NoError(w, api.List(w.ctx, &list, client.InNamespace(w.namespace)))
	slices.SortFunc(list.Items, func(a, b v1alpha1.Instance) int { return cmp.Compare(a.Spec.Slot, b.Spec.Slot) })
	return list.Items
}

func template(t require.TestingT, i v1alpha1.Instance) corev1.PodTemplateSpec {
	var out corev1.PodTemplateSpec
	require.NoError(t, json.Unmarshal(i.Spec.PodTemplate.Raw, &out))
	return out
}

// condition describes a condition of the group at its current generation, as
// Status/Reason.
func condition(g *v1alpha1.PDGroup, kind string) string {
	c := meta.FindStatusCondition(g.Status.Conditions, kind)
	switch {
	case c == nil:
		return "none"
	case c.ObservedGeneration != g.Generation:
		return "old"
	}
	return string(c.Status) + "/" + c.Reason
}

// within waits for a condition to be as wanted.
func (w *world) within(d time.Duration, kind, want string) *v1alpha1.PDGroup {
	w.Helper()
	var g *v1alpha1.PDGroup
	require.EventuallyWithT(w, func(c *assert.CollectT) {
		g = w.get()
		assert.Equal(c, want, condition(g, kind), "%s: %s", kind, dump(g.Status.Conditions))
	}, d, tick)
	return g
}

// converged waits until the group and everything below it is as asked for.
func (w *world) converged() *v1alpha1.PDGroup {
	w.Helper()
	w.within(patience, v1alpha1.ConditionUpToDate, "True/UpToDate")
	return w.within(patience, v1alpha1.ConditionReady, "True/Ready")
}

func dump(conditions []metav1.Condition) string {
	var out []string
	for _, c := range conditions {
		out = append(out, fmt.Sprintf("%s=%s/%s@%d: %s", c.Type, c.Status, c.Reason, c.ObservedGeneration, c.Message))
	}
	return strings.Join(out, "\n")
}

// versions returns the resourceVersion of everything in the namespace that the
// operator may write.
func (w *world) versions() map[string]string {
	w.Helper()
	out := map[string]string{}
	for _, kind := range []string{"PDGroup", "Instance", "Service", "ConfigMap", "ControllerRevision"} {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion(map[string]string{"Service": "v1", "ConfigMap": "v1", "ControllerRevision": "apps/v1"}[kind])
		if list.GetAPIVersion() == "" {
			list.SetAPIVersion(v1alpha1.GroupVersion().String())
		}
		list.SetKind(kind + "List")
		require.NoError(w, api.List(w.ctx, list, client.InNamespace(w.namespace)))
		for _, o := range list.Items {
			out[kind+" "+o.GetName()] = o.GetResourceVersion()
		}
	}
	return out
}
