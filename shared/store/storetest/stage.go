package storetest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/apply"
	"github.com/tidb-groups/tidb-groups/shared/names"
	"github.com/tidb-groups/tidb-groups/shared/pd/pdtest"
)

// PDGroupName is the PDGroup of every stage.
const PDGroupName = "basic-pd"

// Stage is a namespace in which one test plays everybody but the operator.
type Stage struct {
	T         *testing.T
	Client    client.WithWatch
	Namespace string
	// PD of the stage's PDGroup.
	PD *pdtest.PD

	rig *Rig

	mu    sync.Mutex
	nodes map[string]string // by Instance
	down  map[string]bool   // Instances
}

// Key returns the key of an object of the stage.
func (s *Stage) Key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: s.Namespace, Name: name}
}

// Meta returns the metadata of an object of the stage.
func (s *Stage) Meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: s.Namespace, Name: name}
}

// Component returns a spec that will do for any component.
func Component(volumes ...string) v1alpha1.ComponentSpec {
	spec := v1alpha1.ComponentSpec{Version: "v8.5.7"}
	for _, name := range volumes {
		spec.Volumes = append(spec.Volumes, v1alpha1.Volume{Name: name, Storage: resource.MustParse("1Gi")})
	}
	return spec
}

// Create creates an object.
func (s *Stage) Create(o client.Object) {
	s.T.Helper()
	require.NoError(s.T, s.Client.Create(s.T.Context(), o))
}

// Edit changes an object the way a user does.
func (s *Stage) Edit(o client.Object, change func()) {
	s.T.Helper()
	require.Eventually(s.T, func() bool {
		if s.Client.Get(s.T.Context(), client.ObjectKeyFromObject(o), o) != nil {
			return false
		}
		change()
		return s.Client.Update(s.T.Context(), o) == nil
	}, Patience, 20*time.Millisecond, "the edit is accepted")
}

// CreatePDGroup creates the PDGroup, which no operator looks after.
func (s *Stage) CreatePDGroup() {
	s.T.Helper()
	s.Create(&v1alpha1.PDGroup{ObjectMeta: s.Meta(PDGroupName), Spec: v1alpha1.PDGroupSpec{
		PDTemplate: v1alpha1.PDTemplate{ComponentSpec: Component("data"), Replicas: ptr.To[int32](1)}}})
}

// SetPDGroup writes the PDGroup's status.
func (s *Stage) SetPDGroup(ready bool) {
	s.T.Helper()
	g := &v1alpha1.PDGroup{}
	s.status(g, PDGroupName, func() any {
		return v1alpha1.PDGroupStatus{ClusterID: ClusterID, GroupStatus: v1alpha1.GroupStatus{Conditions: []metav1.Condition{readiness(ready, g.Generation)}}}
	})
}

// SetTiKVGroup writes the status of a TiKVGroup that no operator looks after.
func (s *Stage) SetTiKVGroup(name string, ready bool) {
	s.T.Helper()
	g := &v1alpha1.TiKVGroup{}
	s.status(g, name, func() any {
		return v1alpha1.TiKVGroupStatus{GroupStatus: v1alpha1.GroupStatus{Conditions: []metav1.Condition{readiness(ready, g.Generation)}}}
	})
}

func (s *Stage) status(o client.Object, name string, status func() any) {
	s.T.Helper()
	require.NoError(s.T, s.Client.Get(s.T.Context(), s.Key(name), o))
	_, err := apply.Status(s.T.Context(), s.Client, "stage", o, status())
	require.NoError(s.T, err)
}

func readiness(ready bool, generation int64) metav1.Condition {
	c := metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonQuorumLost, Message: "the test says so",
		ObservedGeneration: generation, LastTransitionTime: metav1.NewTime(time.Unix(1700000000, 0))}
	if ready {
		c.Status, c.Reason = metav1.ConditionTrue, v1alpha1.ReasonReady
	}
	return c
}

// PlayInstances plays the instance operator and the pods until the test ends:
// the pod of every Instance starts at once, and registers its store with PD at
// <host>:port.
func (s *Stage) PlayInstances(group string, port int32) {
	s.T.Helper()
	ctx, cancel := context.WithCancel(s.T.Context())
	events, err := s.Client.Watch(ctx, &v1alpha1.InstanceList{}, client.InNamespace(s.Namespace))
	require.NoError(s.T, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for event := range events.ResultChan() {
			if i, ok := event.Object.(*v1alpha1.Instance); ok && event.Type != watch.Deleted {
				s.play(ctx, i, group, port)
			}
		}
	}()
	s.T.Cleanup(func() {
		cancel()
		events.Stop()
		<-done
	})
}

// SetDown has the pod of an Instance not ready, or ready again.
func (s *Stage) SetDown(instance string, down bool) {
	s.T.Helper()
	s.mu.Lock()
	if s.down == nil {
		s.down = map[string]bool{}
	}
	s.down[instance] = down
	s.mu.Unlock()
	i := &v1alpha1.Instance{}
	require.NoError(s.T, s.Client.Get(s.T.Context(), s.Key(instance), i))
	s.play(s.T.Context(), i, "", 0)
}

// SetNode says on which node the pod of an Instance will run.
func (s *Stage) SetNode(instance, node string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.nodes == nil {
		s.nodes = map[string]string{}
	}
	s.nodes[instance] = node
}

// play writes an Instance's status as the instance operator does. A write that
// fails because the Instance has changed is repeated by the event of that.
func (s *Stage) play(ctx context.Context, i *v1alpha1.Instance, group string, port int32) {
	s.mu.Lock()
	node, down := s.nodes[i.Name], s.down[i.Name]
	s.mu.Unlock()
	if port != 0 {
		s.PD.Register(fmt.Sprintf("%s:%d", names.PodHost(i.Name, group, s.Namespace), port))
	}
	condition := func(kind string, ok bool, good, bad, message string) metav1.Condition {
		c := metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: good, Message: message, ObservedGeneration: i.Generation, LastTransitionTime: metav1.NewTime(time.Unix(1700000000, 0))}
		if !ok {
			c.Status, c.Reason = metav1.ConditionFalse, bad
		}
		return c
	}
	open := !down
	for _, g := range i.Spec.ReadinessGates {
		open = open && meta.IsStatusConditionTrue(i.Status.Conditions, g)
	}
	want := []metav1.Condition{
		condition(v1alpha1.ConditionReady, open, v1alpha1.ReasonReady, v1alpha1.ReasonGatesPending, "the stage's Ready"),
		condition(v1alpha1.ConditionPodReady, !down, v1alpha1.ReasonPodReady, v1alpha1.ReasonPodNotReady, "the stage's pod"),
	}
	same := i.Status.PodUID != "" && i.Status.NodeName == node && i.Status.Revision == i.Spec.Revision
	for _, c := range want {
		have := meta.FindStatusCondition(i.Status.Conditions, c.Type)
		same = same && have != nil && have.Status == c.Status && have.ObservedGeneration == c.ObservedGeneration
	}
	if same {
		return
	}
	_, err := apply.Status(ctx, s.Client, "instance", i, v1alpha1.InstanceStatus{
		ObservedGeneration: i.Generation, Conditions: want, PodUID: types.UID("pod-" + i.Name), NodeName: node, Revision: i.Spec.Revision})
	if err != nil && ctx.Err() == nil {
		s.T.Logf("play %s: %v", i.Name, err)
	}
}

// Group returns a group as it is now.
func Group[T v1alpha1.Group](s *Stage, name string, into T) T {
	s.T.Helper()
	require.NoError(s.T, s.Client.Get(s.T.Context(), s.Key(name), into))
	return into
}

// Condition waits for a condition of a group, for its current generation, and
// returns it. reason may be empty.
func (s *Stage) Condition(g v1alpha1.Group, kind string, status metav1.ConditionStatus, reason string) metav1.Condition {
	s.T.Helper()
	var c *metav1.Condition
	ok := assert.Eventually(s.T, func() bool {
		if s.Client.Get(s.T.Context(), client.ObjectKeyFromObject(g), g) != nil {
			return false
		}
		c = meta.FindStatusCondition(g.GetGroupStatus().Conditions, kind)
		return c != nil && c.ObservedGeneration == g.GetGeneration() && c.Status == status && (reason == "" || c.Reason == reason)
	}, Patience, 10*time.Millisecond)
	if !ok {
		require.Failf(s.T, "condition not reached", "%s %s: wanted %s=%s/%s, have %+v", g.GroupKind(), g.GetName(), kind, status, reason, g.GetGroupStatus().Conditions)
	}
	return *c
}

// NoCondition waits until a group carries no condition of a type.
func (s *Stage) NoCondition(g v1alpha1.Group, kind string) {
	s.T.Helper()
	require.Eventually(s.T, func() bool {
		if s.Client.Get(s.T.Context(), client.ObjectKeyFromObject(g), g) != nil {
			return false
		}
		return g.GetGroupStatus().ObservedGeneration == g.GetGeneration() && meta.FindStatusCondition(g.GetGroupStatus().Conditions, kind) == nil
	}, Patience, 10*time.Millisecond, "%s goes", kind)
}

// Instances returns the stage's Instances by name.
func (s *Stage) Instances() map[string]v1alpha1.Instance {
	s.T.Helper()
	var list v1alpha1.InstanceList
	require.NoError(s.T, s.Client.List(s.T.Context(), &list, client.InNamespace(s.Namespace)))
	out := map[string]v1alpha1.Instance{}
	for _, i := range list.Items {
		out[i.Name] = i
	}
	return out
}

// Exist waits until exactly the named Instances exist.
func (s *Stage) Exist(patience time.Duration, wanted ...string) {
	s.T.Helper()
	require.Eventually(s.T, func() bool {
		return slices.Equal(slices.Sorted(maps.Keys(s.Instances())), slices.Sorted(slices.Values(wanted)))
	}, patience, 10*time.Millisecond, "Instances %v", wanted)
}

// Still requires that the operator writes nothing for a while.
func (s *Stage) Still(d time.Duration) {
	s.T.Helper()
	before := s.versions()
	assert.Never(s.T, func() bool { return s.versions() != before }, d, 50*time.Millisecond, "somebody writes while nothing changes")
	if after := s.versions(); after != before {
		s.T.Logf("before:\n%s\nafter:\n%s", before, after)
	}
}

// versions lists every object of the stage with its version.
func (s *Stage) versions() string {
	var out []string
	for _, list := range []client.ObjectList{
		&v1alpha1.TiKVGroupList{}, &v1alpha1.TiFlashGroupList{}, &v1alpha1.InstanceList{},
		&corev1.ServiceList{}, &corev1.ConfigMapList{}, &appsv1.ControllerRevisionList{}, &corev1.EventList{},
	} {
		if err := s.Client.List(s.T.Context(), list, client.InNamespace(s.Namespace)); err != nil {
			return "unknown: " + err.Error()
		}
		_ = meta.EachListItem(list, func(o runtime.Object) error {
			object, err := meta.Accessor(o)
			if err == nil {
				out = append(out, fmt.Sprintf("%T %s %s", o, object.GetName(), object.GetResourceVersion()))
			}
			return err
		})
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}
