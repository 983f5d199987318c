package controller

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/tiproxygroup/statusport"
	"github.com/tidb-groups/tidb-groups/shared/names"
	"github.com/tidb-groups/tidb-groups/shared/rollout"
	"github.com/tidb-groups/tidb-groups/shared/tomlconfig"
	"github.com/tidb-groups/tidb-groups/shared/workload"
)

const (
	configDir  = "/etc/tiproxy"
	workDir    = "/var/lib/tiproxy"
	workVolume = "tidb-groups-work"
	// What MySQL clients are shown, and what TiDB servers are.
	mysqlDir, mysqlVolume     = "/var/lib/tiproxy-server-tls", "tidb-groups-mysql"
	backendDir, backendVolume = "/var/lib/tiproxy-backend-tls", "tidb-groups-backend"
	// closing is how long a proxy that has closed its connections may take to end, in
	// seconds.
	closing = 5
)

// renderPorts returns TiProxy's ports.
func renderPorts() []workload.Port {
	return []workload.Port{{Name: "mysql", Number: v1alpha1.PortTiProxy}, {Name: "status", Number: v1alpha1.PortTiProxyAPI}}
}

// renderServices returns the group's Services: clients use the first; the headless one gives
// every proxy its name.
func renderServices(g *v1alpha1.TiProxyGroup) []*corev1.Service {
	return []*corev1.Service{workload.ClientService(g, g.Spec.Service, renderPorts()), workload.PeerService(g, renderPorts()[1:])}
}

// collectInputs returns the part of the spec that a proxy is rendered from.
func collectInputs(g *v1alpha1.TiProxyGroup) any {
	inputs := map[string]any{"shutdown": g.Spec.Shutdown}
	maps.Copy(inputs, workload.TLSInputs(g))
	maps.Copy(inputs, workload.MySQLInputs(g))
	if secret := v1alpha1.BackendSecretName(g); secret != "" {
		inputs["backendSecret"] = secret
	}
	return rollout.Inputs(g, inputs)
}

// buildTemplate renders the pod and the configuration file of a proxy. image is the operator's,
// which has the program that waits for clients; empty if the operator does not know it.
func buildTemplate(g *v1alpha1.TiProxyGroup, image string) (corev1.PodTemplateSpec, map[string]string, []string) {
	files, problems := renderConfig(g)
	configMap, err := rollout.ConfigMapName(g.Name, files)
	if err != nil {
		problems = append(problems, err.Error())
	}
	stop := shutdownTimes(g)
	m := workload.Main{
		Repository:   "pingcap/tiproxy",
		Command:      []string{"/bin/tiproxy"},
		Args:         append([]string{"--config=" + configDir + "/" + statusport.File}, renderAdvertised(g)...),
		Ports:        renderPorts(),
		ConfigDir:    configDir,
		ConfigMap:    configMap,
		Readiness:    workload.ReadinessProbe(workload.StatusPort(g, "/api/debug/health", "status")),
		GraceSeconds: stop.delay + stop.drain + stop.closing + closing,
		MetricsPort:  v1alpha1.PortTiProxyAPI,
		Mounts:       []corev1.VolumeMount{{Name: workVolume, MountPath: workDir}},
		Volumes:      []corev1.Volume{{Name: workVolume, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
	}
	mountTLS(g, &m)
	stop = stop.within(int64(m.Grace(g).Seconds()) - closing)
	switch {
	case image != "":
		drain := workload.BringProgram(g, &m, image, "drain-clients")
		m.Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: append([]string{
			drain, "stop", fmt.Sprintf("--metrics=%s://localhost:%d/metrics/", v1alpha1.SpecScheme(g), v1alpha1.PortTiProxyAPI),
			fmt.Sprintf("--delay=%ds", stop.delay), fmt.Sprintf("--within=%ds", stop.drain),
		}, workload.LocalFlags(g)...)}}}
	case stop.delay > 0:
		m.Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: stop.delay}}}
	}
	template, more := workload.Template(g, m)
	return template, files, append(problems, more...)
}

// renderAdvertised is the flag of the host that a proxy registers in PD, by which TiDB and the other
// proxies ask it: one of its certificate, in place of its IP. TiProxy has it from v1.1 on, and
// ends with a flag that it does not know. What is no version is taken for a later one.
func renderAdvertised(g *v1alpha1.TiProxyGroup) []string {
	if v, err := version.ParseSemantic(g.Spec.Version); err == nil && !v.AtLeast(version.MajorMinor(1, 1)) {
		return nil
	}
	return []string{"--advertise-addr=" + names.PodHost("$(POD_NAME)", g.Name, g.Namespace, g.Spec.ClusterDomain)}
}

// renderConfig renders tiproxy.toml: the user's, and what the operator sets.
func renderConfig(g *v1alpha1.TiProxyGroup) (map[string]string, []string) {
	own, secured := map[string]any{
		"workdir":        workDir,
		"api.addr":       workload.ListenAddress(g, v1alpha1.PortTiProxyAPI),
		"proxy.addr":     workload.ListenAddress(g, v1alpha1.PortTiProxy),
		"proxy.pd-addrs": names.HostPort(names.ServiceHost(g.PDGroupName(), g.Namespace, g.Spec.ClusterDomain), v1alpha1.PortPDClient),
		// Load balancers have noticed before it gets the signal to stop.
		"proxy.graceful-wait-before-shutdown": int64(0),
		"proxy.graceful-close-conn-timeout":   shutdownTimes(g).closing,
	}, renderSecurity(g)
	maps.Copy(own, secured)
	return tomlconfig.File(statusport.File, g.Spec.Config, slices.Concat(ownedKeys(), slices.Sorted(maps.Keys(secured))), own)
}

// renderSecurity is what tiproxy.toml has of TLS, none without: its API and what it asks PD and
// status ports with; what MySQL clients are shown; and what TiDB servers are shown.
func renderSecurity(g *v1alpha1.TiProxyGroup) map[string]any {
	if g.Spec.TLS == nil {
		return nil
	}
	out := map[string]any{}
	for _, section := range []struct {
		name, dir string
		ca        bool
	}{
		{"server-http-tls", workload.TLSDir(g), true},
		{"cluster-tls", workload.TLSDir(g), true},
		// With a CA it wants a certificate of every client that uses TLS.
		{"server-tls", dirOf(mysqlDir, v1alpha1.MySQLSecretName(g)), v1alpha1.VerifiesClients(g)},
		{"sql-tls", dirOf(backendDir, v1alpha1.BackendSecretName(g)), true},
	} {
		if section.dir == "" {
			continue
		}
		files, table := workload.FilesIn(section.dir), "security."+section.name
		out[table+".cert"], out[table+".key"] = files.Cert, files.Key
		if section.ca {
			out[table+".ca"] = files.CA
		}
	}
	return out
}

// dirOf is where a Secret is mounted; empty if there is none.
func dirOf(dir, secret string) string {
	if secret == "" {
		return ""
	}
	return dir
}

// mountTLS mounts the certificates of the proxies.
func mountTLS(g *v1alpha1.TiProxyGroup, m *workload.Main) {
	workload.MountTLS(g, m)
	if secret := v1alpha1.MySQLSecretName(g); secret != "" {
		workload.MountSecret(m, mysqlVolume, secret, mysqlDir)
	}
	if secret := v1alpha1.BackendSecretName(g); secret != "" {
		workload.MountSecret(m, backendVolume, secret, backendDir)
	}
}

// ownedKeys returns the configuration keys that the operator sets, and that of a range of ports:
// with one, a newer TiProxy does not listen on the port of proxy.addr.
func ownedKeys() []string {
	return []string{"workdir", "api.addr", "proxy.addr", "proxy.advertise-addr", "proxy.pd-addrs", "proxy.port-range", "proxy.graceful-wait-before-shutdown", "proxy.graceful-close-conn-timeout"}
}

// times are those that a stop takes, in seconds.
type times struct{ delay, drain, closing int64 }

// within shortens what comes before the end of transactions, so that the whole stop takes no
// longer than a grace of the user's.
func (t times) within(grace int64) times {
	room := max(grace-t.closing, 0)
	t.delay = min(t.delay, room)
	t.drain = min(t.drain, room-t.delay)
	return t
}

// shutdownTimes returns for how long a proxy that has left the Service still takes connections,
// for how long it then waits for its clients, and for their transactions.
func shutdownTimes(g *v1alpha1.TiProxyGroup) times {
	s := ptr.Deref(g.Spec.Shutdown, v1alpha1.TiProxyShutdown{})
	return times{delay: ptr.Deref(s.DelaySeconds, 10), drain: ptr.Deref(s.DrainSeconds, 60), closing: ptr.Deref(s.CloseSeconds, 15)}
}
