package v1alpha1

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Kind of a group of PD, and the value of its LabelComponent.
const (
	KindPDGroup = "PDGroup"
	ComponentPD = "pd"
)

// Ports of PD, by the defaults of the real server.
const (
	PortPDClient int32 = 2379
	PortPDPeer   int32 = 2380
)

// PDTemplate describes the PD members of one TiDB cluster.
//
// +kubebuilder:validation:XValidation:rule="has(self.volumes) && self.volumes.filter(v, !has(v.mounts)).size() == 1",message="volumes must have exactly one data volume, which is the one without mounts: it is mounted at /var/lib/pd"
// +kubebuilder:validation:XValidation:rule="!has(self.volumes) || !has(oldSelf.volumes) || !self.volumes.exists(v, !has(v.mounts)) || !oldSelf.volumes.exists(v, !has(v.mounts)) || self.volumes.exists(v, !has(v.mounts) && oldSelf.volumes.exists(o, !has(o.mounts) && o.name == v.name))",message="the data volume has to stay: another name is another claim, which is empty, and with an empty one a member does not find what it is; set its name back"
// +kubebuilder:validation:XValidation:rule="!has(self.service) || !has(self.service.ports) || self.service.ports.all(p, !has(p.port) || p.port == 2379)",message="service.ports[].port of a PDGroup is 2379, which its members and the other groups connect to: remove it, or set nodePort"
// +kubebuilder:validation:XValidation:rule="!has(self.service) || !has(self.service.ports) || self.service.ports.all(p, p.name == 'client')",message="service.ports of a PDGroup may only name client"
// +kubebuilder:validation:XValidation:rule="!has(self.service) || !has(self.service.closed) || !self.service.closed",message="service.closed does not go with PD: every component reaches it by its Service; close that of TiDB or TiProxy"
type PDTemplate struct {
	ComponentSpec `json:",inline"`
	// TLS between the components of the cluster. It is switched on or off while the group is suspended.
	// Default: none.
	// +optional
	TLS *PDTLS `json:"tls,omitempty"`
	// Replicas is the number of PD members, best odd. It cannot be changed
	// until the group is Bootstrapped. The last member never leaves: 0 is refused.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=7
	// +kubebuilder:default=3
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`
	// Service that clients find PD by; its name is the group's.
	// +kubebuilder:default={type: ClusterIP}
	// +optional
	Service *ServiceSpec `json:"service,omitempty"`
	// ReplaceAfter is how long PD may call a member unhealthy before the member is
	// removed from PD and a new one joins with an empty volume, such as 30m; 0s is
	// never. Only one is replaced at a time, and only while the others make a
	// majority. A member whose volume is gone is replaced at once. Default: 30m.
	// +kubebuilder:validation:Pattern=`^([0-9]{1,5}(\.[0-9]{1,9})?(ms|s|m|h)){1,4}$`
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +optional
	ReplaceAfter *metav1.Duration `json:"replaceAfter,omitempty"`
}

// PDEntry is one PD group of a TidbCluster.
type PDEntry struct {
	PDTemplate `json:",inline"`
}

// PDGroupSpec is a PDTemplate.
type PDGroupSpec struct {
	PDTemplate `json:",inline"`
}

// PDGroupStatus is what the pdgroup operator has found.
//
// It has one writer, which writes it as a whole.
// +structType=atomic
type PDGroupStatus struct {
	GroupStatus `json:",inline"`
	// ClusterID of PD, written once. A PD that answers with another one is
	// never used.
	// +optional
	ClusterID string `json:"clusterID,omitempty"`
	// Leader is the name of the member that leads PD.
	// +optional
	Leader string `json:"leader,omitempty"`
	// InitialMembers are the Instances that bootstrap the cluster, until its ID is known. One
	// that is gone without having been released is never started again: it could
	// bootstrap a second cluster.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	// +optional
	InitialMembers []PDInitialMember `json:"initialMembers,omitempty"`
	// Members as PD lists them.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Members []PDMember `json:"members,omitempty"`
	// Recovery is how far PD is with being rebuilt from one member, as the
	// annotation groups.tidb.dev/recover-quorum asked for it. It stands here until
	// the annotation is taken off.
	// +optional
	Recovery *PDRecovery `json:"recovery,omitempty"`
	// CARotation is how far another CA has taken the place of the cluster's own; nothing
	// while none does.
	// +optional
	CARotation *CARotation `json:"caRotation,omitempty"`
	// Scheme of the URLs that PD's members listen at: http, or https with spec.tls. It
	// follows spec.tls once all pods of the suspended group have stopped.
	// +kubebuilder:validation:Enum=http;https
	// +optional
	Scheme string `json:"scheme,omitempty"`
	// PeersHaveBothSchemes says that PD lists an http and an https URL of each of its
	// members, so that they find each other whichever they start with. It is made so
	// before the pods of a suspended group stop whose spec.tls was added or removed.
	// +optional
	PeersHaveBothSchemes bool `json:"peersHaveBothSchemes,omitempty"`
	// ClientSecretName is the Secret that PD is connected to with while Scheme is https.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	ClientSecretName string `json:"clientSecretName,omitempty"`
}

// DropWords empties what of the status only people read. Operators ask which members PD lists.
func (s *PDGroupStatus) DropWords() {
	s.GroupStatus.DropWords()
	s.Leader, s.Members = "", slices.Clone(s.Members)
	for i := range s.Members {
		s.Members[i] = PDMember{Name: s.Members[i].Name}
	}
}

// Schemes of URLs.
const (
	SchemeHTTP  = "http"
	SchemeHTTPS = "https"
)

// PDRecovery is a request to rebuild PD that is obeyed, or has been.
type PDRecovery struct {
	// Request is the annotation's value. It is not obeyed again.
	// +kubebuilder:validation:MaxLength=128
	Request string `json:"request"`
	// Survivor is the Instance whose member PD is rebuilt from.
	Survivor PDRecoveryMember `json:"survivor"`
	// Discarded are the Instances whose members the new PD does not know: their
	// pods stop first, their claims are kept, and new members take their place.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Discarded []PDRecoveryMember `json:"discarded,omitempty"`
	// Phase is what is done now.
	Phase PDRecoveryPhase `json:"phase"`
}

// PDRecoveryMember is an Instance of a PD that is rebuilt.
type PDRecoveryMember struct {
	// Name of the Instance.
	Name string `json:"name"`
	// UID of the Instance: one that is made later under the same name is another.
	UID types.UID `json:"uid"`
}

// PDRecoveryPhase is a step of a recovery.
//
// +kubebuilder:validation:Enum=Stopping;Forcing;Restarting;Retiring;Finished
type PDRecoveryPhase string

const (
	// RecoveryStopping stops the pods of all members but the survivor. It may still
	// be taken back.
	RecoveryStopping PDRecoveryPhase = "Stopping"
	// RecoveryForcing runs the survivor with --force-new-cluster until it answers
	// alone, with the same cluster ID.
	RecoveryForcing PDRecoveryPhase = "Forcing"
	// RecoveryRestarting runs the survivor without the flag again: another start
	// with it would throw out members that have joined.
	RecoveryRestarting PDRecoveryPhase = "Restarting"
	// RecoveryRetiring lets the discarded Instances go. Their claims stay, marked as
	// retired.
	RecoveryRetiring PDRecoveryPhase = "Retiring"
	// RecoveryFinished leaves the rest to the group's ordinary scale-out.
	RecoveryFinished PDRecoveryPhase = "Finished"
)

// PDInitialMember is an Instance that bootstraps the cluster: PD's --initial-cluster lists it.
type PDInitialMember struct {
	// Name of the Instance.
	Name string `json:"name"`
	// UID of the Instance.
	UID types.UID `json:"uid"`
}

// PDMember is a member of PD, as PD lists it.
type PDMember struct {
	// Name of the member, which is the name of its Instance and pod.
	Name string `json:"name"`
	// ID that etcd gave it, in decimal.
	// +optional
	ID string `json:"id,omitempty"`
	// Healthy as PD's own health check says.
	Healthy bool `json:"healthy"`
	// ClientURL that it advertises.
	// +optional
	ClientURL string `json:"clientURL,omitempty"`
}

// PDGroup is the PD members of one TiDB cluster. Everything that names the
// same PDGroup is one cluster.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:resource:shortName=tgpd,categories={tidb-groups,tidb-all}
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Up-to-date",type=string,JSONPath=`.status.conditions[?(@.type=="UpToDate")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.reason`
// +kubebuilder:printcolumn:name="Updated",type=string,JSONPath=`.status.updated`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.version`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Members",type=integer,priority=1,JSONPath=`.status.readyReplicas`
// +kubebuilder:printcolumn:name="Desired",type=integer,priority=1,JSONPath=`.spec.replicas`
// +kubebuilder:printcolumn:name="Leader",type=string,priority=1,JSONPath=`.status.leader`
// +kubebuilder:printcolumn:name="Cluster ID",type=string,priority=1,JSONPath=`.status.clusterID`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.message`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 40 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name must be at most 40 characters of a-z, 0-9 and -, and begin with a letter: Services and pods are named after it"
// +kubebuilder:validation:XValidation:rule="self.spec.replicas == oldSelf.spec.replicas || (has(self.status) && has(self.status.conditions) && self.status.conditions.exists(c, c.type == 'Bootstrapped' && c.status == 'True'))",message="spec.replicas cannot change until PD has bootstrapped: wait for condition Bootstrapped, or delete the group and recreate it",fieldPath=".spec.replicas"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.replicas) || self.spec.replicas > 0 || (has(self.status) && has(self.status.conditions) && self.status.conditions.exists(c, c.type == 'Bootstrapped' && c.status == 'True'))",message="spec.replicas must be at least 1: a cluster is bootstrapped by its members",fieldPath=".spec.replicas"
// +kubebuilder:validation:XValidation:rule="has(self.spec.version)",message="spec.version must be set, to an image tag such as v8.5.7",fieldPath=".spec.version"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.volumes) || !has(oldSelf.spec.volumes) || (has(self.spec.volumeReplacement) && self.spec.volumeReplacement == 'Replace') || self.spec.volumes.all(v, oldSelf.spec.volumes.all(o, o.name != v.name || !isQuantity(v.storage) || !isQuantity(o.storage) || quantity(v.storage).compareTo(quantity(o.storage)) >= 0) || (has(self.status) && has(self.status.volumes) && self.status.volumes.exists(r, r.name == v.name && isQuantity(r.requested) && quantity(v.storage).compareTo(quantity(r.requested)) >= 0))) || (has(self.status) && has(self.status.conditions) && self.status.conditions.exists(c, c.type == 'UpToDate' && c.reason in ['QuotaExceeded', 'LimitRangeExceeded', 'ClaimRejected', 'VolumeChangeFailed']))",message="spec.volumes[].storage may only grow, unless no claim has asked for more (status.volumes) or status says that an increase was refused: set it back to what it was, or set spec.volumeReplacement to Replace",fieldPath=".spec.volumes"
// +kubebuilder:validation:XValidation:rule="has(self.spec.tls) == has(oldSelf.spec.tls) || has(self.spec.suspended) && self.spec.suspended || has(oldSelf.spec.suspended) && oldSelf.spec.suspended",message="spec.tls can be added or removed only while no pod runs, for the members of PD speak either http or https to each other: set spec.suspended to true in the same patch, of all groups of the cluster (docs/tasks/tls.md)",fieldPath=".spec.tls"
type PDGroup struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what is asked for.
	Spec PDGroupSpec `json:"spec"`
	// Status is what the pdgroup operator has found.
	// +optional
	Status PDGroupStatus `json:"status,omitempty"`
}

// PDGroupList is a list of PDGroups.
//
// +kubebuilder:object:root=true
type PDGroupList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PDGroup `json:"items"`
}

// GroupKind implements Group.
func (g *PDGroup) GroupKind() string { return KindPDGroup }

// Component implements Group.
func (g *PDGroup) Component() string { return ComponentPD }

// PDGroupName implements Group.
func (g *PDGroup) PDGroupName() string { return g.Name }

// GetReplicas implements Group.
func (g *PDGroup) GetReplicas() int32 { return replicaCount(g.Spec.Replicas) }

// GetComponentSpec implements Group.
func (g *PDGroup) GetComponentSpec() *ComponentSpec { return &g.Spec.ComponentSpec }

// GetTLS implements Group.
func (g *PDGroup) GetTLS() *TLS {
	if g.Spec.TLS == nil {
		return nil
	}
	return &g.Spec.TLS.TLS
}

// GetGroupStatus implements Group.
func (g *PDGroup) GetGroupStatus() *GroupStatus { return &g.Status.GroupStatus }

// replicaCount reads an optional replica count; the schema's defaults fill it in,
// so nil only occurs on objects that no API server has seen.
func replicaCount(n *int32) int32 {
	if n == nil {
		return 0
	}
	return *n
}

// Groups implements GroupList.
func (l *PDGroupList) Groups() []Group { return groupsOf(l.Items) }

// pdComponent is the component's row of ComponentTable.
func pdComponent() ComponentInfo {
	return ComponentInfo{
		Kind: KindPDGroup, Component: ComponentPD, Resource: "pdgroups", Rollout: 1, OwnCommonNames: true, StatusPort: PortPDClient,
		New:     func() Group { return &PDGroup{} },
		NewList: func() GroupList { return &PDGroupList{} },
		Entries: func(c *TidbClusterSpec, _ LocalReference) []Entry {
			g := &PDGroup{Spec: PDGroupSpec{PDTemplate: *c.PD.PDTemplate.DeepCopy()}}
			g.Spec.TLS = inheritTLS(c, g.Spec.TLS)
			if c.TLS != nil {
				g.Spec.TLS.ClientSecretName = cmp.Or(g.Spec.TLS.ClientSecretName, c.TLS.ClientSecretName)
				if !g.Spec.TLS.MakesSecrets() {
					g.Spec.TLS.CertificateSource = *c.TLS.CertificateSource.DeepCopy()
				}
			}
			return []Entry{{Group: g}}
		},
	}
}
