package rollout

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/workload"
)

// Who changes the headless Service alone has it changed, and no pod.
func TestAChangedPeerServiceMakesNoRevision(t *testing.T) {
	g := &v1alpha1.TiKVGroup{}
	g.Name, g.Namespace, g.UID = "kv", "ns", "1"
	kept := func(live *corev1.Service) *corev1.Service {
		s := observation.Snapshot{Services: map[string]*corev1.Service{"kv-peer": live}}
		services, _, err := KeptServices(g, s, component.Rendering{Inputs: Inputs(g, nil), Services: []*corev1.Service{workload.PeerService(g, []workload.Port{{Name: "server", Number: 20160}})}}, true)
		require.NoError(t, err)
		return services[0]
	}
	before, was := Inputs(g, nil), kept(nil)
	g.Spec.PeerService = &v1alpha1.IPFamilies{}
	assert.Equal(t, was, kept(was), "it says nothing")
	g.Spec.PeerService.IPFamilyPolicy = corev1.IPFamilyPolicyPreferDualStack
	assert.Equal(t, before, Inputs(g, nil))
	assert.Equal(t, corev1.IPFamilyPolicyPreferDualStack, *kept(was).Spec.IPFamilyPolicy)
}

// P4.
func TestAServiceStaysAsItWasRenderedUntilItsSpecChanges(t *testing.T) {
	g := &v1alpha1.PDGroup{}
	g.Name, g.Namespace, g.UID = "basic-pd", "ns", "1"
	port := func(n int32) []workload.Port { return []workload.Port{{Name: "client", Number: n}} }
	rendered := func(n int32, spec *v1alpha1.ServiceSpec) component.Rendering {
		return component.Rendering{Services: []*corev1.Service{workload.ClientService(g, spec, port(n))}, ServiceInputs: spec}
	}
	apply := func(t *testing.T, s observation.Snapshot, r component.Rendering, stored bool) (*corev1.Service, string) {
		t.Helper()
		services, difference, err := KeptServices(g, s, r, stored)
		require.NoError(t, err)
		require.Len(t, services, 1)
		return services[0], difference
	}
	was, difference := apply(t, observation.Snapshot{}, rendered(1, nil), false)
	assert.Empty(t, difference)
	defaulted := was.DeepCopy()
	defaulted.Spec.ClusterIP = "10.0.0.1" // as the API server adds
	spoilt := was.DeepCopy()
	spoilt.Annotations[v1alpha1.AnnotationRendering] = "{"
	theirs := was.DeepCopy()
	theirs.Labels = nil
	theirs.OwnerReferences = nil
	balanced := &v1alpha1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, Annotations: map[string]string{"a": "b"}}

	for name, c := range map[string]struct {
		live    *corev1.Service
		now     component.Rendering
		stored  bool
		port    int32
		differs string
	}{
		"the same operator":                          {defaulted, rendered(1, nil), true, 1, ""},
		"an operator that renders otherwise":         {defaulted, rendered(2, nil), true, 1, "Service basic-pd: spec.ports[client].port: 1 → 2"},
		"one that does, and empty fields":            {defaulted, rendered(2, &v1alpha1.ServiceSpec{}), true, 1, "Service basic-pd: spec.ports[client].port: 1 → 2"},
		"one that does, and a changed Service":       {defaulted, rendered(2, balanced), true, 2, ""},
		"one that does, and changed pods":            {defaulted, rendered(2, nil), false, 2, ""},
		"the same operator, and changed pods":        {defaulted, rendered(1, nil), false, 1, ""},
		"one that does, and a spoilt record":         {spoilt, rendered(2, nil), true, 2, ""},
		"one that does, and another owner's Service": {theirs, rendered(2, nil), true, 2, ""},
		"one that does, and a Service that is gone":  {nil, rendered(2, nil), true, 2, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := observation.Snapshot{Services: map[string]*corev1.Service{}}
			if c.live != nil {
				s.Services["basic-pd"] = c.live
			}
			now, difference := apply(t, s, c.now, c.stored)
			assert.Equal(t, c.port, now.Spec.Ports[0].Port)
			assert.Equal(t, c.differs, difference)
			assert.Empty(t, now.Spec.ClusterIP, "what others own is not applied")
			if c.differs != "" {
				assert.Equal(t, was, now, "it is applied as it was")
			}
			if name == "the same operator, and changed pods" {
				assert.Equal(t, was, now, "nothing of it differs, and it is not written")
			}
			if c.now.ServiceInputs == any(balanced) {
				assert.Equal(t, "b", now.Annotations["a"])
			}
		})
	}
}
