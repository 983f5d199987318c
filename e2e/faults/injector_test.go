package faults_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/e2e/faults"
	"github.com/tidb-groups/tidb-groups/shared/testkit/controlplane"
)

const timeout = 30 * time.Second

// stage is a namespace, a user who sees all, and an operator called op whose
// connection is faulty.
type stage struct {
	t         *testing.T
	namespace string
	user      kubernetes.Interface
	op        kubernetes.Interface
	injector  *faults.Injector
	crashed   chan []string
	meanwhile func()
}

func newStage(t *testing.T, fault string) *stage {
	t.Helper()
	f, err := faults.Parse(fault)
	require.NoError(t, err)
	c, err := client.New(plane.Config, client.Options{})
	require.NoError(t, err)
	s := &stage{t: t, namespace: controlplane.CreateNamespace(t, c), crashed: make(chan []string, 1)}
	s.user, err = kubernetes.NewForConfig(plane.Config)
	require.NoError(t, err)
	s.injector = faults.New(f, func(operators []string) { s.crashed <- operators }, func() { s.meanwhile() })
	s.op = s.start("op")
	return s
}

// start is one start of an operator.
func (s *stage) start(operator string) kubernetes.Interface {
	s.t.Helper()
	cfg := rest.CopyConfig(plane.Config)
	// As operators do for the kinds of Kubernetes.
	cfg.ContentType, cfg.AcceptContentTypes = "application/vnd.kubernetes.protobuf", "application/vnd.kubernetes.protobuf,application/json"
	cfg.Wrap(s.injector.Wrap(operator))
	out, err := kubernetes.NewForConfig(cfg)
	require.NoError(s.t, err)
	return out
}

// make has one of the two create a ConfigMap.
func (s *stage) make(by kubernetes.Interface, name string) error {
	_, err := by.CoreV1().ConfigMaps(s.namespace).Create(s.t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	return err
}

// change writes into a ConfigMap as the user.
func (s *stage) change(name, value string) {
	s.t.Helper()
	_, err := s.user.CoreV1().ConfigMaps(s.namespace).Update(s.t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"value": value},
	}, metav1.UpdateOptions{})
	require.NoError(s.t, err)
}

func (s *stage) exists(name string) bool {
	_, err := s.user.CoreV1().ConfigMaps(s.namespace).Get(s.t.Context(), name, metav1.GetOptions{})
	return err == nil
}

// seen is what an informer of the operator knows: ConfigMap and value.
type seen struct {
	mu     sync.Mutex
	values map[string]string
	log    []string
}

func (s *seen) now() map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.values)
}

// watch starts an informer of the operator and waits for its list.
func (s *stage) watch() *seen {
	s.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	s.t.Cleanup(cancel)
	out := &seen{values: map[string]string{}}
	note := func(object any) {
		out.mu.Lock()
		defer out.mu.Unlock()
		if m, ok := object.(*corev1.ConfigMap); ok && strings.HasPrefix(m.Name, "a") {
			out.values[m.Name] = m.Data["value"]
			out.log = append(out.log, m.Name+"="+m.Data["value"])
		}
	}
	list := cache.NewListWatchFromClient(s.op.CoreV1().RESTClient(), "configmaps", s.namespace, fields.Everything())
	informer := cache.NewSharedIndexInformer(list, &corev1.ConfigMap{}, 0, nil)
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: note, UpdateFunc: func(_, object any) { note(object) }})
	require.NoError(s.t, err)
	go informer.RunWithContext(ctx)
	require.True(s.t, cache.WaitForCacheSync(ctx.Done(), informer.HasSynced))
	return out
}

func (s *stage) eventually(what string, holds func() bool) {
	s.t.Helper()
	require.Eventually(s.t, holds, timeout, 10*time.Millisecond, what)
}

func TestAnOperatorDiesRightAfterItsWrite(t *testing.T) {
	s := newStage(t, "crash:op/create/configmaps/a2/1")
	other := s.start("other")
	known := s.watch()
	require.NoError(t, s.make(s.op, "a1"))
	assert.Error(t, s.make(s.op, "a2"), "no client is left to get the reply")
	assert.Equal(t, []string{"op"}, <-s.crashed)
	assert.True(t, s.exists("a2"), "the write was served")
	assert.Error(t, s.make(s.op, "a3"))
	assert.False(t, s.exists("a3"), "the dead write nothing")
	require.NoError(t, s.make(other, "a4"), "others live on")
	assert.NotContains(t, known.now(), "a4", "the dead hear nothing")

	again := s.start("op")
	require.NoError(t, s.make(again, "a5"), "and it starts again")
	assert.Equal(t, []faults.Write{
		{Operator: "op", Verb: "create", Resource: "configmaps", Name: "a1", Nth: 1},
		{Operator: "op", Verb: "create", Resource: "configmaps", Name: "a2", Nth: 1},
		{Operator: "other", Verb: "create", Resource: "configmaps", Name: "a4", Nth: 1},
		{Operator: "op", Verb: "create", Resource: "configmaps", Name: "a5", Nth: 1},
	}, s.injector.Writes())
}

func TestAllOperatorsDieTogether(t *testing.T) {
	s := newStage(t, "crash-all:op/create/configmaps/a1/1")
	other := s.start("other")
	assert.Error(t, s.make(s.op, "a1"))
	assert.ElementsMatch(t, []string{"op", "other"}, <-s.crashed)
	assert.Error(t, s.make(other, "a2"))
	assert.False(t, s.exists("a2"))
}

func TestADroppedEventIsNeverSeen(t *testing.T) {
	s := newStage(t, "drop:op/configmaps/a1/2")
	require.NoError(t, s.make(s.user, "a0"))
	known := s.watch()
	require.NoError(t, s.make(s.user, "a1"))
	s.change("a1", "lost")
	<-s.injector.Over()
	require.NoError(t, s.make(s.user, "a2"))
	s.eventually("what comes later is seen", func() bool { _, ok := known.now()["a2"]; return ok })
	assert.Equal(t, map[string]string{"a0": "", "a1": "", "a2": ""}, known.now())
	s.change("a1", "kept")
	s.eventually("the next event heals it", func() bool { return known.now()["a1"] == "kept" })
	assert.NotContains(t, known.log, "a1=lost")
	events := slices.DeleteFunc(s.injector.Events(), func(e faults.Event) bool { return !strings.HasPrefix(e.Name, "a") })
	assert.Equal(t, []faults.Event{
		{Operator: "op", Resource: "configmaps", Name: "a1", Nth: 1}, {Operator: "op", Resource: "configmaps", Name: "a1", Nth: 2},
		{Operator: "op", Resource: "configmaps", Name: "a2", Nth: 1}, {Operator: "op", Resource: "configmaps", Name: "a1", Nth: 3},
	}, events, "a0 came with the list, which does not count")
}

func TestAStaleWatchCatchesUp(t *testing.T) {
	const still = time.Second
	s := newStage(t, "stale:op/configmaps/a1/1/"+still.String())
	known := s.watch()
	begin := time.Now()
	require.NoError(t, s.make(s.user, "a1"))
	require.NoError(t, s.make(s.user, "a2"))
	s.eventually("both are seen at last", func() bool { return len(known.now()) == 2 })
	assert.GreaterOrEqual(t, time.Since(begin), still)
	assert.Equal(t, []string{"a1=", "a2="}, known.log, "in order")
}

func TestAWriteIsAnsweredWithAFault(t *testing.T) {
	for fault, c := range map[string]struct {
		is     func(error) bool
		exists bool
	}{
		"409":   {apierrors.IsConflict, false},
		"500":   {apierrors.IsInternalError, false},
		"504":   {apierrors.IsTimeout, false},
		"reset": {net.IsConnectionReset, false},
		"lost":  {net.IsConnectionReset, true},
	} {
		t.Run(fault, func(t *testing.T) {
			s := newStage(t, fault+":op/create/configmaps/a/1")
			err := s.make(s.op, "a")
			assert.True(t, c.is(err), "%v", err)
			assert.Equal(t, c.exists, s.exists("a"))
			err = s.make(s.op, "a")
			assert.Equal(t, c.exists, apierrors.IsAlreadyExists(err), "only once: %v", err)
		})
	}
}

func TestAUserActsBetweenAWriteAndItsReply(t *testing.T) {
	for _, fault := range []string{"kill", "delete"} {
		t.Run(fault, func(t *testing.T) {
			s := newStage(t, fault+":op/create/configmaps/a/1")
			acted, served := 0, false
			s.meanwhile = func() {
				acted++
				served = s.exists("a")
			}
			require.NoError(t, s.make(s.op, "a"))
			assert.Equal(t, 1, acted, "before the operator goes on")
			assert.True(t, served)
			<-s.injector.Over()
			require.NoError(t, s.make(s.op, "b"), "it lives on")
			assert.Equal(t, 1, acted)
		})
	}
}

func TestAClientThatIsToldToWaitWaits(t *testing.T) {
	s := newStage(t, "429:op/create/configmaps/a/1")
	begin := time.Now()
	require.NoError(t, s.make(s.op, "a"), "client-go tries again by itself")
	assert.GreaterOrEqual(t, time.Since(begin), time.Second)
	assert.Len(t, s.injector.Writes(), 2)
}

func TestADryRunIsNoWrite(t *testing.T) {
	s := newStage(t, "none")
	_, err := s.op.CoreV1().ConfigMaps(s.namespace).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}},
		metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	require.NoError(t, err)
	assert.Empty(t, s.injector.Writes())
}
