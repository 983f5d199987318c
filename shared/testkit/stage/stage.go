package stage

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/pd/pdtest"
	"github.com/tidb-groups/tidb-groups/shared/testkit/controlplane"
	"github.com/tidb-groups/tidb-groups/shared/testkit/invariants"
	"github.com/tidb-groups/tidb-groups/shared/testkit/machine"
)

const (
	// Timeout is what anything that should happen gets on a machine that does
	// much else.
	Timeout = 20 * time.Second
	// Promptly is how soon a status must say what blocks; on a busy machine it may take longer.
	Promptly = 5 * time.Second
	// Tick is how often it is looked whether it has happened.
	Tick = 20 * time.Millisecond
)

// Stage is a namespace in which one test plays everybody but the operator.
type Stage struct {
	*testing.T
	Client    client.WithWatch
	Namespace string
	// PD of the stage's PDGroup.
	PD *pdtest.PD

	server *Server

	mu      sync.Mutex
	nodes   map[string]string // by Instance
	pods    map[types.UID]pod // by Instance
	down    map[string]bool   // Instances
	stopped []string          // Instances, in turn
	broken  string            // part of the image that cannot be pulled
}

// pod is one that the stage plays; it has no UID while it does not run.
type pod struct {
	uid      types.UID
	template corev1.PodTemplateSpec
	// revision that the pod is called by, and the one that it was made from.
	revision, madeFrom string
}

// Stage returns a namespace of its own for one test. If the test fails, it shows
// what was logged about it.
func (r *Server) Stage(t *testing.T) *Stage {
	t.Helper()
	require.NotNil(t, r, "the server did not start")
	namespace := controlplane.CreateNamespace(t, r.Client)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("logged about %s:\n%s", namespace, r.Log.LinesAbout(namespace))
		}
	})
	return &Stage{
		T: t, Client: r.Client, Namespace: namespace, server: r,
		PD:    r.pd(types.NamespacedName{Namespace: namespace, Name: PDGroupName}),
		nodes: map[string]string{}, pods: map[types.UID]pod{}, down: map[string]bool{},
	}
}

// Key returns the key of an object of the stage.
func (s *Stage) Key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: s.Namespace, Name: name}
}

// Meta returns the metadata of an object of the stage.
func (s *Stage) Meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: s.Namespace, Name: name}
}

// Create creates an object.
func (s *Stage) Create(o client.Object) {
	s.Helper()
	require.NoError(s, s.Client.Create(s.Context(), o))
}

// Edit changes an object the way a user does.
func (s *Stage) Edit(o client.Object, change func()) {
	s.Helper()
	var err error
	require.Eventually(s, func() bool {
		if err = s.Client.Get(s.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			return false
		}
		change()
		err = s.Client.Update(s.Context(), o)
		return err == nil
	}, machine.StretchWait(Timeout), Tick, "the edit is accepted: %v", &err)
}

// Follow hands every version of the objects of a kind to do, one after the
// other, and checks the invariants of their status, until the returned function
// is called, or to the end of the test. do may be nil.
func (s *Stage) Follow(list client.ObjectList, do func(context.Context, client.Object)) (stop func()) {
	s.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.Context()))
	events, err := s.Client.Watch(ctx, list, client.InNamespace(s.Namespace))
	require.NoError(s, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for e := range events.ResultChan() {
			o, ok := e.Object.(client.Object)
			if !ok || e.Type == watch.Deleted {
				continue
			}
			fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
			if assert.NoError(s, err) {
				assert.Empty(s, invariants.Check(&unstructured.Unstructured{Object: fields}))
			}
			if do != nil {
				do(ctx, o)
			}
		}
	}()
	stop = func() {
		cancel()
		events.Stop()
		<-done
	}
	s.Cleanup(stop)
	return stop
}

// Instances returns the stage's Instances by slot.
func (s *Stage) Instances() []v1alpha1.Instance {
	s.Helper()
	var list v1alpha1.InstanceList
	require.NoError(s, s.Client.List(s.Context(), &list, client.InNamespace(s.Namespace)))
	slices.SortFunc(list.Items, func(a, b v1alpha1.Instance) int { return cmp.Compare(a.Spec.Slot, b.Spec.Slot) })
	return list.Items
}

// Instance returns an Instance of the stage.
func (s *Stage) Instance(name string) v1alpha1.Instance {
	s.Helper()
	var i v1alpha1.Instance
	require.NoError(s, s.Client.Get(s.Context(), s.Key(name), &i))
	return i
}

// WaitForInstances waits until exactly the named Instances exist, on a busy machine longer.
func (s *Stage) WaitForInstances(timeout time.Duration, wanted ...string) {
	s.Helper()
	require.EventuallyWithT(s, func(c *assert.CollectT) {
		names := []string{}
		for _, i := range s.Instances() {
			names = append(names, i.Name)
		}
		assert.ElementsMatch(c, wanted, names)
	}, machine.StretchWait(timeout), Tick)
}

// Template returns the pod template of an Instance.
func Template(t require.TestingT, i v1alpha1.Instance) corev1.PodTemplateSpec {
	var out corev1.PodTemplateSpec
	require.NoError(t, json.Unmarshal(i.Spec.PodTemplate.Raw, &out))
	return out
}
