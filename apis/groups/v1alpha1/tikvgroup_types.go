package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Kind of a group of TiKV, and the value of its LabelComponent.
const (
	KindTiKVGroup = "TiKVGroup"
	ComponentTiKV = "tikv"
)

// Ports of TiKV, by the defaults of the real server.
const (
	PortTiKV       int32 = 20160
	PortTiKVStatus int32 = 20180
)

// TiKVTemplate describes a group of TiKV stores. Several groups may share one
// PDGroup.
//
// +kubebuilder:validation:XValidation:rule="has(self.volumes) && self.volumes.filter(v, !has(v.mounts)).size() == 1",message="volumes must have exactly one data volume, which is the one without mounts: it is mounted at /var/lib/tikv"
// +kubebuilder:validation:XValidation:rule="!has(self.volumes) || !has(oldSelf.volumes) || !self.volumes.exists(v, !has(v.mounts)) || !oldSelf.volumes.exists(v, !has(v.mounts)) || self.volumes.exists(v, !has(v.mounts) && oldSelf.volumes.exists(o, !has(o.mounts) && o.name == v.name))",message="the data volume has to stay: another name is another claim, which is empty, and with an empty one a member does not find what it is; set its name back"
type TiKVTemplate struct {
	ComponentSpec `json:",inline"`
	// TLS between the components of the cluster, whose PDGroup has to have it as well. It
	// is switched on or off while the group is suspended. Default: none.
	// +optional
	TLS       *TLS `json:"tls,omitempty"`
	StoreSpec `json:",inline"`
	// Replicas is the number of stores.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	// +kubebuilder:default=3
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`
	// StoreLabels are added to the stores' labels in PD, beside those that come
	// from node labels by PD's location-labels. They change in place.
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, !(k.lowerAscii() in ['host','zone','region','engine','exclusive']) && !k.startsWith('$') && !k.lowerAscii().startsWith('k/'))",message="storeLabels may not set host, zone, region (these come from the node), engine, exclusive (PD keeps data away from stores with these), or a key that begins with $ or k/, in capitals or not: remove it, or choose another key"
	// +kubebuilder:validation:XValidation:rule="self.all(k, self.exists_one(o, o.lowerAscii() == k.lowerAscii()))",message="keys of storeLabels must differ in more than capitals, which are one key to PD: remove one"
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.matches('^[$]?[A-Za-z0-9]([-A-Za-z0-9_./]*[A-Za-z0-9])?$') && self[k].matches('^[A-Za-z0-9]([-A-Za-z0-9_./]*[A-Za-z0-9])?$'))",message="keys and values of storeLabels must begin and end with a letter or digit and hold only letters, digits and -_./ (PD's rule)"
	// +optional
	StoreLabels map[string]StoreLabelValue `json:"storeLabels,omitempty"`
	// Placement says which regions PD places on the stores.
	// +optional
	Placement *StorePlacement `json:"placement,omitempty"`
	// EvictLeaderTimeout is how long the leaders of a store may take to move away
	// before it is stopped, such as 10m. Then it is stopped with those that are
	// left, which costs their regions some seconds. Default: 10m.
	// +kubebuilder:validation:Pattern=`^([0-9]{1,5}(\.[0-9]{1,9})?(ms|s|m|h)){1,4}$`
	// +kubebuilder:validation:Type=string
	// +optional
	EvictLeaderTimeout *metav1.Duration `json:"evictLeaderTimeout,omitempty"`
	// RestartTogether is one of PD's location-labels, such as zone: the stores of
	// the group that have the same value of it are restarted at the same time, as
	// long as PD's placement proves that every region keeps its majority without
	// all of them. Where it does not, one is restarted after the other, and status
	// says why. Nothing else than restarts is done together. Unset: one after the
	// other.
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^[$]?[A-Za-z0-9]([-A-Za-z0-9_./]*[A-Za-z0-9])?$')",message="restartTogether must be one of PD's location-labels, such as zone: letters, digits and -_./, a letter or digit first and last"
	// +optional
	RestartTogether string `json:"restartTogether,omitempty"`
	// FlushLogBackups has a store write out what its log backups hold in memory
	// when its leaders have moved away and before it is restarted, for 3 minutes at
	// most. Default: true.
	// +optional
	FlushLogBackups *bool `json:"flushLogBackups,omitempty"`
	// ConfigUpdate is how a changed config reaches the stores. Restart restarts
	// them, one after the other. Online gives it to the running stores if only items
	// differ that TiKV takes while it runs, and restarts them otherwise. Default:
	// Restart.
	// +optional
	ConfigUpdate ConfigUpdatePolicy `json:"configUpdate,omitempty"`
}

// StorePlacement says which regions PD places on the stores of a group. It is applied
// as a whole: server-side apply sets a map to null when its last item is removed,
// and {exclusive: false} is empty when it is encoded.
// +structType=atomic
type StorePlacement struct {
	// Exclusive keeps all regions away from the stores but those that a placement
	// rule of PD sends there: one with a constraint on the label $k/exclusive, and
	// most often on k/tikvgroup, which is NAMESPACE.NAME of the group. It changes in
	// place, and PD moves the regions. Default: false.
	// +optional
	Exclusive bool `json:"exclusive,omitempty"`
}

// TiKVEntries are the TiKV groups of a TidbCluster.
type TiKVEntries struct {
	// TiKV groups: <name>-tikv for the one without a name, <name>-tikv-<group>
	// for the others.
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	// +optional
	TiKV []TiKVEntry `json:"tikv,omitempty"`
}

// TiKVEntry is one TiKV group of a TidbCluster.
type TiKVEntry struct {
	// Name of the group within the cluster; empty for the main one.
	// +kubebuilder:validation:MaxLength=20
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$`
	// +kubebuilder:default=""
	// +optional
	Name         string `json:"name"`
	TiKVTemplate `json:",inline"`
}

// TiKVGroupSpec is a TiKVTemplate and the PDGroup that it belongs to.
type TiKVGroupSpec struct {
	TiKVTemplate `json:",inline"`
	// PDGroup that the stores belong to, in the same namespace. Immutable.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="pdGroup is immutable: create another group instead"
	PDGroup LocalReference `json:"pdGroup"`
}

// StoreLabelValue is the value of a store's or server's label.
// +kubebuilder:validation:MaxLength=63
type StoreLabelValue string

// StoreStatus is a store as PD lists it.
type StoreStatus struct {
	// Instance that the store belongs to.
	Instance string `json:"instance"`
	// ID that PD gave the store, in decimal.
	// +optional
	ID string `json:"id,omitempty"`
	// State as PD names it: Up, Disconnected, Down, Offline, Tombstone.
	// +optional
	State string `json:"state,omitempty"`
}

// StoreGroupStatus is what a group of stores reports beside GroupStatus.
type StoreGroupStatus struct {
	// Stores, one per Instance that has registered with PD.
	// +listType=map
	// +listMapKey=instance
	// +kubebuilder:validation:MaxItems=2000
	// +optional
	Stores []StoreStatus `json:"stores,omitempty"`
}

// DropWords empties what of the status only people read.
func (s *TiKVGroupStatus) DropWords() {
	s.GroupStatus.DropWords()
	s.Stores = nil
}

// TiKVGroupStatus is what the tikvgroup operator has found.
//
// It has one writer, which writes it as a whole.
// +structType=atomic
type TiKVGroupStatus struct {
	GroupStatus      `json:",inline"`
	StoreGroupStatus `json:",inline"`
}

// TiKVGroup is a group of TiKV stores with one configuration.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:resource:shortName=tgkv,categories={tidb-groups,tidb-all}
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
type TiKVGroup struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what is asked for.
	Spec TiKVGroupSpec `json:"spec"`
	// Status is what the tikvgroup operator has found.
	// +optional
	Status TiKVGroupStatus `json:"status,omitempty"`
}

// TiKVGroupList is a list of TiKVGroups.
//
// +kubebuilder:object:root=true
type TiKVGroupList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []TiKVGroup `json:"items"`
}

// GroupKind implements Group.
func (g *TiKVGroup) GroupKind() string { return KindTiKVGroup }

// Component implements Group.
func (g *TiKVGroup) Component() string { return ComponentTiKV }

// PDGroupName implements Group.
func (g *TiKVGroup) PDGroupName() string { return g.Spec.PDGroup.Name }

// GetReplicas implements Group.
func (g *TiKVGroup) GetReplicas() int32 { return replicaCount(g.Spec.Replicas) }

// GetComponentSpec implements Group.
func (g *TiKVGroup) GetComponentSpec() *ComponentSpec { return &g.Spec.ComponentSpec }

// GetStoreSpec implements StoreGroup.
func (g *TiKVGroup) GetStoreSpec() *StoreSpec { return &g.Spec.StoreSpec }

// GetStoreStatus implements StoreGroup.
func (g *TiKVGroup) GetStoreStatus() *StoreGroupStatus { return &g.Status.StoreGroupStatus }

// GetTLS implements Group.
func (g *TiKVGroup) GetTLS() *TLS { return g.Spec.TLS }

// GetGroupStatus implements Group.
func (g *TiKVGroup) GetGroupStatus() *GroupStatus { return &g.Status.GroupStatus }

// Groups implements GroupList.
func (l *TiKVGroupList) Groups() []Group { return groupsOf(l.Items) }

// tikvComponent is the component's row of ComponentTable.
func tikvComponent() ComponentInfo {
	return ComponentInfo{
		Kind: KindTiKVGroup, Component: ComponentTiKV, Resource: "tikvgroups", Rollout: 3,
		Stores: true, StatusPort: PortTiKVStatus,
		New:     func() Group { return &TiKVGroup{} },
		NewList: func() GroupList { return &TiKVGroupList{} },
		Entries: func(c *TidbClusterSpec, pd LocalReference) []Entry {
			var out []Entry
			for _, e := range c.TiKV {
				g := &TiKVGroup{Spec: TiKVGroupSpec{TiKVTemplate: *e.TiKVTemplate.DeepCopy(), PDGroup: pd}}
				g.Spec.TLS = inheritTLS(c, g.Spec.TLS)
				if g.Spec.Placement != nil && *g.Spec.Placement == (StorePlacement{}) {
					g.Spec.Placement = nil // the group would keep an empty one when the entry drops it
				}
				out = append(out, Entry{e.Name, g})
			}
			return out
		},
	}
}
