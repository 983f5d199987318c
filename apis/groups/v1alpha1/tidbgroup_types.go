package v1alpha1

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Kind of a group of TiDB, and the value of its LabelComponent.
const (
	KindTiDBGroup = "TiDBGroup"
	ComponentTiDB = "tidb"
)

// Ports of TiDB, by the defaults of the real server.
const (
	PortTiDB       int32 = 4000
	PortTiDBStatus int32 = 10080
)

// TiDBTemplate describes a group of TiDB servers, which speak MySQL.
//
// +kubebuilder:validation:XValidation:rule="!has(self.volumes) || self.volumes.all(v, has(v.mounts))",message="volumes of a TiDBGroup must have mounts: TiDB has no data directory"
// +kubebuilder:validation:XValidation:rule="!has(self.service) || !has(self.service.ports) || self.service.ports.all(p, p.name != 'client')",message="service.ports of a TiDBGroup may only name mysql and status"
// +kubebuilder:validation:XValidation:rule="has(self.bootstrapSQL) ? (has(oldSelf.bootstrapSQL) && self.bootstrapSQL == oldSelf.bootstrapSQL) : true",message="bootstrapSQL takes effect only when the cluster is made: it may be removed later, not added or changed; run the SQL with a client instead"
// +kubebuilder:validation:XValidation:rule="has(self.initialization) ? (has(oldSelf.initialization) && self.initialization == oldSelf.initialization) : true",message="initialization takes effect only when the cluster is made: it may be removed later, not added or changed; set passwords with a client instead"
type TiDBTemplate struct {
	ComponentSpec `json:",inline"`
	// TLS between the components of the cluster, whose PDGroup has to have it as well, and
	// of MySQL clients. It is switched on or off while the group is suspended. Default: none.
	// +optional
	TLS *TiDBTLS `json:"tls,omitempty"`
	// MaxSurge is how many servers there may be beyond replicas while servers
	// are restarted, and how many are restarted at a time: as many as replicas
	// always serve. 0 restarts one at a time in place, with one server less.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	// +kubebuilder:default=1
	// +optional
	MaxSurge *int32 `json:"maxSurge,omitempty"`
	// Failover adds servers for those that do not serve.
	// +optional
	Failover *TiDBFailover `json:"failover,omitempty"`
	// Service that MySQL clients connect to; its name is the group's.
	// +kubebuilder:default={type: ClusterIP}
	// +optional
	Service *ServiceSpec `json:"service,omitempty"`
	// Readiness is how a server is found ready to serve.
	// +kubebuilder:default={type: HTTP}
	// +optional
	Readiness *Readiness `json:"readiness,omitempty"`
	// Shutdown is how a server is stopped without breaking connections.
	// +kubebuilder:default={}
	// +optional
	Shutdown *Shutdown `json:"shutdown,omitempty"`
	// SlowLog is the sidecar that prints the slow query log.
	// +kubebuilder:default={}
	// +optional
	SlowLog *Sidecar `json:"slowLog,omitempty"`
	// BootstrapSQL is run once, when the first server of the cluster starts.
	// +optional
	BootstrapSQL *KeyReference `json:"bootstrapSQL,omitempty"`
	// Initialization is what TiDB does itself when the first server of the cluster
	// starts, before a client can connect, and before bootstrapSQL. v6.5.1 or later.
	// +optional
	Initialization *Initialization `json:"initialization,omitempty"`
	// ServerLabels are set on every server, beside zone, which comes from its
	// node. They change in place.
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, !(k.lowerAscii() in ['host','zone','region']))",message="serverLabels may not set host, zone or region, in capitals or not: these come from the node; remove it"
	// +optional
	ServerLabels map[string]StoreLabelValue `json:"serverLabels,omitempty"`
	// ConfigUpdate is how a changed config reaches the servers. Restart restarts
	// them. Online gives it to the running servers if only items differ that TiDB
	// takes while it runs, and restarts them otherwise. Default: Restart.
	// +optional
	ConfigUpdate ConfigUpdatePolicy `json:"configUpdate,omitempty"`
	// AuthToken has users sign in with JSON web tokens: those that are made with
	// IDENTIFIED WITH 'tidb_auth_token'. A change restarts the servers. Default: none can.
	// +optional
	AuthToken *AuthToken `json:"authToken,omitempty"`
	// SessionToken has the servers sign tokens of sessions, by which TiProxy moves the
	// connections of a server that stops to another one. v6.4 or later. A change restarts
	// the servers. Default: no connection can be moved.
	// +optional
	SessionToken *SessionToken `json:"sessionToken,omitempty"`
	// SQL is run against the living database, once for each revision of an entry, one
	// entry after the other: one that fails keeps those behind it waiting, and nothing
	// else. It begins when the group is Ready. What came of it is in status.sql. An
	// entry that is removed while it runs is stopped.
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	// +optional
	SQL []SQLRun `json:"sql,omitempty"`
}

// AuthToken is how servers know the tokens of users.
type AuthToken struct {
	// SecretName of the public keys: under tidb_auth_token_jwks.json a JSON web key set,
	// each key with kid and alg. Another name restarts the servers; changed content does
	// not. Default: <group>-auth-token-jwks-secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	// +optional
	SecretName string `json:"secretName,omitempty"`
}

// SessionToken is how servers sign tokens of sessions. All servers of a cluster need the same
// key: with it one can sign in as any user.
type SessionToken struct {
	// SecretName of the key and its certificate, tls.key and tls.crt: RSA or Ed25519, and
	// signed by a key of the same sort, such as itself. Another name restarts the servers;
	// changed content does not. Default: <cluster>-session-token-secret, which is made if
	// there is none, where <cluster> is the PDGroup's name without -pd at its end.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	// +optional
	SecretName string `json:"secretName,omitempty"`
}

// SessionTokenSecretName returns the Secret with the key that the servers of a group sign
// tokens of sessions with; empty if they sign none.
func SessionTokenSecretName(g *TiDBGroup) string {
	if g.Spec.SessionToken == nil {
		return ""
	}
	return cmp.Or(g.Spec.SessionToken.SecretName, clusterName(g)+"-session-token-secret")
}

// SQLRun is SQL that is run once for each of its revisions.
//
// +kubebuilder:validation:XValidation:rule="[has(self.configMap), has(self.secret), has(self.users)].filter(x, x).size() == 1",message="an entry of sql runs exactly one of configMap, secret and users: set one, remove the others"
// +kubebuilder:validation:XValidation:rule="!has(self.user) || self.user == 'root' || has(self.passwordSecret)",message="user needs passwordSecret: name the Secret and the key of its password"
// +kubebuilder:validation:XValidation:rule="self == oldSelf || self.revision > oldSelf.revision",message="an entry of sql is run once for each revision: raise revision with whatever else you change"
type SQLRun struct {
	// Name of the run.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=30
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`
	// Revision is raised by a user to have it run again. A changed Secret or
	// ConfigMap alone runs nothing.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:default=1
	// +optional
	Revision int32 `json:"revision,omitempty"`
	// ConfigMap with a file of SQL.
	// +optional
	ConfigMap *KeyReference `json:"configMap,omitempty"`
	// Secret with a file of SQL. Its text is never reported, and of an error only
	// the number.
	// +optional
	Secret *KeyReference `json:"secret,omitempty"`
	// Users that are made, or get another password.
	// +optional
	Users *InitialUsers `json:"users,omitempty"`
	// User to connect as. Default: root.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^[-._@a-zA-Z0-9]+$`
	// +optional
	User string `json:"user,omitempty"`
	// PasswordSecret has the password to connect with. Default, of root: the one that
	// was generated, or the one under root in the Secret of initialization.users, or
	// none.
	// +optional
	PasswordSecret *KeyReference `json:"passwordSecret,omitempty"`
	// TimeoutSeconds is how long it may take to connect and to run, in seconds.
	// Default: 600.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=604800
	// +kubebuilder:default=600
	// +optional
	TimeoutSeconds int32 `json:"timeoutSeconds,omitempty"`
}

// TiDBTLS is TLS of a TiDBGroup, and of its MySQL clients.
type TiDBTLS struct {
	TLS `json:",inline"`
	// MySQL has the servers offer TLS to MySQL clients. A change restarts the servers.
	// Default: none is offered.
	// +optional
	MySQL *MySQLTLS `json:"mysql,omitempty"`
}

// TiDBEntries are the TiDB groups of a TidbCluster.
type TiDBEntries struct {
	// TiDB groups, named likewise with -tidb.
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	// +optional
	TiDB []TiDBEntry `json:"tidb,omitempty"`
}

// TiDBEntry is one TiDB group of a TidbCluster.
type TiDBEntry struct {
	// Name of the group within the cluster; empty for the main one.
	// +kubebuilder:validation:MaxLength=20
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$`
	// +kubebuilder:default=""
	// +optional
	Name         string `json:"name"`
	TiDBTemplate `json:",inline"`
	// Replicas is the number of servers. Left out, the group begins with two, and
	// it is scaled from outside: by kubectl scale, or a HorizontalPodAutoscaler.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`
}

// TiDBGroupSpec is a TiDBTemplate and the PDGroup that it belongs to.
type TiDBGroupSpec struct {
	TiDBTemplate `json:",inline"`
	// Replicas is the number of servers.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	// +kubebuilder:default=2
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`
	// PDGroup that the servers belong to, in the same namespace. Immutable.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="pdGroup is immutable: create another group instead"
	PDGroup LocalReference `json:"pdGroup"`
}

// Initialization is done once for a cluster.
//
// +kubebuilder:validation:XValidation:rule="has(self.rootPassword) || has(self.users)",message="initialization is empty: set rootPassword to Generate, or users.secret to the name of a Secret, or remove it"
type Initialization struct {
	// RootPassword is where root's password comes from. Generate: a random one is
	// made and kept in the Secret <group>-root, which is never changed or deleted. A
	// Secret of this name that is there already is used as it is.
	// +kubebuilder:validation:Enum=Generate
	// +optional
	RootPassword RootPasswordPolicy `json:"rootPassword,omitempty"`
	// Users that are there from the first moment on. They have no privileges yet:
	// bootstrapSQL, which runs afterwards, may grant some.
	// +optional
	Users *InitialUsers `json:"users,omitempty"`
}

// InitialUsers are users of the database, and their passwords.
type InitialUsers struct {
	// Secret of the namespace. Each key is a user's name, and its value the password,
	// one line. The key root sets the password of root. The operators never read it:
	// a pod does.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	Secret string `json:"secret"`
	// Host that these users connect from, as MySQL writes it, such as 10.1.%.
	// Default: %, everywhere.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:Pattern=`^[-._%:/a-zA-Z0-9]+$`
	// +optional
	Host string `json:"host,omitempty"`
}

// RootPasswordPolicy says where root's password comes from.
type RootPasswordPolicy string

// RootPasswordGenerate makes a random password.
const RootPasswordGenerate RootPasswordPolicy = "Generate"

// Readiness is the kind of readiness probe.
//
// +kubebuilder:validation:XValidation:rule="(self.type == 'Command') == (has(self.command) && size(self.command) > 0)",message="readiness.command goes with type Command, and type Command needs it"
type Readiness struct {
	// Type of the probe: HTTP asks the status port, TCP connects to the MySQL
	// port, Command runs Command in the container.
	// +kubebuilder:validation:Enum=HTTP;TCP;Command
	// +kubebuilder:default=HTTP
	// +optional
	Type ReadinessType `json:"type,omitempty"`
	// Command to run with type Command; exit code 0 is ready.
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +optional
	Command []string `json:"command,omitempty"`
}

// ReadinessType is a kind of readiness probe.
type ReadinessType string

const (
	// ReadinessHTTP asks GET /status on the status port.
	ReadinessHTTP ReadinessType = "HTTP"
	// ReadinessTCP connects to the MySQL port.
	ReadinessTCP ReadinessType = "TCP"
	// ReadinessCommand runs a command in the container.
	ReadinessCommand ReadinessType = "Command"
)

// TiDBFailover adds servers for those that do not serve, and removes them when
// enough serve again.
type TiDBFailover struct {
	// Max is how many servers may be added.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	Max int32 `json:"max"`
	// After is for how long a server must not have served before another one is
	// added, such as 5m.
	// +kubebuilder:validation:Pattern=`^([0-9]{1,5}(\.[0-9]{1,9})?(ms|s|m|h)){1,4}$`
	// +kubebuilder:validation:Type=string
	// +kubebuilder:default="5m"
	// +optional
	After metav1.Duration `json:"after,omitempty"`
}

// Shutdown is how a TiDB server is stopped.
type Shutdown struct {
	// DelaySeconds between leaving the Service and the signal to stop, in
	// seconds, so that load balancers notice.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=3600
	// +kubebuilder:default=10
	// +optional
	DelaySeconds *int64 `json:"delaySeconds,omitempty"`
	// DrainSeconds that a server which got the signal to stop goes on serving the
	// connections that it has, in seconds. Then TiDB closes them, and gives
	// transactions that still run 15 s of its own.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=3600
	// +kubebuilder:default=15
	// +optional
	DrainSeconds *int64 `json:"drainSeconds,omitempty"`
}

// TiDBGroupStatus is what the tidbgroup operator has found.
//
// It has one writer, which writes it as a whole.
// +structType=atomic
type TiDBGroupStatus struct {
	GroupStatus `json:",inline"`
	// Endpoint that MySQL clients connect to, host:port.
	// +optional
	Endpoint string `json:"endpoint,omitempty"`
	// Upgrade that TiDB is notified of; absent while there is none.
	// +optional
	Upgrade *TiDBUpgrade `json:"upgrade,omitempty"`
	// SQL is what came of spec.sql, in its order.
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	// +optional
	SQL []SQLStatus `json:"sql,omitempty"`
}

// SQLStatus is what came of one entry of spec.sql.
type SQLStatus struct {
	// Name of the entry.
	Name string `json:"name"`
	// Revision of the entry that this is about.
	Revision int32 `json:"revision"`
	// State of the run. One that has Succeeded or Failed is not run again at this
	// revision.
	// +kubebuilder:validation:Enum=Waiting;Running;Succeeded;Failed
	State SQLState `json:"state"`
	// Message says what it waits for, or what failed and how to have it run again. It
	// has no password in it, and nothing of the SQL of a Secret.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Message string `json:"message,omitempty"`
	// StartTime is when its Job was made.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// CompletionTime is when its Job ended, or was found to be gone.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
}

// SQLState is how far a run of SQL is.
type SQLState string

const (
	// SQLWaiting says that it has not begun.
	SQLWaiting SQLState = "Waiting"
	// SQLRunning says that its Job exists and has not ended.
	SQLRunning SQLState = "Running"
	// SQLSucceeded says that every statement was carried out.
	SQLSucceeded SQLState = "Succeeded"
	// SQLFailed says that it ended otherwise. What came before the statement that
	// failed has been carried out.
	SQLFailed SQLState = "Failed"
)

// TiDBUpgrade is an upgrade that TiDB is notified of, so that it holds the users' DDL
// back while its servers run different versions. It is recorded before the first
// server is restarted, and removed when TiDB has accepted the notification that it is
// over.
type TiDBUpgrade struct {
	// From is the version that all servers ran.
	From string `json:"from"`
	// To is the version that they are to run.
	To string `json:"to"`
	// State is how far the notification of TiDB is.
	// +kubebuilder:validation:Enum=Starting;Started;Unannounced
	State UpgradeState `json:"state"`
	// Since is when the notification of TiDB began.
	Since metav1.Time `json:"since"`
}

// UpgradeState is how far TiDB has been notified of an upgrade.
type UpgradeState string

const (
	// UpgradeStarting says that no server is restarted before TiDB has accepted the
	// notification that the upgrade begins.
	UpgradeStarting UpgradeState = "Starting"
	// UpgradeStarted says that TiDB has accepted it.
	UpgradeStarted UpgradeState = "Started"
	// UpgradeUnannounced says that TiDB did not accept it for too long. The servers
	// are restarted all the same.
	UpgradeUnannounced UpgradeState = "Unannounced"
)

// TiDBGroup is a group of TiDB servers with one configuration.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:resource:shortName=tgdb,categories={tidb-groups,tidb-all}
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Up-to-date",type=string,JSONPath=`.status.conditions[?(@.type=="UpToDate")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.reason`
// +kubebuilder:printcolumn:name="Updated",type=string,JSONPath=`.status.updated`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.version`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Servers",type=integer,priority=1,JSONPath=`.status.readyReplicas`
// +kubebuilder:printcolumn:name="Desired",type=integer,priority=1,JSONPath=`.spec.replicas`
// +kubebuilder:printcolumn:name="Endpoint",type=string,priority=1,JSONPath=`.status.endpoint`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.message`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 40 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name must be at most 40 characters of a-z, 0-9 and -, and begin with a letter: Services and pods are named after it"
// +kubebuilder:validation:XValidation:rule="has(self.spec.version)",message="spec.version must be set, to an image tag such as v8.5.7",fieldPath=".spec.version"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.volumes) || !has(oldSelf.spec.volumes) || (has(self.spec.volumeReplacement) && self.spec.volumeReplacement == 'Replace') || self.spec.volumes.all(v, oldSelf.spec.volumes.all(o, o.name != v.name || !isQuantity(v.storage) || !isQuantity(o.storage) || quantity(v.storage).compareTo(quantity(o.storage)) >= 0) || (has(self.status) && has(self.status.volumes) && self.status.volumes.exists(r, r.name == v.name && isQuantity(r.requested) && quantity(v.storage).compareTo(quantity(r.requested)) >= 0))) || (has(self.status) && has(self.status.conditions) && self.status.conditions.exists(c, c.type == 'UpToDate' && c.reason in ['QuotaExceeded', 'LimitRangeExceeded', 'ClaimRejected', 'VolumeChangeFailed']))",message="spec.volumes[].storage may only grow, unless no claim has asked for more (status.volumes) or status says that an increase was refused: set it back to what it was, or set spec.volumeReplacement to Replace",fieldPath=".spec.volumes"
// +kubebuilder:validation:XValidation:rule="has(self.spec.tls) == has(oldSelf.spec.tls) || has(self.spec.suspended) && self.spec.suspended || has(oldSelf.spec.suspended) && oldSelf.spec.suspended",message="spec.tls can be added or removed only while no pod runs, for the members of PD speak either http or https to each other: set spec.suspended to true in the same patch, of all groups of the cluster (docs/tasks/tls.md)",fieldPath=".spec.tls"
type TiDBGroup struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what is asked for.
	Spec TiDBGroupSpec `json:"spec"`
	// Status is what the tidbgroup operator has found.
	// +optional
	Status TiDBGroupStatus `json:"status,omitempty"`
}

// TiDBGroupList is a list of TiDBGroups.
//
// +kubebuilder:object:root=true
type TiDBGroupList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []TiDBGroup `json:"items"`
}

// GroupKind implements Group.
func (g *TiDBGroup) GroupKind() string { return KindTiDBGroup }

// Component implements Group.
func (g *TiDBGroup) Component() string { return ComponentTiDB }

// PDGroupName implements Group.
func (g *TiDBGroup) PDGroupName() string { return g.Spec.PDGroup.Name }

// GetReplicas implements Group.
func (g *TiDBGroup) GetReplicas() int32 { return replicaCount(g.Spec.Replicas) }

// GetComponentSpec implements Group.
func (g *TiDBGroup) GetComponentSpec() *ComponentSpec { return &g.Spec.ComponentSpec }

// GetTLS implements Group.
func (g *TiDBGroup) GetTLS() *TLS {
	if g.Spec.TLS == nil {
		return nil
	}
	return &g.Spec.TLS.TLS
}

// GetGroupStatus implements Group.
func (g *TiDBGroup) GetGroupStatus() *GroupStatus { return &g.Status.GroupStatus }

// GetEndpoint implements ClientGroup.
func (g *TiDBGroup) GetEndpoint() string { return g.Status.Endpoint }

// IsClosed implements ClientGroup.
func (g *TiDBGroup) IsClosed() bool { return g.Spec.Service != nil && g.Spec.Service.Closed }

// Close implements ClientGroup.
func (g *TiDBGroup) Close() { g.Spec.Service = closedService(g.Spec.Service) }

// GetMySQLTLS implements ClientGroup.
func (g *TiDBGroup) GetMySQLTLS() *MySQLTLS {
	if g.Spec.TLS == nil {
		return nil
	}
	return g.Spec.TLS.MySQL
}

// GetMaxSurge implements SurgeGroup.
func (g *TiDBGroup) GetMaxSurge() *int32 { return g.Spec.MaxSurge }

// Groups implements GroupList.
func (l *TiDBGroupList) Groups() []Group { return groupsOf(l.Items) }

// tidbComponent is the component's row of ComponentTable.
func tidbComponent() ComponentInfo {
	return ComponentInfo{
		Kind: KindTiDBGroup, Component: ComponentTiDB, Resource: "tidbgroups", Rollout: 4,
		Stateless: true, NeedsTiKV: true, StatusPort: PortTiDBStatus,
		New:     func() Group { return &TiDBGroup{} },
		NewList: func() GroupList { return &TiDBGroupList{} },
		Entries: func(c *TidbClusterSpec, pd LocalReference) []Entry {
			var out []Entry
			for _, e := range c.TiDB {
				g := &TiDBGroup{Spec: TiDBGroupSpec{TiDBTemplate: *e.TiDBTemplate.DeepCopy(), Replicas: e.Replicas, PDGroup: pd}}
				g.Spec.TLS = inheritTLS(c, g.Spec.TLS)
				out = append(out, Entry{e.Name, g})
			}
			return out
		},
	}
}
