package workload_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/workload"
)

func group(changes ...func(*v1alpha1.ComponentSpec)) *v1alpha1.PDGroup {
	g := &v1alpha1.PDGroup{ObjectMeta: metav1.ObjectMeta{Name: "basic-pd", Namespace: "ns", UID: "uid"}}
	g.Spec.Version = "v8.5.7"
	g.Spec.Volumes = []v1alpha1.Volume{{Name: "data", Storage: resource.MustParse("1Gi")}}
	for _, change := range changes {
		change(&g.Spec.ComponentSpec)
	}
	return g
}

func main() workload.Main {
	return workload.Main{
		Repository: "pingcap/pd", Command: []string{"/pd-server"}, Args: []string{"--name=$(POD_NAME)", "--join=x"},
		Ports: []workload.Port{{Name: "client", Number: 2379}}, DataPath: func(int) string { return "/var/lib/pd" },
		ConfigDir: "/etc/pd", ConfigMap: "config", GraceSeconds: 30, MetricsPort: 2379,
		Init: []corev1.Container{{Name: "first", Image: "first", Command: []string{"sh"}}},
	}
}

func overlaid(t *testing.T, overlay string) (corev1.PodTemplateSpec, []string) {
	t.Helper()
	return workload.Template(group(func(s *v1alpha1.ComponentSpec) {
		s.RestartedAt, s.Overlay = "now", &runtime.RawExtension{Raw: []byte(overlay)}
	}), main())
}

// GRP-09, DB-20.
func TestAnOverlayIsMergedByName(t *testing.T) {
	for name, c := range map[string]struct {
		overlay string
		check   func(*testing.T, corev1.PodSpec)
	}{
		"a field of the component's container": {`{"spec":{"containers":[{"name":"pd","env":[{"name":"X","value":"1"}]}]}}`, func(t *testing.T, p corev1.PodSpec) {
			require.Len(t, p.Containers, 1)
			assert.Equal(t, "pingcap/pd:v8.5.7", p.Containers[0].Image)
			var names []string
			for _, e := range p.Containers[0].Env {
				names = append(names, e.Name)
			}
			assert.ElementsMatch(t, []string{"X", "POD_NAME", "NAMESPACE"}, names)
		}},
		"a container beside it": {`{"spec":{"containers":[{"name":"log","image":"busybox"}]}}`, func(t *testing.T, p corev1.PodSpec) { assert.Len(t, p.Containers, 2) }},
		"the image of an init container": {`{"spec":{"initContainers":[{"name":"first","image":"mirror/first"}]}}`, func(t *testing.T, p corev1.PodSpec) {
			assert.Equal(t, []corev1.Container{{Name: "first", Image: "mirror/first", Command: []string{"sh"}}}, p.InitContainers)
		}},
		"a volume beside ours": {`{"spec":{"volumes":[{"name":"x","emptyDir":{}}]}}`, func(t *testing.T, p corev1.PodSpec) { assert.Len(t, p.Volumes, 3) }},
		"another volume for /tmp": {`{"spec":{"containers":[{"name":"pd","volumeMounts":[{"mountPath":"/tmp","name":"x"}]}],"volumes":[{"name":"x","emptyDir":{}}]}}`, func(t *testing.T, p corev1.PodSpec) {
			assert.Contains(t, p.Containers[0].VolumeMounts, corev1.VolumeMount{MountPath: "/tmp", Name: "x"})
		}},
		"what else a mount may say": {`{"spec":{"containers":[{"name":"pd","volumeMounts":[{"mountPath":"/var/lib/pd","mountPropagation":"HostToContainer"}],"ports":[{"containerPort":2379,"hostPort":2379}]}]}}`, func(t *testing.T, p corev1.PodSpec) {
			assert.NotNil(t, p.Containers[0].VolumeMounts[2].MountPropagation)
			assert.EqualValues(t, 2379, p.Containers[0].Ports[0].HostPort)
		}},
		"a field of the pod":         {`{"spec":{"hostNetwork":true}}`, func(t *testing.T, p corev1.PodSpec) { assert.True(t, p.HostNetwork) }},
		"a field that is taken away": {`{"spec":{"affinity":null}}`, func(t *testing.T, p corev1.PodSpec) { assert.Nil(t, p.Affinity) }},
		"one field of the default": {`{"spec":{"securityContext":{"fsGroup":7}}}`, func(t *testing.T, p corev1.PodSpec) {
			assert.EqualValues(t, 7, *p.SecurityContext.FSGroup)
			assert.True(t, *p.SecurityContext.RunAsNonRoot)
			assert.NotNil(t, p.SecurityContext.SeccompProfile)
		}},
		"a merge directive": {`{"spec":{"securityContext":{"$patch":"replace","runAsUser":7}}}`, func(t *testing.T, p corev1.PodSpec) {
			assert.EqualValues(t, 7, *p.SecurityContext.RunAsUser)
			assert.Nil(t, p.SecurityContext.FSGroup)
		}},
		"nothing":          {`{}`, func(t *testing.T, p corev1.PodSpec) { assert.Len(t, p.Containers, 1) }},
		"empty pieces":     {`{"spec":{},"metadata":{}}`, func(t *testing.T, p corev1.PodSpec) { assert.Len(t, p.Containers, 1) }},
		"pieces of null":   {`{"spec":null,"metadata":null}`, func(t *testing.T, p corev1.PodSpec) { assert.Len(t, p.Containers, 1) }},
		"an empty overlay": {``, func(t *testing.T, p corev1.PodSpec) { assert.Len(t, p.Containers, 1) }},
	} {
		t.Run(name, func(t *testing.T) {
			pod, problems := overlaid(t, c.overlay)
			if len(problems) > 0 {
				assert.Contains(t, problems[0], "spec.overlay", "refused, not broken")
				return
			}
			c.check(t, pod.Spec)
		})
	}
}

func TestAnOverlayThatWouldBreakThePodIsRefused(t *testing.T) {
	for name, c := range map[string]struct{ overlay, says string }{
		"an unknown field":                   {`{"spec":{"contaners":[]}}`, `unknown field "spec.contaners"`},
		"an unknown field deep below":        {`{"spec":{"containers":[{"name":"pd","imag":"x"}]}}`, `unknown field "spec.containers[0].imag"`},
		"a wrong type":                       {`{"spec":{"hostNetwork":"yes"}}`, "kubectl explain pod.spec"},
		"another top-level field":            {`{"status":{}}`, "spec.overlay.status"},
		"metadata that is not the user's":    {`{"metadata":{"name":"x"}}`, "spec.overlay.metadata.name"},
		"an operator's label":                {`{"metadata":{"labels":{"app.kubernetes.io/component":"x"}}}`, "belongs to the operator"},
		"a label of the operators'":          {`{"metadata":{"labels":{"groups.tidb.dev/mine":"x"}}}`, "metadata.labels[groups.tidb.dev/mine]: x: keys that begin with groups.tidb.dev/ belong to the operators: remove it"},
		"an annotation of the operators'":    {`{"metadata":{"annotations":{"groups.tidb.dev/restarted-at":"x"}}}`, "metadata.annotations[groups.tidb.dev/restarted-at]"},
		"such an annotation taken away":      {`{"metadata":{"annotations":{"groups.tidb.dev/template":null}}}`, "metadata.annotations[groups.tidb.dev/template]"},
		"all annotations taken away":         {`{"metadata":{"annotations":{"$patch":"replace"}}}`, v1alpha1.AnnotationRestartedAt + " is gone"},
		"the component's container removed":  {`{"spec":{"containers":[{"name":"pd","$patch":"delete"}]}}`, `container "pd" is gone`},
		"every container replaced":           {`{"spec":{"containers":[{"$patch":"replace"},{"name":"x","image":"x"}]}}`, `container "pd" is gone`},
		"the component's command":            {`{"spec":{"containers":[{"name":"pd","command":["sh"]}]}}`, "command: belongs to the operator"},
		"the component's arguments":          {`{"spec":{"containers":[{"name":"pd","args":["--mine","--name=x"]}]}}`, `args: "--name=x": the operator sets name itself (--name=$(POD_NAME)): remove it`},
		"the same with one dash":             {`{"spec":{"containers":[{"name":"pd","args":["-name","x"]}]}}`, `args: "-name": the operator sets name itself`},
		"the pod's name in DNS":              {`{"spec":{"subdomain":"x"}}`, "hostname and subdomain belong to the operator"},
		"an init container removed":          {`{"spec":{"initContainers":[{"name":"first","$patch":"delete"}]}}`, `container "first" is gone`},
		"an init container's command":        {`{"spec":{"initContainers":[{"name":"first","command":["true"]}]}}`, "initContainers[first]: command and args belong to the operator"},
		"an init container's arguments":      {`{"spec":{"initContainers":[{"name":"first","args":["x"]}]}}`, "initContainers[first]: command and args belong to the operator"},
		"the configuration's volume removed": {`{"spec":{"volumes":[{"name":"tidb-groups-config","$patch":"delete"}]}}`, `volume "tidb-groups-config" is gone`},
		"a variable that arguments name":     {`{"spec":{"containers":[{"name":"pd","env":[{"name":"POD_NAME","$patch":"delete"}]}]}}`, "containers[pd].env[POD_NAME]: it is gone or another"},
		"another value of such a variable":   {`{"spec":{"containers":[{"name":"pd","env":[{"name":"NAMESPACE","valueFrom":{"fieldRef":{"fieldPath":"metadata.uid"}}}]}]}}`, "containers[pd].env[NAMESPACE]: it is gone or another"},
		"all variables":                      {`{"spec":{"containers":[{"name":"pd","env":[{"$patch":"replace"},{"name":"X","value":"1"}]}]}}`, "containers[pd].env[POD_NAME]: it is gone or another"},
		"another volume for the data":        {`{"spec":{"containers":[{"name":"pd","volumeMounts":[{"mountPath":"/var/lib/pd","name":"x"}]}],"volumes":[{"name":"x","emptyDir":{}}]}}`, `volumeMounts[/var/lib/pd]: volume "data" is mounted there`},
		"another part of the data's volume":  {`{"spec":{"containers":[{"name":"pd","volumeMounts":[{"mountPath":"/var/lib/pd","subPath":"x"}]}]}}`, `volumeMounts[/var/lib/pd]: volume "data" is mounted there`},
		"no volume for the data":             {`{"spec":{"containers":[{"name":"pd","volumeMounts":[{"mountPath":"/var/lib/pd","$patch":"delete"}]}]}}`, `volumeMounts[/var/lib/pd]: volume "data" is mounted there`},
		"another name of a port":             {`{"spec":{"containers":[{"name":"pd","ports":[{"containerPort":2379,"name":"tcp-client"}]}]}}`, "containers[pd].ports[client]: it is gone or another"},
		"what cannot be merged":              {`{"spec":{"containers":[{"name":"pd","$retainKeys":[{"a":1}]}]}}`, "it cannot be merged"},
		"a pod that is not started again":    {`{"spec":{"restartPolicy":"Never"}}`, `spec.overlay.spec.restartPolicy: "Never"`},
		"something that is no object":        {`[]`, "write it as {metadata, spec}"},
		"something that is no pod":           {`{"spec":[]}`, "spec.overlay"},
	} {
		t.Run(name, func(t *testing.T) {
			_, problems := overlaid(t, c.overlay)
			require.Len(t, problems, 1)
			assert.Contains(t, problems[0], c.says)
			assert.Contains(t, problems[0], "spec.overlay")
		})
	}
}

// DB-20.
func TestArgumentsOfAnOverlayAreAddedToTheOperators(t *testing.T) {
	plain, problems := overlaid(t, `{}`)
	require.Empty(t, problems)
	own := plain.Spec.Containers[0].Args
	require.NotEmpty(t, own)
	for name, c := range map[string]struct {
		args []string
		more []string
	}{
		"one":                                {[]string{"--mine"}, []string{"--mine"}},
		"one with a value of its own":        {[]string{"--mine", "value"}, []string{"--mine", "value"}},
		"the operator's, repeated":           {own, nil},
		"the operator's, and one more":       {append(slices.Clone(own), "--mine=1"), []string{"--mine=1"}},
		"none, which takes nothing away":     {[]string{}, nil},
		"one that begins like an operator's": {[]string{"--name-of-mine=x"}, []string{"--name-of-mine=x"}},
	} {
		t.Run(name, func(t *testing.T) {
			raw, err := json.Marshal(map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "pd", "args": c.args}}}})
			require.NoError(t, err)
			pod, problems := overlaid(t, string(raw))
			require.Empty(t, problems)
			assert.Equal(t, slices.Concat(own, c.more), pod.Spec.Containers[0].Args)
		})
	}
}

func TestAffinityAndSecurityContextAreDecodedStrictly(t *testing.T) {
	raw := func(text string) *runtime.RawExtension { return &runtime.RawExtension{Raw: []byte(text)} }
	for name, c := range map[string]struct {
		change func(*v1alpha1.ComponentSpec)
		says   string
	}{
		"an unknown field of affinity":         {func(s *v1alpha1.ComponentSpec) { s.Affinity = raw(`{"nodeAfinity":{}}`) }, `spec.affinity: unknown field "nodeAfinity"`},
		"a wrong type in affinity":             {func(s *v1alpha1.ComponentSpec) { s.Affinity = raw(`{"nodeAffinity":7}`) }, "spec.affinity: "},
		"an unknown field of security context": {func(s *v1alpha1.ComponentSpec) { s.SecurityContext = raw(`{"runAsUsr":1}`) }, `spec.securityContext: unknown field "runAsUsr"`},
		"a wrong type in the security context": {func(s *v1alpha1.ComponentSpec) { s.SecurityContext = raw(`{"runAsUser":"root"}`) }, "spec.securityContext: "},
		"the same field of the context twice":  {func(s *v1alpha1.ComponentSpec) { s.SecurityContext = raw(`{"runAsUser":1,"runAsUser":2}`) }, `duplicate field "runAsUser"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, problems := workload.Template(group(c.change), main())
			require.Len(t, problems, 1)
			assert.Contains(t, problems[0], c.says)
			assert.Contains(t, problems[0], "kubectl explain")
		})
	}
	pod, problems := workload.Template(group(func(s *v1alpha1.ComponentSpec) {
		s.Affinity, s.SecurityContext = raw(`{}`), raw(`{"runAsUser":7}`)
	}), main())
	require.Empty(t, problems)
	assert.Nil(t, pod.Spec.Affinity.PodAntiAffinity, "the user's affinity replaces the default")
	assert.EqualValues(t, 7, *pod.Spec.SecurityContext.RunAsUser)
}

func TestEveryFieldOfTheSpecReachesThePod(t *testing.T) {
	pod, problems := workload.Template(group(func(s *v1alpha1.ComponentSpec) {
		s.Image = "mirror/pd:x"
		s.ImagePullPolicy = corev1.PullAlways
		s.ImagePullSecrets = []v1alpha1.LocalReference{{Name: "pull"}}
		s.Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("2")}
		s.NodeSelector = map[string]string{"disk": "fast"}
		s.Tolerations = []v1alpha1.Toleration{{Key: "db", Operator: "Exists", Effect: "NoSchedule", TolerationSeconds: ptr.To(int64(3))}}
		s.TopologySpreadConstraints = []v1alpha1.TopologySpread{{TopologyKey: "zone", MaxSkew: 2, WhenUnsatisfiable: "DoNotSchedule", MinDomains: ptr.To(int32(3))}}
		s.Env = []v1alpha1.EnvVar{{Name: "A", Value: "1"}, {Name: "B", ConfigMapKeyRef: &v1alpha1.KeyReference{Name: "c", Key: "k"}}, {Name: "C", SecretKeyRef: &v1alpha1.KeyReference{Name: "s", Key: "k"}}}
		s.Labels = map[string]string{"team": "blue", v1alpha1.LabelGroup: "forged"}
		s.Annotations = map[string]string{"note": "one"}
		s.PriorityClassName, s.ServiceAccountName = "high", "me"
		s.TerminationGracePeriodSeconds = ptr.To(int64(7))
		s.Volumes = append(s.Volumes, v1alpha1.Volume{Name: "log", Mounts: []v1alpha1.VolumeMount{{MountPath: "/log", SubPath: "a"}, {MountPath: "/b"}}})
	}), main())
	require.Empty(t, problems)
	c := pod.Spec.Containers[0]
	assert.Equal(t, "mirror/pd:x", c.Image)
	assert.Equal(t, corev1.PullAlways, c.ImagePullPolicy)
	assert.Equal(t, []corev1.LocalObjectReference{{Name: "pull"}}, pod.Spec.ImagePullSecrets)
	assert.Equal(t, resource.MustParse("2"), c.Resources.Requests["cpu"])
	assert.Equal(t, map[string]string{"disk": "fast"}, pod.Spec.NodeSelector)
	assert.Equal(t, []corev1.Toleration{{Key: "db", Operator: "Exists", Effect: "NoSchedule", TolerationSeconds: ptr.To(int64(3))}}, pod.Spec.Tolerations)
	require.Len(t, pod.Spec.TopologySpreadConstraints, 1)
	assert.Equal(t, workload.Selector(group()), pod.Spec.TopologySpreadConstraints[0].LabelSelector.MatchLabels)
	assert.Equal(t, corev1.EnvVar{Name: "A", Value: "1"}, c.Env[2])
	assert.Equal(t, "c", c.Env[3].ValueFrom.ConfigMapKeyRef.Name)
	assert.Equal(t, "s", c.Env[4].ValueFrom.SecretKeyRef.Name)
	assert.Equal(t, "blue", pod.Labels["team"])
	assert.Equal(t, "basic-pd", pod.Labels[v1alpha1.LabelGroup], "the operator's labels win")
	assert.Equal(t, "one", pod.Annotations["note"])
	assert.Equal(t, "high", pod.Spec.PriorityClassName)
	assert.Equal(t, "me", pod.Spec.ServiceAccountName)
	assert.True(t, *pod.Spec.AutomountServiceAccountToken)
	assert.EqualValues(t, 7, *pod.Spec.TerminationGracePeriodSeconds)
	assert.Subset(t, c.VolumeMounts, []corev1.VolumeMount{{Name: "data", MountPath: "/var/lib/pd"}, {Name: "log", MountPath: "/log", SubPath: "a"}, {Name: "log", MountPath: "/b"}})
	assert.Equal(t, []string{"/var/lib/pd"}, workload.DataPaths(&group().Spec.ComponentSpec, main().DataPath))
}

func TestPodsAreUnprivilegedByDefault(t *testing.T) {
	pod, problems := workload.Template(group(), main())
	require.Empty(t, problems)
	assert.True(t, *pod.Spec.SecurityContext.RunAsNonRoot)
	assert.False(t, *pod.Spec.AutomountServiceAccountToken)
	for _, c := range append(pod.Spec.Containers, workload.Tailer("log", &v1alpha1.Sidecar{Image: "busybox"}, nil, "/x")) {
		assert.True(t, *c.SecurityContext.ReadOnlyRootFilesystem)
		assert.False(t, *c.SecurityContext.AllowPrivilegeEscalation)
	}
}

// U 15: families of addresses are the cluster's choice unless the user has one, of each
// Service on its own.
func TestServicesHaveTheIPFamiliesOfTheSpec(t *testing.T) {
	ports := main().Ports
	for _, g := range []*v1alpha1.PDGroup{group(), group(func(s *v1alpha1.ComponentSpec) { s.PreferIPv6 = true })} {
		for _, s := range []*corev1.Service{workload.PeerService(g, ports), workload.ClientService(g, nil, ports), workload.ClientService(g, &v1alpha1.ServiceSpec{}, ports)} {
			assert.Nil(t, s.Spec.IPFamilyPolicy)
			assert.Nil(t, s.Spec.IPFamilies)
		}
	}
	both := v1alpha1.IPFamilies{IPFamilyPolicy: corev1.IPFamilyPolicyPreferDualStack, IPFamilies: []corev1.IPFamily{corev1.IPv6Protocol, corev1.IPv4Protocol}}
	g := group(func(s *v1alpha1.ComponentSpec) { s.PeerService = &both })
	for _, s := range []*corev1.Service{workload.PeerService(g, ports), workload.ClientService(group(), &v1alpha1.ServiceSpec{IPFamilies: both}, ports)} {
		require.NotNil(t, s.Spec.IPFamilyPolicy)
		assert.Equal(t, corev1.IPFamilyPolicyPreferDualStack, *s.Spec.IPFamilyPolicy)
		assert.Equal(t, both.IPFamilies, s.Spec.IPFamilies)
	}
	assert.Nil(t, workload.ClientService(g, nil, ports).Spec.IPFamilyPolicy)
}

func TestAClosedServiceSelectsNoPodAndTellsNoAddress(t *testing.T) {
	g, ports := group(), main().Ports
	open, shut := &v1alpha1.ServiceSpec{}, &v1alpha1.ServiceSpec{Closed: true}
	assert.Equal(t, workload.Selector(g), workload.ClientService(g, open, ports).Spec.Selector)
	selects := workload.ClientService(g, shut, ports).Spec.Selector
	assert.Equal(t, "true", selects[v1alpha1.LabelClosed])
	pod, _ := workload.Template(g, main())
	assert.NotContains(t, pod.Labels, v1alpha1.LabelClosed)
	assert.Equal(t, workload.Selector(g), workload.PeerService(g, ports).Spec.Selector)
	assert.NotEmpty(t, workload.Endpoint(g, open, ports[0], nil))
	assert.Empty(t, workload.Endpoint(g, shut, ports[0], nil))
}

// A status port takes requests without a login: it is not published outside of Kubernetes, unless
// the user names it.
func TestAStatusPortIsPublishedOnRequestOnly(t *testing.T) {
	g, ports := group(), []workload.Port{{Name: "mysql", Number: 4000}, {Name: "status", Number: 10080}}
	for _, c := range []struct {
		of    corev1.ServiceType
		named []v1alpha1.ServicePort
		want  []string
	}{
		{"", nil, []string{"mysql", "status"}},
		{corev1.ServiceTypeClusterIP, nil, []string{"mysql", "status"}},
		{corev1.ServiceTypeLoadBalancer, []v1alpha1.ServicePort{{Name: "mysql", Port: 3306}}, []string{"mysql"}},
		{corev1.ServiceTypeNodePort, nil, []string{"mysql"}},
		{corev1.ServiceTypeLoadBalancer, []v1alpha1.ServicePort{{Name: "status"}}, []string{"mysql", "status"}},
	} {
		var got []string
		for _, p := range workload.ClientService(g, &v1alpha1.ServiceSpec{Type: c.of, Ports: c.named}, ports).Spec.Ports {
			got = append(got, p.Name)
		}
		assert.Equal(t, c.want, got, "%s %v", c.of, c.named)
	}
}

// A load balancer may tell both, of which each leads to it.
func TestALoadBalancerWithANameAndAnAddressIsToldByItsName(t *testing.T) {
	s := &corev1.Service{Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer}}
	s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "203.0.113.7", Hostname: "db.example.com"}}
	assert.Equal(t, "db.example.com:2379", workload.Endpoint(group(), nil, workload.Port{Name: "client", Number: 2379}, s))
}

func TestThePeerServiceKnowsMembersBeforeTheyAreReady(t *testing.T) {
	s := workload.PeerService(group(), main().Ports)
	assert.Equal(t, "basic-pd-peer", s.Name)
	assert.True(t, s.Spec.PublishNotReadyAddresses)
	assert.Equal(t, corev1.ClusterIPNone, s.Spec.ClusterIP)
	assert.Equal(t, "app.kubernetes.io/component=pd,app.kubernetes.io/managed-by=tidb-groups,groups.tidb.dev/group=basic-pd", workload.SelectorText(group()))
}
