package workload

import (
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/names"
)

const (
	// configVolume and tmpVolume are pod volumes of our own; claims cannot
	// collide with them because volume names are limited to 20 characters and
	// these begin with a reserved word.
	configVolume = "tidb-groups-config"
	tmpVolume    = "tidb-groups-tmp"
	// nonRoot is the user that the components run as; it owns the volumes.
	nonRoot int64 = 1000
)

// Main is what a component brings to its pod.
type Main struct {
	// Repository of the default image, such as pingcap/pd.
	Repository string
	// Command and Args of the container. $(POD_NAME) and $(NAMESPACE) are
	// replaced by the kubelet.
	Command, Args []string
	// Ports of the container.
	Ports []Port
	// DataPath returns where the n-th data volume is mounted; nil if the component has none.
	DataPath func(n int) string
	// WorkingDir is where the component starts; empty for that of the image.
	WorkingDir string
	// ConfigDir is where the files of the ConfigMap are mounted.
	ConfigDir string
	// ConfigMap with the configuration files.
	ConfigMap string
	// Readiness probe of the container.
	Readiness *corev1.Probe
	// Lifecycle of the container.
	Lifecycle *corev1.Lifecycle
	// GraceSeconds is the default termination grace period.
	GraceSeconds int64
	// MetricsPort is scraped by Prometheus at /metrics.
	MetricsPort int32
	// WritableRoot says that the component writes outside of its volumes.
	WritableRoot bool
	// Mounts, Volumes and Sidecars that the component adds, and Init, which run
	// before all of them.
	Mounts   []corev1.VolumeMount
	Volumes  []corev1.Volume
	Sidecars []corev1.Container
	Init     []corev1.Container
}

// Template renders the pod of a group's members, without what differs between
// them. The problems say what the user must fix; with any, the template is
// not to be used.
func Template(g v1alpha1.Group, m Main) (corev1.PodTemplateSpec, []string) {
	spec := g.GetComponentSpec()
	var problems []string
	if i := slices.IndexFunc(spec.Volumes, func(v v1alpha1.Volume) bool { return len(v.Mounts) == 0 }); i >= 0 && m.DataPath == nil {
		// The CRD refuses it, but may not have done so when the object was stored.
		problems = append(problems, fmt.Sprintf("spec.volumes[%d].mounts: missing: the component has no data directory", i))
	}
	pod := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{
			Labels: labels.Merge(spec.Labels, Labels(g)), // ours win
			Annotations: labels.Merge(spec.Annotations, map[string]string{
				"prometheus.io/scrape": "true",
				"prometheus.io/path":   "/metrics",
				"prometheus.io/port":   strconv.Itoa(int(m.MetricsPort)),
			}),
		},
		Spec: corev1.PodSpec{
			Subdomain:                     names.PeerService(g.GetName()),
			NodeSelector:                  spec.NodeSelector,
			PriorityClassName:             spec.PriorityClassName,
			ServiceAccountName:            spec.ServiceAccountName,
			AutomountServiceAccountToken:  ptr.To(spec.ServiceAccountName != ""),
			TerminationGracePeriodSeconds: spec.TerminationGracePeriodSeconds,
			TopologySpreadConstraints:     renderSpreadConstraints(g, spec),
			Tolerations:                   Tolerations(spec),
			ImagePullSecrets:              PullSecrets(spec),
			InitContainers:                m.Init,
			Containers:                    append([]corev1.Container{renderContainer(g, m)}, m.Sidecars...),
			Volumes:                       append(podVolumes(m), m.Volumes...),
			EnableServiceLinks:            ptr.To(false),
		},
	}
	if g.GetTLS() != nil {
		pod.Annotations["prometheus.io/scheme"] = "https"
	}
	if spec.RestartedAt != "" {
		pod.Annotations[v1alpha1.AnnotationRestartedAt] = spec.RestartedAt
	}
	if pod.Spec.TerminationGracePeriodSeconds == nil {
		pod.Spec.TerminationGracePeriodSeconds = &m.GraceSeconds
	}
	var problem string
	if pod.Spec.Affinity, problem = renderAffinity(g, spec); problem != "" {
		problems = append(problems, problem)
	}
	if pod.Spec.SecurityContext, problem = securityContext(spec); problem != "" {
		problems = append(problems, problem)
	}
	pod, problem = applyOverlay(pod, spec.Overlay, g.Component())
	if problem != "" {
		problems = append(problems, problem)
	}
	return pod, problems
}

// Image returns the image of a component.
func Image(spec *v1alpha1.ComponentSpec, repository string) string {
	if spec.Image != "" {
		return spec.Image
	}
	return repository + ":" + spec.Version
}

// IsPullFailure reports whether a kubelet says with a reason why a container waits that it does not get
// the image. It says some of them by turns.
func IsPullFailure(reason string) bool {
	return slices.Contains([]string{"ErrImagePull", "ImagePullBackOff", "ImageInspectError", "RegistryUnavailable", "SignatureValidationFailed"}, reason)
}

// Claims returns the claims of a member.
func Claims(spec *v1alpha1.ComponentSpec) []v1alpha1.VolumeClaimTemplate {
	var out []v1alpha1.VolumeClaimTemplate
	for _, v := range spec.Volumes {
		out = append(out, v1alpha1.VolumeClaimTemplate{Name: v.Name, Storage: v.Storage, StorageClassName: v.StorageClassName, VolumeAttributesClassName: v.VolumeAttributesClassName})
	}
	return out
}

// DataPaths returns where the data volumes are mounted, in order.
func DataPaths(spec *v1alpha1.ComponentSpec, path func(n int) string) []string {
	var out []string
	for _, v := range spec.Volumes {
		if len(v.Mounts) == 0 {
			out = append(out, path(len(out)))
		}
	}
	return out
}

// ContainerResources returns resources as a container wants them.
func ContainerResources(r v1alpha1.Resources) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Requests: r.Requests, Limits: r.Limits}
}

// UnprivilegedContext returns the security context of every container.
func UnprivilegedContext(writableRoot bool) *corev1.SecurityContext {
	return &corev1.SecurityContext{
		AllowPrivilegeEscalation: ptr.To(false),
		ReadOnlyRootFilesystem:   ptr.To(!writableRoot),
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
}

func renderContainer(g v1alpha1.Group, m Main) corev1.Container {
	spec := g.GetComponentSpec()
	c := corev1.Container{
		Name:            g.Component(),
		Image:           Image(spec, m.Repository),
		ImagePullPolicy: spec.ImagePullPolicy,
		Command:         m.Command,
		Args:            m.Args,
		WorkingDir:      m.WorkingDir,
		Ports:           ContainerPorts(m.Ports),
		Env:             renderEnvironment(spec),
		Resources:       ContainerResources(spec.Resources),
		ReadinessProbe:  m.Readiness,
		Lifecycle:       m.Lifecycle,
		SecurityContext: UnprivilegedContext(m.WritableRoot),
		VolumeMounts: append([]corev1.VolumeMount{
			{Name: configVolume, MountPath: m.ConfigDir, ReadOnly: true},
			{Name: tmpVolume, MountPath: "/tmp"},
		}, m.Mounts...),
	}
	data := 0
	for _, v := range spec.Volumes {
		if len(v.Mounts) == 0 && m.DataPath != nil {
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: v.Name, MountPath: m.DataPath(data)})
			data++
		}
		for _, mount := range v.Mounts {
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: v.Name, MountPath: mount.MountPath, SubPath: mount.SubPath})
		}
	}
	return c
}

// ownVariables returns the variables that arguments refer to.
func ownVariables() []corev1.EnvVar {
	field := func(path string) *corev1.EnvVarSource {
		return &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: path}}
	}
	return []corev1.EnvVar{
		{Name: "POD_NAME", ValueFrom: field("metadata.name")},
		{Name: "NAMESPACE", ValueFrom: field("metadata.namespace")},
	}
}

// renderEnvironment returns the operator's variables, then the user's.
func renderEnvironment(spec *v1alpha1.ComponentSpec) []corev1.EnvVar {
	env := ownVariables()
	for _, e := range spec.Env {
		v := corev1.EnvVar{Name: e.Name, Value: e.Value}
		switch {
		case e.ConfigMapKeyRef != nil:
			v.ValueFrom = &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
				LocalObjectReference: corev1.LocalObjectReference{Name: e.ConfigMapKeyRef.Name}, Key: e.ConfigMapKeyRef.Key}}
		case e.SecretKeyRef != nil:
			v.ValueFrom = &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
				LocalObjectReference: corev1.LocalObjectReference{Name: e.SecretKeyRef.Name}, Key: e.SecretKeyRef.Key}}
		}
		env = append(env, v)
	}
	return env
}

func podVolumes(m Main) []corev1.Volume {
	return []corev1.Volume{
		{Name: configVolume, VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: m.ConfigMap}}}},
		{Name: tmpVolume, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
	}
}

func renderSpreadConstraints(g v1alpha1.Group, spec *v1alpha1.ComponentSpec) []corev1.TopologySpreadConstraint {
	var out []corev1.TopologySpreadConstraint
	for _, t := range spec.TopologySpreadConstraints {
		out = append(out, corev1.TopologySpreadConstraint{
			TopologyKey: t.TopologyKey, MaxSkew: t.MaxSkew, WhenUnsatisfiable: t.WhenUnsatisfiable, MinDomains: t.MinDomains,
			LabelSelector: &metav1.LabelSelector{MatchLabels: Selector(g)},
		})
	}
	return out
}

// Tolerations returns the tolerations of a component as a pod wants them.
func Tolerations(spec *v1alpha1.ComponentSpec) []corev1.Toleration {
	var out []corev1.Toleration
	for _, t := range spec.Tolerations {
		out = append(out, corev1.Toleration{Key: t.Key, Operator: t.Operator, Value: t.Value, Effect: t.Effect, TolerationSeconds: t.TolerationSeconds})
	}
	return out
}

// PullSecrets returns what the images of a component are pulled with.
func PullSecrets(spec *v1alpha1.ComponentSpec) []corev1.LocalObjectReference {
	var out []corev1.LocalObjectReference
	for _, s := range spec.ImagePullSecrets {
		out = append(out, corev1.LocalObjectReference{Name: s.Name})
	}
	return out
}

// renderAffinity returns the user's affinity, or the default: members of a group
// prefer different nodes.
func renderAffinity(g v1alpha1.Group, spec *v1alpha1.ComponentSpec) (*corev1.Affinity, string) {
	if spec.Affinity == nil {
		return &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{
				Weight: 100,
				PodAffinityTerm: corev1.PodAffinityTerm{
					TopologyKey:   corev1.LabelHostname,
					LabelSelector: &metav1.LabelSelector{MatchLabels: Selector(g)},
				},
			}},
		}}, ""
	}
	out := &corev1.Affinity{}
	if err := decodeStrict(spec.Affinity.Raw, out); err != nil {
		return nil, fmt.Sprintf("spec.affinity: %v: write it as in a PodSpec (kubectl explain pod.spec.affinity)", err)
	}
	return out, ""
}

// securityContext returns the user's security context, or the default.
func securityContext(spec *v1alpha1.ComponentSpec) (*corev1.PodSecurityContext, string) {
	if spec.SecurityContext == nil {
		return &corev1.PodSecurityContext{
			RunAsNonRoot: ptr.To(true), RunAsUser: ptr.To(nonRoot), RunAsGroup: ptr.To(nonRoot), FSGroup: ptr.To(nonRoot),
			FSGroupChangePolicy: ptr.To(corev1.FSGroupChangeOnRootMismatch),
			SeccompProfile:      &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		}, ""
	}
	out := &corev1.PodSecurityContext{}
	if err := decodeStrict(spec.SecurityContext.Raw, out); err != nil {
		return nil, fmt.Sprintf("spec.securityContext: %v: write it as in a PodSpec (kubectl explain pod.spec.securityContext)", err)
	}
	return out, ""
}
