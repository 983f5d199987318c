package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Kind of a group of TiFlash, and the value of its LabelComponent.
const (
	KindTiFlashGroup = "TiFlashGroup"
	ComponentTiFlash = "tiflash"
)

// Ports of TiFlash, by the defaults of the real server.
const (
	PortTiFlash           int32 = 3930
	PortTiFlashProxy      int32 = 20170
	PortTiFlashMetrics    int32 = 8234
	PortTiFlashProxyState int32 = 20292
)

// TiFlashTemplate describes a group of TiFlash stores.
//
// +kubebuilder:validation:XValidation:rule="has(self.volumes) && self.volumes.exists(v, !has(v.mounts))",message="volumes must have at least one data volume, which is one without mounts: they are mounted at /data0, /data1, ... in order"
// +kubebuilder:validation:XValidation:rule="!has(self.volumes) || !has(oldSelf.volumes) || !self.volumes.exists(v, !has(v.mounts)) || !oldSelf.volumes.exists(v, !has(v.mounts)) || self.volumes.exists(v, v.name == oldSelf.volumes.filter(w, !has(w.mounts))[0].name && v.name == self.volumes.filter(w, !has(w.mounts))[0].name)",message="the first data volume, which is mounted at /data0, has to stay the first: with another one in its place a store does not find what it is; add volumes behind it"
type TiFlashTemplate struct {
	ComponentSpec `json:",inline"`
	// TLS between the components of the cluster, whose PDGroup has to have it as well. It
	// is switched on or off while the group is suspended. Default: none.
	// +optional
	TLS       *TLS `json:"tls,omitempty"`
	StoreSpec `json:",inline"`
	// Replicas is the number of stores.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	// +kubebuilder:default=1
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`
	// ProxyConfig is the configuration file of TiFlash's Raft proxy, in TOML.
	// Keys that the operator owns are refused.
	// +kubebuilder:validation:MaxLength=131072
	// +optional
	ProxyConfig string `json:"proxyConfig,omitempty"`
	// StoreLabels are added to the stores' labels in PD, beside those that come
	// from node labels by PD's location-labels. They change in place.
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, !(k.lowerAscii() in ['host','zone','region','engine','exclusive']) && !k.startsWith('$') && !k.lowerAscii().startsWith('k/'))",message="storeLabels may not set host, zone, region (these come from the node), engine, exclusive (PD keeps data away from stores with these), or a key that begins with $ or k/, in capitals or not: remove it, or choose another key"
	// +kubebuilder:validation:XValidation:rule="self.all(k, self.exists_one(o, o.lowerAscii() == k.lowerAscii()))",message="keys of storeLabels must differ in more than capitals, which are one key to PD: remove one"
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.matches('^[$]?[A-Za-z0-9]([-A-Za-z0-9_./]*[A-Za-z0-9])?$') && self[k].matches('^[A-Za-z0-9]([-A-Za-z0-9_./]*[A-Za-z0-9])?$'))",message="keys and values of storeLabels must begin and end with a letter or digit and hold only letters, digits and -_./ (PD's rule)"
	// +optional
	StoreLabels map[string]StoreLabelValue `json:"storeLabels,omitempty"`
	// LogTailer is the sidecar that prints TiFlash's log files.
	// +kubebuilder:default={}
	// +optional
	LogTailer *Sidecar `json:"logTailer,omitempty"`
}

// TiFlashEntries are the TiFlash groups of a TidbCluster.
type TiFlashEntries struct {
	// TiFlash groups, named likewise with -tiflash.
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	// +optional
	TiFlash []TiFlashEntry `json:"tiflash,omitempty"`
}

// TiFlashEntry is one TiFlash group of a TidbCluster.
type TiFlashEntry struct {
	// Name of the group within the cluster; empty for the main one.
	// +kubebuilder:validation:MaxLength=20
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$`
	// +kubebuilder:default=""
	// +optional
	Name            string `json:"name"`
	TiFlashTemplate `json:",inline"`
}

// TiFlashGroupSpec is a TiFlashTemplate and the PDGroup that it belongs to.
type TiFlashGroupSpec struct {
	TiFlashTemplate `json:",inline"`
	// PDGroup that the stores belong to, in the same namespace. Immutable.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="pdGroup is immutable: create another group instead"
	PDGroup LocalReference `json:"pdGroup"`
}

// TiFlashGroupStatus is what the tiflashgroup operator has found.
//
// It has one writer, which writes it as a whole.
// +structType=atomic
type TiFlashGroupStatus struct {
	GroupStatus      `json:",inline"`
	StoreGroupStatus `json:",inline"`
}

// DropWords empties what of the status only people read.
func (s *TiFlashGroupStatus) DropWords() {
	s.GroupStatus.DropWords()
	s.Stores = nil
}

// TiFlashGroup is a group of TiFlash stores with one configuration.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:resource:shortName=tgfl,categories={tidb-groups,tidb-all}
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Up-to-date",type=string,JSONPath=`.status.conditions[?(@.type=="UpToDate")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.reason`
// +kubebuilder:printcolumn:name="Updated",type=string,JSONPath=`.status.updated`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.version`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Stores",type=integer,priority=1,JSONPath=`.status.readyReplicas`
// +kubebuilder:printcolumn:name="Desired",type=integer,priority=1,JSONPath=`.spec.replicas`
// +kubebuilder:printcolumn:name="PD",type=string,priority=1,JSONPath=`.spec.pdGroup.name`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.message`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 40 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name must be at most 40 characters of a-z, 0-9 and -, and begin with a letter: Services and pods are named after it"
// +kubebuilder:validation:XValidation:rule="has(self.spec.version)",message="spec.version must be set, to an image tag such as v8.5.7",fieldPath=".spec.version"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.volumes) || !has(oldSelf.spec.volumes) || (has(self.spec.volumeReplacement) && self.spec.volumeReplacement == 'Replace') || self.spec.volumes.all(v, oldSelf.spec.volumes.all(o, o.name != v.name || !isQuantity(v.storage) || !isQuantity(o.storage) || quantity(v.storage).compareTo(quantity(o.storage)) >= 0) || (has(self.status) && has(self.status.volumes) && self.status.volumes.exists(r, r.name == v.name && isQuantity(r.requested) && quantity(v.storage).compareTo(quantity(r.requested)) >= 0))) || (has(self.status) && has(self.status.conditions) && self.status.conditions.exists(c, c.type == 'UpToDate' && c.reason in ['QuotaExceeded', 'LimitRangeExceeded', 'ClaimRejected', 'VolumeChangeFailed']))",message="spec.volumes[].storage may only grow, unless no claim has asked for more (status.volumes) or status says that an increase was refused: set it back to what it was, or set spec.volumeReplacement to Replace",fieldPath=".spec.volumes"
// +kubebuilder:validation:XValidation:rule="has(self.spec.tls) == has(oldSelf.spec.tls) || has(self.spec.suspended) && self.spec.suspended || has(oldSelf.spec.suspended) && oldSelf.spec.suspended",message="spec.tls can be added or removed only while no pod runs, for the members of PD speak either http or https to each other: set spec.suspended to true in the same patch, of all groups of the cluster (docs/tasks/tls.md)",fieldPath=".spec.tls"
type TiFlashGroup struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what is asked for.
	Spec TiFlashGroupSpec `json:"spec"`
	// Status is what the tiflashgroup operator has found.
	// +optional
	Status TiFlashGroupStatus `json:"status,omitempty"`
}

// TiFlashGroupList is a list of TiFlashGroups.
//
// +kubebuilder:object:root=true
type TiFlashGroupList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []TiFlashGroup `json:"items"`
}

// GroupKind implements Group.
func (g *TiFlashGroup) GroupKind() string { return KindTiFlashGroup }

// Component implements Group.
func (g *TiFlashGroup) Component() string { return ComponentTiFlash }

// PDGroupName implements Group.
func (g *TiFlashGroup) PDGroupName() string { return g.Spec.PDGroup.Name }

// GetReplicas implements Group.
func (g *TiFlashGroup) GetReplicas() int32 { return replicaCount(g.Spec.Replicas) }

// GetComponentSpec implements Group.
func (g *TiFlashGroup) GetComponentSpec() *ComponentSpec { return &g.Spec.ComponentSpec }

// GetStoreSpec implements StoreGroup.
func (g *TiFlashGroup) GetStoreSpec() *StoreSpec { return &g.Spec.StoreSpec }

// GetStoreStatus implements StoreGroup.
func (g *TiFlashGroup) GetStoreStatus() *StoreGroupStatus { return &g.Status.StoreGroupStatus }

// GetTLS implements Group.
func (g *TiFlashGroup) GetTLS() *TLS { return g.Spec.TLS }

// GetGroupStatus implements Group.
func (g *TiFlashGroup) GetGroupStatus() *GroupStatus { return &g.Status.GroupStatus }

// Groups implements GroupList.
func (l *TiFlashGroupList) Groups() []Group { return groupsOf(l.Items) }

// tiflashComponent is the component's row of ComponentTable.
func tiflashComponent() ComponentInfo {
	return ComponentInfo{
		Kind: KindTiFlashGroup, Component: ComponentTiFlash, Resource: "tiflashgroups", Rollout: 2,
		Stores: true, LearnerEngine: "tiflash", NeedsTiKV: true, NeedsPlacementRules: true, StatusPort: PortTiFlashProxyState,
		New:     func() Group { return &TiFlashGroup{} },
		NewList: func() GroupList { return &TiFlashGroupList{} },
		Entries: func(c *TidbClusterSpec, pd LocalReference) []Entry {
			var out []Entry
			for _, e := range c.TiFlash {
				g := &TiFlashGroup{Spec: TiFlashGroupSpec{TiFlashTemplate: *e.TiFlashTemplate.DeepCopy(), PDGroup: pd}}
				g.Spec.TLS = inheritTLS(c, g.Spec.TLS)
				out = append(out, Entry{e.Name, g})
			}
			return out
		},
	}
}
