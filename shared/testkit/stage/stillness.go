package stage

import (
	"maps"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

// Versions returns the resourceVersion of everything in the namespace that an
// operator may write, Events aside, by kind and name.
func (s *Stage) Versions() map[string]string {
	s.Helper()
	out := map[string]string{}
	for version, kinds := range map[schema.GroupVersion][]string{
		v1alpha1.GroupVersion():   v1alpha1.Kinds(),
		corev1.SchemeGroupVersion: {"Service", "ConfigMap"},
		appsv1.SchemeGroupVersion: {"ControllerRevision"},
	} {
		for _, kind := range kinds {
			s.addVersions(out, version.WithKind(kind))
		}
	}
	return out
}

func (s *Stage) addVersions(out map[string]string, kind schema.GroupVersionKind) {
	s.Helper()
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	require.NoError(s, s.Client.List(s.Context(), list, client.InNamespace(s.Namespace)))
	for _, o := range list.Items {
		out[kind.Kind+" "+o.Name] = o.ResourceVersion
	}
}

// Settled waits until nobody writes any more, and returns the Versions. PD is polled
// once a second after something has moved, and what it says then may be written.
func (s *Stage) Settled() map[string]string {
	s.Helper()
	var versions map[string]string
	require.Eventually(s, func() bool {
		last := versions
		versions = s.Versions()
		return maps.Equal(last, versions)
	}, Patience, 60*Tick)
	return versions
}

// Still requires that nobody writes anything for a while, Events included, once what
// was under way has been written.
func (s *Stage) Still(d time.Duration) {
	s.Helper()
	s.Settled()
	look := func() map[string]string {
		versions := s.Versions()
		s.addVersions(versions, eventsv1.SchemeGroupVersion.WithKind("Event"))
		return versions
	}
	before, end := look(), time.After(d)
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-end:
			return
		case <-ticker.C:
			require.Equal(s, before, look(), "somebody writes while nothing changes")
		}
	}
}
