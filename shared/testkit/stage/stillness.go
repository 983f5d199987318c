package stage

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/testkit/machine"
)

// writtenKinds are the kinds that an operator may write, Events aside.
func writtenKinds() []schema.GroupVersionKind {
	var out []schema.GroupVersionKind
	for version, kinds := range map[schema.GroupVersion][]string{
		v1alpha1.GroupVersion():   v1alpha1.Kinds(),
		corev1.SchemeGroupVersion: {"Service", "ConfigMap"},
		appsv1.SchemeGroupVersion: {"ControllerRevision"},
	} {
		for _, kind := range kinds {
			out = append(out, version.WithKind(kind))
		}
	}
	return out
}

// Versions returns the resourceVersion of everything in the namespace that an
// operator may write, Events aside, by kind and name.
func (s *Stage) Versions() map[string]string {
	s.Helper()
	out := map[string]string{}
	for _, kind := range writtenKinds() {
		for _, o := range s.metadata(kind).Items {
			out[kind.Kind+" "+o.Name] = o.ResourceVersion
		}
	}
	return out
}

// metadata returns that of all objects of a kind.
func (s *Stage) metadata(kind schema.GroupVersionKind) *metav1.PartialObjectMetadataList {
	s.Helper()
	list := metadataOf(kind)
	require.NoError(s, s.Client.List(s.Context(), list, client.InNamespace(s.Namespace)))
	return list
}

func metadataOf(kind schema.GroupVersionKind) *metav1.PartialObjectMetadataList {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	return list
}

// WaitUntilSettled waits until nothing is written any more, and returns the Versions. PD is polled
// once a second after something has moved, and what it says then may be written.
func (s *Stage) WaitUntilSettled() map[string]string {
	s.Helper()
	var versions map[string]string
	require.Eventually(s, func() bool {
		last := versions
		versions = s.Versions()
		return maps.Equal(last, versions)
	}, machine.StretchWait(Timeout), machine.StretchWait(60*Tick)) // a busy operator may pause for longer between two writes
	return versions
}

// RequireNoWrites requires that nothing is written for a while, Events included, once what
// was under way has been written.
func (s *Stage) RequireNoWrites(d time.Duration) {
	s.Helper()
	s.WaitUntilSettled()
	ctx, cancel := context.WithCancel(s.Context())
	defer cancel()
	writes := make(chan string, 1) // the first one is enough
	for _, kind := range append(writtenKinds(), eventsv1.SchemeGroupVersion.WithKind("Event")) {
		s.report(ctx, kind, writes)
	}
	end := time.NewTimer(d)
	defer end.Stop()
	select {
	case what := <-writes:
		require.Fail(s, "there are writes while nothing changes", what)
	case <-end.C:
	}
}

// report notes a write of an object of a kind from now on.
func (s *Stage) report(ctx context.Context, kind schema.GroupVersionKind, writes chan<- string) {
	s.Helper()
	from := &metav1.ListOptions{ResourceVersion: s.metadata(kind).ResourceVersion}
	events, err := s.Client.Watch(ctx, metadataOf(kind), client.InNamespace(s.Namespace), &client.ListOptions{Raw: from})
	require.NoError(s, err)
	go func() {
		defer events.Stop()
		for e := range events.ResultChan() {
			if e.Type == watch.Bookmark {
				continue
			}
			select {
			case writes <- fmt.Sprintf("%s %s: %v", e.Type, kind.Kind, e.Object):
			default:
			}
		}
	}()
}
