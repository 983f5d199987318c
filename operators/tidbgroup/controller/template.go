package controller

import (
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/tidbgroup/initialsql"
	"github.com/tidb-groups/tidb-groups/operators/tidbgroup/keyset"
	"github.com/tidb-groups/tidb-groups/operators/tidbgroup/statusport"
	"github.com/tidb-groups/tidb-groups/shared/names"
	"github.com/tidb-groups/tidb-groups/shared/rollout"
	"github.com/tidb-groups/tidb-groups/shared/tomlconfig"
	"github.com/tidb-groups/tidb-groups/shared/workload"
)

const (
	configDir    = "/etc/tidb"
	configFile   = statusport.File
	bootstrapDir = "/etc/tidb-bootstrap"
	bootstrapSQL = initialsql.File
	// logDir is where TiDB starts, too: what it writes beside its log goes there, such as records
	// of its memory, for that log is no file.
	logDir      = "/var/log/tidb"
	slowLogFile = logDir + "/slow.log"
	logVolume   = "tidb-groups-log"
	sqlVolume   = "tidb-groups-bootstrap"
	mysqlDir    = "/var/lib/tidb-server-tls"
	mysqlVolume = "tidb-groups-mysql"
	keysVolume  = "tidb-groups-auth-token"
	// signingVolume has the key that tokens of sessions are signed with.
	signingVolume = "tidb-groups-session-token"
	// root is the user that TiDB makes itself.
	root = "root"
	// closing is how long a server that has drained may take to close, seconds:
	// TiDB gives transactions that still run 15 s (gracefulCloseConnectionsTimeout
	// of its main), then cancels them and closes.
	closing = 20
	// slowLogFiles is how many full slow logs stay, of 300 MB by default. TiDB keeps all of
	// them, and in the pod they lie on the disk of its node.
	slowLogFiles = 10
)

// ownedKeys returns the configuration keys that the operator sets, by flag or
// in the file.
func ownedKeys() []string {
	return []string{
		"store", "path", "host", "port", "advertise-address", "initialize-sql-file", "graceful-wait-before-shutdown",
		"status.report-status", "status.status-host", "status.status-port", "log.slow-query-file",
	}
}

// renderPorts returns TiDB's ports.
func renderPorts() []workload.Port {
	return []workload.Port{{Name: "mysql", Number: v1alpha1.PortTiDB}, {Name: "status", Number: v1alpha1.PortTiDBStatus}}
}

// renderServices returns the group's Services: clients use the first, servers find
// each other by the headless one.
func renderServices(g *v1alpha1.TiDBGroup) []*corev1.Service {
	return []*corev1.Service{workload.ClientService(g, g.Spec.Service, renderPorts()), workload.PeerService(g, renderPorts()[1:])}
}

// collectInputs returns the part of the spec that a server is rendered from.
func collectInputs(g *v1alpha1.TiDBGroup) any {
	inputs := map[string]any{
		"readiness": g.Spec.Readiness, "shutdown": g.Spec.Shutdown, "slowLog": g.Spec.SlowLog, "bootstrapSQL": g.Spec.BootstrapSQL,
		"initialization": g.Spec.Initialization,
	}
	maps.Copy(inputs, workload.TLSInputs(g))
	maps.Copy(inputs, workload.MySQLInputs(g))
	if secret := keyset.SecretName(g); secret != "" {
		inputs["authTokenSecret"] = secret
	}
	if secret := v1alpha1.SessionTokenSecretName(g); secret != "" {
		inputs["sessionTokenSecret"] = secret
	}
	return rollout.Inputs(g, inputs)
}

// buildTemplate renders the pod and the configuration file of a server.
func buildTemplate(g *v1alpha1.TiDBGroup) (corev1.PodTemplateSpec, map[string]string, []string) {
	files, problems := renderConfig(g)
	configMap, err := rollout.ConfigMapName(g.Name, files)
	if err != nil {
		problems = append(problems, err.Error())
	}
	delay, drain := shutdownTimes(g)
	m := workload.Main{
		Repository: "pingcap/tidb",
		Command:    []string{"/tidb-server"},
		Args: []string{
			"--store=tikv",
			fmt.Sprintf("--path=%s:%d", names.ServiceHost(g.PDGroupName(), g.Namespace, g.Spec.ClusterDomain), v1alpha1.PortPDClient),
			"--host=" + workload.ListenHost(g),
			fmt.Sprintf("-P=%d", v1alpha1.PortTiDB),
			"--report-status=true",
			"--status-host=" + workload.ListenHost(g),
			fmt.Sprintf("--status=%d", v1alpha1.PortTiDBStatus),
			"--advertise-address=" + names.PodHost("$(POD_NAME)", g.Name, g.Namespace, g.Spec.ClusterDomain),
			"--config=" + configDir + "/" + configFile,
			"--log-slow-query=" + slowLogFile,
		},
		Ports:        renderPorts(),
		WorkingDir:   logDir,
		ConfigDir:    configDir,
		ConfigMap:    configMap,
		Readiness:    readinessProbe(g),
		GraceSeconds: delay + drain + closing,
		MetricsPort:  v1alpha1.PortTiDBStatus,
		Mounts:       []corev1.VolumeMount{{Name: logVolume, MountPath: logDir}},
		Volumes:      []corev1.Volume{{Name: logVolume, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
	}
	mountSecrets(g, &m)
	if delay > 0 {
		m.Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: delay}}}
	}
	if log := g.Spec.SlowLog; log != nil && !log.Disabled {
		m.Sidecars = append(m.Sidecars, workload.Tailer("slowlog", log, m.Mounts, slowLogFile))
	}
	source := initialSQL(g)
	if first := g.Spec.Initialization; first != nil && first.Users != nil {
		source = composeSQL(g, &m, source)
	}
	if source != nil {
		m.Args = append(m.Args, "--initialize-sql-file="+bootstrapDir+"/"+bootstrapSQL)
		m.Mounts = append(m.Mounts, corev1.VolumeMount{Name: sqlVolume, MountPath: bootstrapDir, ReadOnly: true})
		m.Volumes = append(m.Volumes, corev1.Volume{Name: sqlVolume, VolumeSource: *source})
	}
	template, more := workload.Template(g, m)
	return template, files, append(problems, more...)
}

// composeSQL has the users made before the SQL that follows, and returns where the
// SQL of both is: in memory, for it holds their passwords.
func composeSQL(g *v1alpha1.TiDBGroup, m *workload.Main, following *corev1.VolumeSource) *corev1.VolumeSource {
	c := initialsql.Composition{
		Users: g.Spec.Initialization.Users, Following: following,
		Into:  corev1.VolumeMount{Name: sqlVolume, MountPath: bootstrapDir},
		Image: workload.Image(&g.Spec.ComponentSpec, m.Repository), PullPolicy: g.Spec.ImagePullPolicy, Resources: g.Spec.Resources,
	}
	if initialsql.GeneratesRootPassword(g) {
		c.Taken = root
	}
	container, volumes := c.Container()
	m.Init, m.Volumes = append(m.Init, container), append(m.Volumes, volumes...)
	return &corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}}
}

// initialSQL returns where the SQL is that TiDB runs once, without that of the
// users; nil for none. TiDB takes one file: the Secret's holds the ConfigMap's SQL
// as well.
func initialSQL(g *v1alpha1.TiDBGroup) *corev1.VolumeSource {
	if initialsql.GeneratesRootPassword(g) {
		return &corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
			SecretName: initialsql.RootSecretName(g), Items: []corev1.KeyToPath{{Key: bootstrapSQL, Path: bootstrapSQL}},
		}}
	}
	if sql := g.Spec.BootstrapSQL; sql != nil {
		return &corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: sql.Name}, Items: []corev1.KeyToPath{{Key: sql.Key, Path: bootstrapSQL}},
		}}
	}
	return nil
}

// rootSecret renders the Secret with root's password and the SQL that sets it,
// followed by the user's. It has no owner: the password lives as long as the data
// of the cluster, which outlive the group. A password of letters and digits needs
// no quoting.
func rootSecret(g *v1alpha1.TiDBGroup, password, sql string) *corev1.Secret {
	meta := workload.Meta(g, initialsql.RootSecretName(g))
	workload.KeepUnowned(&meta)
	return &corev1.Secret{ObjectMeta: meta, Type: corev1.SecretTypeOpaque, StringData: map[string]string{
		"username": root, initialsql.RootPasswordKey: password,
		bootstrapSQL: "ALTER USER 'root'@'%' IDENTIFIED BY '" + password + "';\n" + sql,
	}}
}

// signingSecret renders the Secret with the key that tokens of sessions are signed with. All
// groups of the cluster use it, so that it is deleted with the PDGroup.
func signingSecret(g *v1alpha1.TiDBGroup, pd *v1alpha1.PDGroup, data map[string][]byte) *corev1.Secret {
	meta := workload.Meta(pd, v1alpha1.SessionTokenSecretName(g))
	meta.OwnerReferences[0].BlockOwnerDeletion = nil // of another kind than this operator's
	return &corev1.Secret{ObjectMeta: meta, Type: corev1.SecretTypeTLS, Data: data}
}

// renderConfig renders tidb.toml.
func renderConfig(g *v1alpha1.TiDBGroup) (map[string]string, []string) {
	_, drain := shutdownTimes(g)
	own, owned := map[string]any{"graceful-wait-before-shutdown": drain}, ownedKeys()
	for _, item := range renderSecurity(g) {
		own[item.key], owned = item.value, append(owned, item.key)
	}
	if !choosesLogFiles(g) {
		own["log.file.max-backups"] = slowLogFiles
	}
	return tomlconfig.File(configFile, g.Spec.Config, owned, own)
}

// choosesLogFiles reports whether a user says which log files stay, or has more than the slow log.
func choosesLogFiles(g *v1alpha1.TiDBGroup) bool {
	user, err := tomlconfig.Parse("spec.config", g.Spec.Config)
	// File says what is wrong with it.
	return err != nil || len(tomlconfig.Conflicts(user, []string{"log.file.max-backups", "log.file.max-days", "log.file.filename"})) > 0
}

// item is one of the configuration.
type item struct {
	key   string
	value any
}

// renderSecurity is what tidb.toml has of tokens and TLS, none without.
func renderSecurity(g *v1alpha1.TiDBGroup) []item {
	var out []item
	if g.Spec.AuthToken != nil {
		out = append(out, item{"security.auth-token-jwks", keyset.Path}, item{"security.auth-token-refresh-interval", keyset.Refresh})
	}
	if g.Spec.SessionToken != nil {
		files := workload.FilesIn(keyset.SigningDir)
		out = append(out, item{"security.session-token-signing-cert", files.Cert}, item{"security.session-token-signing-key", files.Key})
	}
	if g.Spec.TLS == nil {
		return out
	}
	files := workload.FilesIn(workload.TLSDir(g))
	out = append(out, []item{{"security.cluster-ssl-ca", files.CA}, {"security.cluster-ssl-cert", files.Cert}, {"security.cluster-ssl-key", files.Key}}...)
	if allowed := v1alpha1.CommonNames(g); len(allowed) > 0 {
		out = append(out, item{"security.cluster-verify-cn", allowed})
	}
	if g.Spec.TLS.MySQL != nil {
		files = workload.FilesIn(mysqlDir)
		out = append(out, item{"security.ssl-cert", files.Cert}, item{"security.ssl-key", files.Key})
		if v1alpha1.VerifiesClients(g) {
			// With it require_secure_transport wants a certificate of every client.
			out = append(out, item{"security.ssl-ca", files.CA})
		}
	}
	return out
}

// mountSecrets mounts the certificates of the servers, and the keys of tokens.
func mountSecrets(g *v1alpha1.TiDBGroup, m *workload.Main) {
	if secret := keyset.SecretName(g); secret != "" {
		workload.MountSecret(m, keysVolume, secret, keyset.Dir)
	}
	if secret := v1alpha1.SessionTokenSecretName(g); secret != "" {
		workload.MountSecret(m, signingVolume, secret, keyset.SigningDir)
	}
	workload.MountTLS(g, m)
	if secret := v1alpha1.MySQLSecretName(g); secret != "" {
		workload.MountSecret(m, mysqlVolume, secret, mysqlDir)
	}
}

// shutdownTimes returns how long a server that has left the Service is left alone, and
// for how long it goes on serving its connections once it got the signal to stop, in
// seconds. A grace of the user's own has room for closing as well: Kubernetes refuses a pod
// whose hook sleeps for longer than its grace, and kills a server that has not closed by then.
func shutdownTimes(g *v1alpha1.TiDBGroup) (delay, drain int64) {
	delay, drain = 10, 15
	if s := g.Spec.Shutdown; s != nil {
		if s.DelaySeconds != nil {
			delay = *s.DelaySeconds
		}
		if s.DrainSeconds != nil {
			drain = *s.DrainSeconds
		}
	}
	if grace := g.Spec.TerminationGracePeriodSeconds; grace != nil {
		room := max(*grace-closing, 0)
		delay = min(delay, room)
		drain = min(drain, room-delay)
	}
	return delay, drain
}

// readinessProbe returns the probe that the user chose; the status port by default. With TLS
// that port may want a certificate, which the kubelet has not: the MySQL port, which
// opens last, is connected to in its place.
func readinessProbe(g *v1alpha1.TiDBGroup) *corev1.Probe {
	r, kind := g.Spec.Readiness, v1alpha1.ReadinessHTTP
	if r != nil && r.Type != "" {
		kind = r.Type
	}
	if kind == v1alpha1.ReadinessHTTP && g.Spec.TLS != nil {
		kind = v1alpha1.ReadinessTCP
	}
	handler := corev1.ProbeHandler{}
	switch kind {
	case v1alpha1.ReadinessTCP:
		handler.TCPSocket = &corev1.TCPSocketAction{Port: intstr.FromString("mysql")}
	case v1alpha1.ReadinessCommand:
		handler.Exec = &corev1.ExecAction{Command: r.Command}
	case v1alpha1.ReadinessHTTP:
		handler = workload.HTTPGet("/status", "status")
	}
	return workload.ReadinessProbe(handler)
}
