package v1alpha1

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// ComponentSpec is what every group kind lets a user say about its members.
//
// +kubebuilder:validation:XValidation:rule="!has(self.volumes) || self.volumes.all(v, !has(v.mounts) || v.mounts.all(m, !m.mountPath.startsWith('/etc/pd') && !m.mountPath.startsWith('/etc/ti')))",message="volumes[].mounts[].mountPath may not lie below a configuration directory of the component (/etc/pd, /etc/ti...): choose another path"
// +kubebuilder:validation:XValidation:rule="has(self.clusterDomain) ? (has(oldSelf.clusterDomain) && self.clusterDomain == oldSelf.clusterDomain) : !has(oldSelf.clusterDomain)",message="clusterDomain is part of the addresses by which PD knows the members: it cannot be set, changed or removed later; leave it as it was"
type ComponentSpec struct {
	// Version of the component: the image's tag, such as v8.5.7. A group needs
	// it; an entry of a TidbCluster takes the cluster's when it names none.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_][A-Za-z0-9_.-]*$`
	// +kubebuilder:validation:XValidation:rule="!self.matches('^V?[0-9]+([.]|$)')",messageExpression="'versions of TiDB begin with v: write v' + self.replace('V', '')"
	// +kubebuilder:validation:XValidation:rule="!(self.lowerAscii() in ['latest', 'nightly', 'stable', 'master', 'main'])",messageExpression="self + ' is another release every other day: name one, such as v8.5.7'"
	// +optional
	Version string `json:"version,omitempty"`
	// Image is a complete image reference to use in place of
	// pingcap/<component>:<version>, for mirrors and own builds.
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^[a-zA-Z0-9][a-zA-Z0-9._:/@-]*$`
	// +optional
	Image string `json:"image,omitempty"`
	// ImagePullPolicy of the component's container.
	// +kubebuilder:validation:Enum=Always;IfNotPresent;Never
	// +kubebuilder:default=IfNotPresent
	// +optional
	ImagePullPolicy corev1.PullPolicy `json:"imagePullPolicy,omitempty"`
	// ImagePullSecrets name Secrets of the namespace to pull images with.
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	// +optional
	ImagePullSecrets []LocalReference `json:"imagePullSecrets,omitempty"`
	// Resources of the component's container.
	// +optional
	Resources Resources `json:"resources,omitempty"`
	// Config is the component's own configuration file, in TOML. Keys that the
	// operator owns (addresses, names, data directories) are refused.
	// +kubebuilder:validation:MaxLength=131072
	// +optional
	Config string `json:"config,omitempty"`
	// Volumes are the persistent volumes of each member, one claim each, named
	// <volume>-<pod>.
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	// +optional
	Volumes []Volume `json:"volumes,omitempty"`
	// VolumeReplacement says what to do when a bound volume cannot become what
	// volumes asks for, because it has another StorageClass or is larger: Never
	// leaves it as it is; Replace has new members take the place of the old ones,
	// one by one. Default: Never.
	// +optional
	VolumeReplacement VolumeReplacement `json:"volumeReplacement,omitempty"`
	// NodeSelector that a node must match to run a member.
	// +kubebuilder:validation:MaxProperties=32
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	// Tolerations of the pods.
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +optional
	Tolerations []Toleration `json:"tolerations,omitempty"`
	// Affinity of the pods, as in a PodSpec (node affinity, pod affinity, pod
	// anti-affinity). Checked when it is decoded. Default: members of one group
	// prefer different nodes.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Type=object
	// +mapType=atomic
	// +optional
	Affinity *runtime.RawExtension `json:"affinity,omitempty"`
	// TopologySpreadConstraints of the pods; the selector is the group's own
	// members.
	// +kubebuilder:validation:MaxItems=8
	// +listType=map
	// +listMapKey=topologyKey
	// +optional
	TopologySpreadConstraints []TopologySpread `json:"topologySpreadConstraints,omitempty"`
	// Env adds environment variables to the component's container.
	// +kubebuilder:validation:MaxItems=64
	// +listType=map
	// +listMapKey=name
	// +optional
	Env []EnvVar `json:"env,omitempty"`
	// Labels are added to the pods, in place.
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.startsWith('groups.tidb.dev/') && !k.startsWith('app.kubernetes.io/'))",message="labels may not begin with groups.tidb.dev/ or app.kubernetes.io/: these belong to the operators; choose another prefix"
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// Annotations are added to the pods, in place.
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.startsWith('groups.tidb.dev/'))",message="annotations may not begin with groups.tidb.dev/: these belong to the operators; choose another prefix"
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
	// PriorityClassName of the pods.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	// +optional
	PriorityClassName string `json:"priorityClassName,omitempty"`
	// ServiceAccountName of the pods. Default: the namespace's default account,
	// whose token is not mounted.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	// +optional
	ServiceAccountName string `json:"serviceAccountName,omitempty"`
	// SecurityContext of the pods, as in a PodSpec. Checked when it is decoded. It
	// replaces the whole default; to change one field of that, use overlay.
	// Default: non-root user 1000, which also owns the volumes (fsGroup), and
	// the runtime's default seccomp profile.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Type=object
	// +mapType=atomic
	// +optional
	SecurityContext *runtime.RawExtension `json:"securityContext,omitempty"`
	// TerminationGracePeriodSeconds of the pods, in seconds. Default: PD 30,
	// TiKV 120, TiFlash 60, TiDB shutdown.delaySeconds + drainSeconds + 20, TiProxy
	// shutdown.delaySeconds + drainSeconds + closeSeconds + 5, TiCDC drainSeconds + 30.
	// In a shorter one, TiDB and TiProxy shorten these times.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	// +optional
	TerminationGracePeriodSeconds *int64 `json:"terminationGracePeriodSeconds,omitempty"`
	// Overlay is merged onto the rendered pod as a strategic merge patch:
	// {metadata: {labels, annotations}, spec: PodSpec}. Checked when it is
	// decoded. It may add containers, volumes and any other field, and may not
	// rename the component's container or remove what the operators wrote.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Type=object
	// +mapType=atomic
	// +optional
	Overlay *runtime.RawExtension `json:"overlay,omitempty"`
	// PersistentVolumeClaimRetentionPolicy says what becomes of the claims of
	// members that leave. Both default to Retain.
	// +kubebuilder:default={}
	// +optional
	PersistentVolumeClaimRetentionPolicy ClaimRetention `json:"persistentVolumeClaimRetentionPolicy,omitempty"`
	// Paused stops the operator from changing anything below this object;
	// status is still kept.
	// +optional
	Paused bool `json:"paused,omitempty"`
	// Suspended stops every pod of the group and keeps claims and objects.
	// +optional
	Suspended bool `json:"suspended,omitempty"`
	// RestartedAt restarts every member once when it changes, as safely as any
	// other roll. Any text will do; a time is most useful.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	RestartedAt string `json:"restartedAt,omitempty"`
	// Disruption says when members that serve may be stopped on purpose.
	// Default: at any time, one at a time in the whole cluster.
	// +optional
	Disruption *Disruption `json:"disruption,omitempty"`
	// ClusterDomain of Kubernetes, such as cluster.local, with which the addresses of
	// members and of PD end: basic-pd.prod.svc.cluster.local in place of
	// basic-pd.prod.svc, which holds under any domain but is tried against the
	// pods' DNS search list first. It stands in PD and cannot be set, changed or
	// removed later. Default: none.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="clusterDomain must be a DNS name such as cluster.local, without a dot at its end"
	// +optional
	ClusterDomain string `json:"clusterDomain,omitempty"`
	// PreferIPv6 has the members listen on [::] in place of 0.0.0.0: at their IPv6
	// addresses, and at IPv4 addresses as well where the node allows both. Needed where
	// the first address of pods is an IPv6 one. A change restarts the members. Default: false.
	// +optional
	PreferIPv6 bool `json:"preferIPv6,omitempty"`
	// PeerService shapes the headless Service that gives the pods their names.
	// +optional
	PeerService *IPFamilies `json:"peerService,omitempty"`
	// RevisionHistoryLimit is how many revisions are kept that no member runs.
	// Default: 10.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	// +optional
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`
}

// LocalReference names an object of the same namespace.
type LocalReference struct {
	// Name of the object.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	Name string `json:"name"`
}

// Resources are the requests and limits of a container. They are applied as a whole:
// server-side apply sets a map to null when its last item is removed.
// +structType=atomic
type Resources struct {
	// Requests by resource name (cpu, memory, ...).
	// +kubebuilder:validation:MaxProperties=16
	// +optional
	Requests corev1.ResourceList `json:"requests,omitempty"`
	// Limits by resource name (cpu, memory, ...).
	// +kubebuilder:validation:MaxProperties=16
	// +optional
	Limits corev1.ResourceList `json:"limits,omitempty"`
}

// VolumeReplacement says whether members are replaced for their volumes.
// +kubebuilder:validation:Enum=Never;Replace
type VolumeReplacement string

const (
	// KeepVolumes leaves members with the volumes that they have.
	KeepVolumes VolumeReplacement = "Never"
	// ReplaceVolumes replaces members whose volumes cannot be changed.
	ReplaceVolumes VolumeReplacement = "Replace"
)

// ConfigUpdatePolicy says how a changed configuration reaches the members that
// run.
// +kubebuilder:validation:Enum=Restart;Online
type ConfigUpdatePolicy string

const (
	// RestartForConfig restarts the members, one after the other.
	RestartForConfig ConfigUpdatePolicy = "Restart"
	// ConfigOnline gives the running members what they take while they run, and
	// restarts them for anything else.
	ConfigOnline ConfigUpdatePolicy = "Online"
)

// Volume is a persistent volume of each member. Its storage may only grow; the
// groups' own rules say so, because an increase that was refused may be taken
// back.
type Volume struct {
	// Name of the volume, unique in the group; the claim is <name>-<pod>.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=20
	// +kubebuilder:validation:Pattern=`^[a-z]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('tidb-groups-')",message="the name of a volume may not begin with tidb-groups-, as those of the operators' own do: choose another name"
	Name string `json:"name"`
	// Storage asked for, a quantity such as 100Gi, above zero. It may only grow,
	// and be set back to what claims have asked for, or while status says that the
	// increase was refused; with volumeReplacement Replace it may shrink.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="isQuantity(self) && quantity(self).isGreaterThan(quantity('0'))",message="storage must be a quantity above zero, such as 100Gi"
	Storage resource.Quantity `json:"storage"`
	// StorageClassName of the claim. Default: the cluster's default class.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	// +optional
	StorageClassName *string `json:"storageClassName,omitempty"`
	// VolumeAttributesClassName of the claim, such as one with more IOPS. It
	// changes in place, as far as the storage driver can. Unset, a claim keeps the
	// class that its volume has.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",message="volumeAttributesClassName must be the name of a VolumeAttributesClass: letters a-z, digits, - and .; see kubectl get volumeattributesclass"
	// +optional
	VolumeAttributesClassName *string `json:"volumeAttributesClassName,omitempty"`
	// Mounts of the volume. Without mounts it is a data volume: it is mounted
	// at the component's data directory (/var/lib/pd, /var/lib/tikv; TiFlash:
	// /data0, /data1, ... in order).
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	// +listType=map
	// +listMapKey=mountPath
	// +optional
	Mounts []VolumeMount `json:"mounts,omitempty"`
}

// VolumeMount is one place where a volume is mounted.
type VolumeMount struct {
	// MountPath is an absolute path.
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^/[^:]+$`
	MountPath string `json:"mountPath"`
	// SubPath below the volume's root. Default: the root itself.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	SubPath string `json:"subPath,omitempty"`
}

// Toleration is a pod's toleration of node taints.
//
// +kubebuilder:validation:XValidation:rule="!has(self.operator) || self.operator != 'Exists' || !has(self.value) || size(self.value) == 0",message="tolerations[].value goes with operator Equal: remove it, or use Equal"
// +kubebuilder:validation:XValidation:rule="(has(self.key) && size(self.key) > 0) || (has(self.operator) && self.operator == 'Exists')",message="tolerations[].key may only be empty with operator Exists: name a key, or use Exists"
// +kubebuilder:validation:XValidation:rule="!has(self.tolerationSeconds) || (has(self.effect) && self.effect == 'NoExecute')",message="tolerations[].tolerationSeconds needs effect NoExecute"
type Toleration struct {
	// Key of the taint; empty with operator Exists matches every taint.
	// +kubebuilder:validation:MaxLength=316
	// +optional
	Key string `json:"key,omitempty"`
	// Operator between key and value. Default: Equal.
	// +kubebuilder:validation:Enum=Exists;Equal
	// +optional
	Operator corev1.TolerationOperator `json:"operator,omitempty"`
	// Value of the taint.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Value string `json:"value,omitempty"`
	// Effect to tolerate. Default: all.
	// +kubebuilder:validation:Enum=NoSchedule;PreferNoSchedule;NoExecute
	// +optional
	Effect corev1.TaintEffect `json:"effect,omitempty"`
	// TolerationSeconds that a NoExecute taint is tolerated, in seconds.
	// +optional
	TolerationSeconds *int64 `json:"tolerationSeconds,omitempty"`
}

// TopologySpread spreads the members of a group over a topology.
//
// +kubebuilder:validation:XValidation:rule="!has(self.minDomains) || self.whenUnsatisfiable == 'DoNotSchedule'",message="minDomains needs whenUnsatisfiable DoNotSchedule"
type TopologySpread struct {
	// TopologyKey is a node label, such as topology.kubernetes.io/zone.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=316
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`
	TopologyKey string `json:"topologyKey"`
	// MaxSkew between the fullest and the emptiest domain.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	// +kubebuilder:default=1
	// +optional
	MaxSkew int32 `json:"maxSkew,omitempty"`
	// WhenUnsatisfiable says whether the skew binds the scheduler.
	// +kubebuilder:validation:Enum=DoNotSchedule;ScheduleAnyway
	// +kubebuilder:default=DoNotSchedule
	// +optional
	WhenUnsatisfiable corev1.UnsatisfiableConstraintAction `json:"whenUnsatisfiable,omitempty"`
	// MinDomains that must exist. Default: 1.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	// +optional
	MinDomains *int32 `json:"minDomains,omitempty"`
}

// EnvVar is an environment variable: a value, or a key of a ConfigMap or Secret.
//
// +kubebuilder:validation:XValidation:rule="[has(self.value), has(self.configMapKeyRef), has(self.secretKeyRef)].filter(x, x).size() <= 1",message="at most one of value, configMapKeyRef and secretKeyRef may be set"
type EnvVar struct {
	// Name of the variable.
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^[A-Za-z_][A-Za-z0-9_]*$`
	// +kubebuilder:validation:XValidation:rule="!(self in ['POD_NAME','NAMESPACE','TIDB_GROUPS_START'])",message="POD_NAME, NAMESPACE and TIDB_GROUPS_START are set by the operator: choose another name"
	Name string `json:"name"`
	// Value of the variable.
	// +kubebuilder:validation:MaxLength=32768
	// +optional
	Value string `json:"value,omitempty"`
	// ConfigMapKeyRef takes the value from a ConfigMap of the namespace.
	// +optional
	ConfigMapKeyRef *KeyReference `json:"configMapKeyRef,omitempty"`
	// SecretKeyRef takes the value from a Secret of the namespace; the kubelet
	// reads it, the operators never do.
	// +optional
	SecretKeyRef *KeyReference `json:"secretKeyRef,omitempty"`
}

// KeyReference names one key of an object of the namespace.
type KeyReference struct {
	// Name of the object.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	Name string `json:"name"`
	// Key in the object's data.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[-._a-zA-Z0-9]+$`
	Key string `json:"key"`
}

// ClaimPolicy says what becomes of a claim.
// +kubebuilder:validation:Enum=Retain;Delete
type ClaimPolicy string

const (
	// RetainClaim keeps the claim.
	RetainClaim ClaimPolicy = "Retain"
	// DeleteClaim deletes the claim once its pod has gone.
	DeleteClaim ClaimPolicy = "Delete"
)

// ClaimRetention has the meaning of a StatefulSet's
// persistentVolumeClaimRetentionPolicy.
type ClaimRetention struct {
	// WhenDeleted applies when the group itself is deleted, or an Instance of it by
	// a user.
	// +kubebuilder:default=Retain
	// +optional
	WhenDeleted ClaimPolicy `json:"whenDeleted,omitempty"`
	// WhenScaled applies when a member is removed by a scale-in.
	// +kubebuilder:default=Retain
	// +optional
	WhenScaled ClaimPolicy `json:"whenScaled,omitempty"`
	// RetainFor is for how long a claim that is kept is kept after its member has
	// left its cluster, such as 168h; then it is deleted. Unset: until a user
	// deletes it. Claims that are retired already keep what was said then.
	// +kubebuilder:validation:Pattern=`^([0-9]{1,5}(\.[0-9]{1,9})?(ms|s|m|h)){1,4}$`
	// +kubebuilder:validation:Type=string
	// +optional
	RetainFor *metav1.Duration `json:"retainFor,omitempty"`
}

// IPFamilies says which families of addresses a Service has. The API server lets a
// second one be added and removed, and never changes the first.
//
// +kubebuilder:validation:XValidation:rule="!has(self.ipFamilies) || self.ipFamilies.size() < 2 || (has(self.ipFamilyPolicy) && self.ipFamilyPolicy != 'SingleStack')",message="two ipFamilies need ipFamilyPolicy PreferDualStack or RequireDualStack"
// +kubebuilder:validation:XValidation:rule="!has(self.ipFamilies) || self.ipFamilies.size() < 2 || self.ipFamilies[0] != self.ipFamilies[1]",message="ipFamilies must differ from each other"
type IPFamilies struct {
	// IPFamilyPolicy says how many families: SingleStack is one, PreferDualStack both
	// where Kubernetes has both, RequireDualStack both or no Service. Default:
	// SingleStack, as in Kubernetes.
	// +kubebuilder:validation:Enum=SingleStack;PreferDualStack;RequireDualStack
	// +optional
	IPFamilyPolicy corev1.IPFamilyPolicy `json:"ipFamilyPolicy,omitempty"`
	// IPFamilies by their precedence, IPv4 or IPv6. Default: as Kubernetes has them.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=2
	// +kubebuilder:validation:items:Enum=IPv4;IPv6
	// +listType=atomic
	// +optional
	IPFamilies []corev1.IPFamily `json:"ipFamilies,omitempty"`
}

// ServiceSpec shapes the Service that clients connect to. It changes in place.
//
// +kubebuilder:validation:XValidation:rule="!has(self.loadBalancerSourceRanges) || self.type == 'LoadBalancer'",message="loadBalancerSourceRanges needs type LoadBalancer"
// +kubebuilder:validation:XValidation:rule="!has(self.loadBalancerClass) || self.type == 'LoadBalancer'",message="loadBalancerClass needs type LoadBalancer"
// +kubebuilder:validation:XValidation:rule="!has(self.externalTrafficPolicy) || self.type != 'ClusterIP'",message="externalTrafficPolicy needs type NodePort or LoadBalancer"
// +kubebuilder:validation:XValidation:rule="!has(self.ports) || self.type != 'ClusterIP' || self.ports.all(p, !has(p.nodePort))",message="ports[].nodePort needs type NodePort or LoadBalancer"
// +kubebuilder:validation:XValidation:rule="!has(self.ports) || self.ports.all(p, !has(p.port) || self.ports.filter(q, has(q.port) && q.port == p.port).size() == 1)",message="ports[].port must differ from each other"
type ServiceSpec struct {
	IPFamilies `json:",inline"`
	// Closed keeps all clients out: the Service keeps its name and its addresses, and
	// selects no pod. The components reach each other all the same, and so does a
	// Restore; Backups and spec.sql wait. Connections that are there stay. Not of PD, which
	// is reached by its Service. Default: false.
	// +optional
	Closed bool `json:"closed,omitempty"`
	// Type of the Service.
	// +kubebuilder:validation:Enum=ClusterIP;NodePort;LoadBalancer
	// +kubebuilder:default=ClusterIP
	// +optional
	Type corev1.ServiceType `json:"type,omitempty"`
	// Annotations of the Service, for cloud load balancers.
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.startsWith('groups.tidb.dev/'))",message="annotations may not begin with groups.tidb.dev/: these belong to the operators; choose another prefix"
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
	// Labels of the Service.
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.startsWith('groups.tidb.dev/') && !k.startsWith('app.kubernetes.io/'))",message="labels may not begin with groups.tidb.dev/ or app.kubernetes.io/: these belong to the operators; choose another prefix"
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// Ports overrides the port or node port of the named ports (PD: client; TiDB and
	// TiProxy: mysql, status). A Service of type LoadBalancer or NodePort publishes
	// status only if it is named here: its requests need no login.
	// +kubebuilder:validation:MaxItems=4
	// +listType=map
	// +listMapKey=name
	// +optional
	Ports []ServicePort `json:"ports,omitempty"`
	// LoadBalancerClass of a Service of type LoadBalancer. Kubernetes allows no change of it:
	// set type to ClusterIP first, and then both.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	LoadBalancerClass *string `json:"loadBalancerClass,omitempty"`
	// LoadBalancerSourceRanges are CIDRs that may connect.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=43
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^[0-9A-Fa-f.:]+/[0-9]{1,3}$')",message="loadBalancerSourceRanges must be CIDRs such as 10.0.0.0/8"
	// +listType=atomic
	// +optional
	LoadBalancerSourceRanges []string `json:"loadBalancerSourceRanges,omitempty"`
	// ExternalTrafficPolicy of a Service of type NodePort or LoadBalancer.
	// +kubebuilder:validation:Enum=Cluster;Local
	// +optional
	ExternalTrafficPolicy corev1.ServiceExternalTrafficPolicy `json:"externalTrafficPolicy,omitempty"`
}

// ServicePort overrides one named port of a Service.
type ServicePort struct {
	// Name of the port.
	// +kubebuilder:validation:Enum=client;mysql;status
	Name string `json:"name"`
	// Port of the Service. Default: the component's own port.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +optional
	Port int32 `json:"port,omitempty"`
	// NodePort to use. Default: one that the API server chooses.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +optional
	NodePort int32 `json:"nodePort,omitempty"`
}

// Sidecar is a small helper container beside the component.
type Sidecar struct {
	// Image of the container.
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:default="busybox:1.37.0"
	// +optional
	Image string `json:"image,omitempty"`
	// Resources of the container.
	// +optional
	Resources Resources `json:"resources,omitempty"`
	// Disabled leaves the container out.
	// +optional
	Disabled bool `json:"disabled,omitempty"`
}

// GroupStatus is what every group reports. Nothing in it changes by itself:
// an idle group is never written.
type GroupStatus struct {
	// ObservedGeneration is the generation that this status was computed for.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// OperatorVersion is the version of the operator that wrote this status. Not updated
	// alone, except once after an operator upgrade.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	OperatorVersion string `json:"operatorVersion,omitempty"`
	// Conditions, by type. docs/conditions.md explains each.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// Reason of Stalled, Ready or UpToDate, whichever keeps the object from what its
	// spec asks for, in this order; LeadersEvicted if all is well but for a member that
	// leads nothing on request, CertificateExpiring but for a certificate that ends soon,
	// Recovering but for a store that was away and catches up; empty if there is nothing to report. For kubectl get.
	// +optional
	Reason string `json:"reason,omitempty"`
	// Message that goes with Reason, of at most 80 characters; the condition has all
	// of it. For kubectl get -o wide.
	// +optional
	Message string `json:"message,omitempty"`
	// Updated is how many Instances are at the revision that the spec asks for, of
	// those that exist or are asked for: 2/3. For kubectl get.
	// +optional
	Updated string `json:"updated,omitempty"`
	// Replicas is the number of Instances that exist.
	Replicas int32 `json:"replicas"`
	// ReadyReplicas is the number of Instances that are Ready.
	ReadyReplicas int32 `json:"readyReplicas"`
	// UpdatedReplicas is the number of Instances at UpdateRevision.
	UpdatedReplicas int32 `json:"updatedReplicas"`
	// Selector of the group's pods, for /scale.
	// +optional
	Selector string `json:"selector,omitempty"`
	// CurrentRevision is the newest revision that every Instance has reached.
	// +optional
	CurrentRevision string `json:"currentRevision,omitempty"`
	// UpdateRevision is the revision that the spec asks for.
	// +optional
	UpdateRevision string `json:"updateRevision,omitempty"`
	// Version that every ready Instance runs, once all of them do.
	// +optional
	Version string `json:"version,omitempty"`
	// Volumes of the spec, and the most that a claim asks for of each.
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	// +optional
	Volumes []RequestedVolume `json:"volumes,omitempty"`
	// Certificates that the group uses, while they can be read.
	// +kubebuilder:validation:MaxItems=4
	// +listType=map
	// +listMapKey=secretName
	// +optional
	Certificates []CertificateStatus `json:"certificates,omitempty"`
}

// SetOperatorVersion says which version of the operator writes the status.
func (s *GroupStatus) SetOperatorVersion(version string) { s.OperatorVersion = version }

// DropWords empties what of the status only people read. Operators ask whether a group is
// Ready, and neither how many members are nor what it waits for.
func (s *GroupStatus) DropWords() {
	s.Reason, s.Message, s.Updated, s.Replicas, s.ReadyReplicas, s.UpdatedReplicas = "", "", "", 0, 0, 0
	s.Conditions = withoutWords(s.Conditions)
	for i := range s.Conditions {
		c := &s.Conditions[i]
		// For how long one is Unknown, its operator counts.
		if (c.Type == ConditionDependenciesReady || c.Type == ConditionStoresHealthy) && c.Status != metav1.ConditionUnknown {
			c.Status, c.LastTransitionTime = "", metav1.Time{}
		}
	}
}

// withoutWords returns conditions without reasons and messages.
func withoutWords(conditions []metav1.Condition) []metav1.Condition {
	out := slices.Clone(conditions)
	for i := range out {
		out[i].Reason, out[i].Message = "", ""
	}
	return out
}

// RequestedVolume is how much storage the claims of a volume ask for.
type RequestedVolume struct {
	// Name of the volume.
	// +kubebuilder:validation:MaxLength=20
	Name string `json:"name"`
	// Requested is the most that a claim of the group's Instances asks for, 0
	// without a claim. storage of the spec may be set back to it.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	Requested resource.Quantity `json:"requested"`
}
