package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Kind of a group of TiProxy, and the value of its LabelComponent.
const (
	KindTiProxyGroup = "TiProxyGroup"
	ComponentTiProxy = "tiproxy"
)

// Ports of TiProxy, by the defaults of the real one.
const (
	PortTiProxy    int32 = 6000
	PortTiProxyAPI int32 = 3080
)

// TiProxyTemplate describes a group of TiProxies. Clients connect to them, and they to the
// TiDB servers of a cluster, which they learn of from PD: a client's connection outlives
// the server that it is served by.
//
// +kubebuilder:validation:XValidation:rule="!has(self.volumes) || self.volumes.all(v, has(v.mounts))",message="volumes of a TiProxyGroup must have mounts: TiProxy has no data directory"
// +kubebuilder:validation:XValidation:rule="!has(self.service) || !has(self.service.ports) || self.service.ports.all(p, p.name in ['mysql', 'status'])",message="service.ports of a TiProxyGroup may only name mysql and status"
type TiProxyTemplate struct {
	ComponentSpec `json:",inline"`
	// TLS between the components of the cluster, whose PDGroup has to have it as well, of
	// MySQL clients, and towards TiDB servers that MySQL clients need TLS for. It is switched
	// on or off while the group is suspended. Default: none.
	// +optional
	TLS *TiProxyTLS `json:"tls,omitempty"`
	// Replicas is the number of proxies.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	// +kubebuilder:default=2
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`
	// MaxSurge is how many proxies there may be beyond replicas while proxies are
	// restarted, and how many are restarted at a time: as many as replicas always
	// serve. 0 restarts one at a time in place, with one proxy less.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	// +kubebuilder:default=1
	// +optional
	MaxSurge *int32 `json:"maxSurge,omitempty"`
	// Service that MySQL clients connect to; its name is the group's.
	// +kubebuilder:default={type: ClusterIP}
	// +optional
	Service *ServiceSpec `json:"service,omitempty"`
	// Shutdown is how a proxy is stopped: what clients have time for when it is
	// restarted or removed.
	// +kubebuilder:default={}
	// +optional
	Shutdown *TiProxyShutdown `json:"shutdown,omitempty"`
	// ConfigUpdate is how a changed config reaches the proxies. Restart restarts
	// them. Online gives it to the running proxies if only items differ that TiProxy
	// takes while it runs, and restarts them otherwise. Default: Restart.
	// +optional
	ConfigUpdate ConfigUpdatePolicy `json:"configUpdate,omitempty"`
}

// TiProxyShutdown is how a proxy is stopped. It leaves the Service first. Then these
// times follow each other; each ends early when no client is connected.
type TiProxyShutdown struct {
	// DelaySeconds for which new connections are still taken, in seconds, so that load
	// balancers notice. This one never ends early.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=3600
	// +kubebuilder:default=10
	// +optional
	DelaySeconds *int64 `json:"delaySeconds,omitempty"`
	// DrainSeconds for which clients may close their connections by themselves, at most,
	// in seconds. Connection pools do when their connections reach their greatest age.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	// +kubebuilder:default=60
	// +optional
	DrainSeconds *int64 `json:"drainSeconds,omitempty"`
	// CloseSeconds for which transactions that run then may still end, in seconds: TiProxy
	// closes a connection between two transactions, and all that are left at the end.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=3600
	// +kubebuilder:default=15
	// +optional
	CloseSeconds *int64 `json:"closeSeconds,omitempty"`
}

// TiProxyTLS is TLS of a TiProxyGroup, of its MySQL clients, and towards TiDB servers.
// +kubebuilder:validation:XValidation:rule="!has(self.allowedCommonNames)",message="tls.allowedCommonNames is not for TiProxy: remove it, or set security.cluster-tls.cert-allowed-cn in config, which TiProxy may have"
type TiProxyTLS struct {
	TLS `json:",inline"`
	// MySQL has the proxies offer TLS to MySQL clients. A change restarts the proxies.
	// Default: none is offered.
	// +optional
	MySQL *MySQLTLS `json:"mysql,omitempty"`
	// Backend has the proxies use TLS towards TiDB servers that offer it to MySQL clients.
	// A change restarts the proxies. Default: they use none.
	// +optional
	Backend *BackendTLS `json:"backend,omitempty"`
}

// TiProxyEntries are the TiProxy groups of a TidbCluster.
type TiProxyEntries struct {
	// TiProxy groups, named likewise with -tiproxy.
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	// +optional
	TiProxy []TiProxyEntry `json:"tiproxy,omitempty"`
}

// TiProxyEntry is one TiProxy group of a TidbCluster.
//
// +kubebuilder:validation:XValidation:rule="has(self.version)",message="version must be set: TiProxy has releases of its own, which are not those of the cluster, such as v1.3.0"
type TiProxyEntry struct {
	// Name of the group within the cluster; empty for the main one.
	// +kubebuilder:validation:MaxLength=20
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$`
	// +kubebuilder:default=""
	// +optional
	Name            string `json:"name"`
	TiProxyTemplate `json:",inline"`
}

// TiProxyGroupSpec is a TiProxyTemplate and the PDGroup that it belongs to.
type TiProxyGroupSpec struct {
	TiProxyTemplate `json:",inline"`
	// PDGroup of the TiDB servers that clients are connected to, in the same namespace.
	// Immutable.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="pdGroup is immutable: create another group instead"
	PDGroup LocalReference `json:"pdGroup"`
}

// TiProxyGroupStatus is what the tiproxygroup operator has found.
//
// It has one writer, which writes it as a whole.
// +structType=atomic
type TiProxyGroupStatus struct {
	GroupStatus `json:",inline"`
	// Endpoint that MySQL clients connect to, host:port.
	// +optional
	Endpoint string `json:"endpoint,omitempty"`
}

// TiProxyGroup is a group of TiProxies with one configuration.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:resource:shortName=tgpx,categories={tidb-groups,tidb-all}
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Up-to-date",type=string,JSONPath=`.status.conditions[?(@.type=="UpToDate")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.reason`
// +kubebuilder:printcolumn:name="Updated",type=string,JSONPath=`.status.updated`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.version`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Proxies",type=integer,priority=1,JSONPath=`.status.readyReplicas`
// +kubebuilder:printcolumn:name="Desired",type=integer,priority=1,JSONPath=`.spec.replicas`
// +kubebuilder:printcolumn:name="Endpoint",type=string,priority=1,JSONPath=`.status.endpoint`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.message`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 40 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name must be at most 40 characters of a-z, 0-9 and -, and begin with a letter: Services and pods are named after it"
// +kubebuilder:validation:XValidation:rule="has(self.spec.version)",message="spec.version must be set, to an image tag of TiProxy such as v1.3.0",fieldPath=".spec.version"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.volumes) || !has(oldSelf.spec.volumes) || (has(self.spec.volumeReplacement) && self.spec.volumeReplacement == 'Replace') || self.spec.volumes.all(v, oldSelf.spec.volumes.all(o, o.name != v.name || !isQuantity(v.storage) || !isQuantity(o.storage) || quantity(v.storage).compareTo(quantity(o.storage)) >= 0) || (has(self.status) && has(self.status.volumes) && self.status.volumes.exists(r, r.name == v.name && isQuantity(r.requested) && quantity(v.storage).compareTo(quantity(r.requested)) >= 0))) || (has(self.status) && has(self.status.conditions) && self.status.conditions.exists(c, c.type == 'UpToDate' && c.reason in ['QuotaExceeded', 'LimitRangeExceeded', 'ClaimRejected', 'VolumeChangeFailed']))",message="spec.volumes[].storage may only grow, unless no claim has asked for more (status.volumes) or status says that an increase was refused: set it back to what it was, or set spec.volumeReplacement to Replace",fieldPath=".spec.volumes"
// +kubebuilder:validation:XValidation:rule="has(self.spec.tls) == has(oldSelf.spec.tls) || has(self.spec.suspended) && self.spec.suspended || has(oldSelf.spec.suspended) && oldSelf.spec.suspended",message="spec.tls can be added or removed only while no pod runs, for the members of PD speak either http or https to each other: set spec.suspended to true in the same patch, of all groups of the cluster (docs/tasks/tls.md)",fieldPath=".spec.tls"
type TiProxyGroup struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what is asked for.
	Spec TiProxyGroupSpec `json:"spec"`
	// Status is what the tiproxygroup operator has found.
	// +optional
	Status TiProxyGroupStatus `json:"status,omitempty"`
}

// TiProxyGroupList is a list of TiProxyGroups.
//
// +kubebuilder:object:root=true
type TiProxyGroupList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []TiProxyGroup `json:"items"`
}

// GroupKind implements Group.
func (g *TiProxyGroup) GroupKind() string { return KindTiProxyGroup }

// Component implements Group.
func (g *TiProxyGroup) Component() string { return ComponentTiProxy }

// PDGroupName implements Group.
func (g *TiProxyGroup) PDGroupName() string { return g.Spec.PDGroup.Name }

// GetReplicas implements Group.
func (g *TiProxyGroup) GetReplicas() int32 { return replicaCount(g.Spec.Replicas) }

// GetComponentSpec implements Group.
func (g *TiProxyGroup) GetComponentSpec() *ComponentSpec { return &g.Spec.ComponentSpec }

// GetTLS implements Group.
func (g *TiProxyGroup) GetTLS() *TLS {
	if g.Spec.TLS == nil {
		return nil
	}
	return &g.Spec.TLS.TLS
}

// GetGroupStatus implements Group.
func (g *TiProxyGroup) GetGroupStatus() *GroupStatus { return &g.Status.GroupStatus }

// GetEndpoint implements ClientGroup.
func (g *TiProxyGroup) GetEndpoint() string { return g.Status.Endpoint }

// IsClosed implements ClientGroup.
func (g *TiProxyGroup) IsClosed() bool { return g.Spec.Service != nil && g.Spec.Service.Closed }

// Close implements ClientGroup.
func (g *TiProxyGroup) Close() { g.Spec.Service = closedService(g.Spec.Service) }

// GetMySQLTLS implements ClientGroup.
func (g *TiProxyGroup) GetMySQLTLS() *MySQLTLS {
	if g.Spec.TLS == nil {
		return nil
	}
	return g.Spec.TLS.MySQL
}

// GetBackendTLS implements BackendGroup.
func (g *TiProxyGroup) GetBackendTLS() *BackendTLS {
	if g.Spec.TLS == nil {
		return nil
	}
	return g.Spec.TLS.Backend
}

// GetMaxSurge implements SurgeGroup.
func (g *TiProxyGroup) GetMaxSurge() *int32 { return g.Spec.MaxSurge }

// Groups implements GroupList.
func (l *TiProxyGroupList) Groups() []Group { return groupsOf(l.Items) }

// tiproxyComponent is the component's row of ComponentTable.
func tiproxyComponent() ComponentInfo {
	return ComponentInfo{
		Kind: KindTiProxyGroup, Component: ComponentTiProxy, Resource: "tiproxygroups", OwnReleases: true,
		Stateless: true, IgnoresCommonNames: true, StatusPort: PortTiProxyAPI,
		New:     func() Group { return &TiProxyGroup{} },
		NewList: func() GroupList { return &TiProxyGroupList{} },
		Entries: func(c *TidbClusterSpec, pd LocalReference) []Entry {
			var out []Entry
			for _, e := range c.TiProxy {
				g := &TiProxyGroup{Spec: TiProxyGroupSpec{TiProxyTemplate: *e.TiProxyTemplate.DeepCopy(), PDGroup: pd}}
				g.Spec.TLS = inheritTLS(c, g.Spec.TLS)
				out = append(out, Entry{e.Name, g})
			}
			return out
		},
	}
}
