package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Kind of a group of TiCDC, and the value of its LabelComponent.
const (
	KindTiCDCGroup = "TiCDCGroup"
	ComponentTiCDC = "ticdc"
)

// PortTiCDC is the one port of TiCDC, by the default of the real server.
const PortTiCDC int32 = 8301

// TiCDCTemplate describes a group of TiCDC captures, which copy what changes in a cluster
// to other systems. What they copy and how far they are, their changefeeds, is kept in PD.
//
// +kubebuilder:validation:XValidation:rule="!has(self.volumes) || self.volumes.all(v, has(v.mounts))",message="volumes of a TiCDCGroup must have mounts: mount one at /var/lib/ticdc to have captures sort on it"
type TiCDCTemplate struct {
	ComponentSpec `json:",inline"`
	// TLS between the components of the cluster, whose PDGroup has to have it as well. It
	// is switched on or off while the group is suspended. Default: none.
	// +optional
	TLS *TLS `json:"tls,omitempty"`
	// Replicas is the number of captures.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	// +kubebuilder:default=2
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`
	// SinkSecrets are Secrets of the namespace that captures read, such as certificates
	// and passwords of the systems that they write to. Each is mounted at
	// /var/lib/sink-secrets/<name>, and changes there when the Secret does. The operators
	// never read them.
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	// +listType=set
	// +optional
	SinkSecrets []string `json:"sinkSecrets,omitempty"`
	// DrainSeconds for which a capture may hand over what it owns and copies before it
	// stops, at most, in seconds. A capture that is alone has no other to hand over to, and
	// stops at once.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	// +kubebuilder:default=600
	// +optional
	DrainSeconds *int64 `json:"drainSeconds,omitempty"`
}

// TiCDCEntries are the TiCDC groups of a TidbCluster.
type TiCDCEntries struct {
	// TiCDC groups, named likewise with -ticdc.
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	// +optional
	TiCDC []TiCDCEntry `json:"ticdc,omitempty"`
}

// TiCDCEntry is one TiCDC group of a TidbCluster.
type TiCDCEntry struct {
	// Name of the group within the cluster; empty for the main one.
	// +kubebuilder:validation:MaxLength=20
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$`
	// +kubebuilder:default=""
	// +optional
	Name          string `json:"name"`
	TiCDCTemplate `json:",inline"`
}

// TiCDCGroupSpec is a TiCDCTemplate and the PDGroup that it belongs to.
type TiCDCGroupSpec struct {
	TiCDCTemplate `json:",inline"`
	// PDGroup of the cluster whose changes are copied, in the same namespace. Immutable.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="pdGroup is immutable: create another group instead"
	PDGroup LocalReference `json:"pdGroup"`
}

// TiCDCGroupStatus is what the ticdcgroup operator has found.
//
// It has one writer, which writes it as a whole.
// +structType=atomic
type TiCDCGroupStatus struct {
	GroupStatus `json:",inline"`
}

// TiCDCGroup is a group of TiCDC captures with one configuration.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:resource:shortName=tgcdc,categories={tidb-groups,tidb-all}
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Up-to-date",type=string,JSONPath=`.status.conditions[?(@.type=="UpToDate")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.reason`
// +kubebuilder:printcolumn:name="Updated",type=string,JSONPath=`.status.updated`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.version`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Captures",type=integer,priority=1,JSONPath=`.status.readyReplicas`
// +kubebuilder:printcolumn:name="Desired",type=integer,priority=1,JSONPath=`.spec.replicas`
// +kubebuilder:printcolumn:name="PD",type=string,priority=1,JSONPath=`.spec.pdGroup.name`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.message`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 40 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name must be at most 40 characters of a-z, 0-9 and -, and begin with a letter: Services and pods are named after it"
// +kubebuilder:validation:XValidation:rule="has(self.spec.version)",message="spec.version must be set, to an image tag such as v8.5.7",fieldPath=".spec.version"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.volumes) || !has(oldSelf.spec.volumes) || (has(self.spec.volumeReplacement) && self.spec.volumeReplacement == 'Replace') || self.spec.volumes.all(v, oldSelf.spec.volumes.all(o, o.name != v.name || !isQuantity(v.storage) || !isQuantity(o.storage) || quantity(v.storage).compareTo(quantity(o.storage)) >= 0) || (has(self.status) && has(self.status.volumes) && self.status.volumes.exists(r, r.name == v.name && isQuantity(r.requested) && quantity(v.storage).compareTo(quantity(r.requested)) >= 0))) || (has(self.status) && has(self.status.conditions) && self.status.conditions.exists(c, c.type == 'UpToDate' && c.reason in ['QuotaExceeded', 'LimitRangeExceeded', 'ClaimRejected', 'VolumeChangeFailed']))",message="spec.volumes[].storage may only grow, unless no claim has asked for more (status.volumes) or status says that an increase was refused: set it back to what it was, or set spec.volumeReplacement to Replace",fieldPath=".spec.volumes"
// +kubebuilder:validation:XValidation:rule="has(self.spec.tls) == has(oldSelf.spec.tls) || has(self.spec.suspended) && self.spec.suspended || has(oldSelf.spec.suspended) && oldSelf.spec.suspended",message="spec.tls can be added or removed only while no pod runs, for the members of PD speak either http or https to each other: set spec.suspended to true in the same patch, of all groups of the cluster (docs/tasks/tls.md)",fieldPath=".spec.tls"
type TiCDCGroup struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what is asked for.
	Spec TiCDCGroupSpec `json:"spec"`
	// Status is what the ticdcgroup operator has found.
	// +optional
	Status TiCDCGroupStatus `json:"status,omitempty"`
}

// TiCDCGroupList is a list of TiCDCGroups.
//
// +kubebuilder:object:root=true
type TiCDCGroupList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []TiCDCGroup `json:"items"`
}

// GroupKind implements Group.
func (g *TiCDCGroup) GroupKind() string { return KindTiCDCGroup }

// Component implements Group.
func (g *TiCDCGroup) Component() string { return ComponentTiCDC }

// PDGroupName implements Group.
func (g *TiCDCGroup) PDGroupName() string { return g.Spec.PDGroup.Name }

// GetReplicas implements Group.
func (g *TiCDCGroup) GetReplicas() int32 { return replicaCount(g.Spec.Replicas) }

// GetComponentSpec implements Group.
func (g *TiCDCGroup) GetComponentSpec() *ComponentSpec { return &g.Spec.ComponentSpec }

// GetTLS implements Group.
func (g *TiCDCGroup) GetTLS() *TLS { return g.Spec.TLS }

// GetGroupStatus implements Group.
func (g *TiCDCGroup) GetGroupStatus() *GroupStatus { return &g.Status.GroupStatus }

// Groups implements GroupList.
func (l *TiCDCGroupList) Groups() []Group { return groupsOf(l.Items) }

// ticdcComponent is the component's row of ComponentTable.
func ticdcComponent() ComponentInfo {
	return ComponentInfo{
		Kind: KindTiCDCGroup, Component: ComponentTiCDC, Resource: "ticdcgroups", OwnReleases: true, UpgradedFirst: true,
		Stateless: true, NeedsTiKV: true, StatusPort: PortTiCDC,
		New:     func() Group { return &TiCDCGroup{} },
		NewList: func() GroupList { return &TiCDCGroupList{} },
		Entries: func(c *TidbClusterSpec, pd LocalReference) []Entry {
			var out []Entry
			for _, e := range c.TiCDC {
				g := &TiCDCGroup{Spec: TiCDCGroupSpec{TiCDCTemplate: *e.TiCDCTemplate.DeepCopy(), PDGroup: pd}}
				g.Spec.TLS = inheritTLS(c, g.Spec.TLS)
				out = append(out, Entry{e.Name, g})
			}
			return out
		},
	}
}
