package controller

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
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
	// closing is how long a proxy that has closed its connections may take to end, in
	// seconds.
	closing = 5
)

// ports returns TiProxy's ports.
func ports() []workload.Port {
	return []workload.Port{{Name: "mysql", Number: v1alpha1.PortTiProxy}, {Name: "status", Number: v1alpha1.PortTiProxyAPI}}
}

// services returns the group's Services: clients use the first; the headless one gives
// every proxy its name.
func services(g *v1alpha1.TiProxyGroup) []*corev1.Service {
	return []*corev1.Service{workload.ClientService(g, g.Spec.Service, ports()), workload.PeerService(g, ports()[1:])}
}

// inputs returns the part of the spec that a proxy is rendered from.
func inputs(g *v1alpha1.TiProxyGroup) any {
	return rollout.Inputs(g, map[string]any{"shutdown": g.Spec.Shutdown})
}

// render renders the pod and the configuration file of a proxy. image is the operator's,
// which has the program that waits for clients; empty if the operator does not know it.
func render(g *v1alpha1.TiProxyGroup, image string) (corev1.PodTemplateSpec, map[string]string, []string) {
	files, problems := config(g)
	configMap, err := rollout.ConfigMapName(g.Name, files)
	if err != nil {
		problems = append(problems, err.Error())
	}
	stop := shutdown(g)
	m := workload.Main{
		Repository:   "pingcap/tiproxy",
		Command:      []string{"/bin/tiproxy"},
		Args:         []string{"--config=" + configDir + "/" + statusport.File},
		Ports:        ports(),
		ConfigDir:    configDir,
		ConfigMap:    configMap,
		Readiness:    workload.Readiness(workload.HTTPGet("/api/debug/health", "status")),
		GraceSeconds: stop.delay + stop.drain + stop.closing + closing,
		MetricsPort:  v1alpha1.PortTiProxyAPI,
		Mounts:       []corev1.VolumeMount{{Name: workVolume, MountPath: workDir}},
		Volumes:      []corev1.Volume{{Name: workVolume, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
	}
	switch {
	case image != "":
		drain := workload.BringProgram(g, &m, image, "drain-clients")
		m.Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{
			drain, "stop", fmt.Sprintf("--metrics=http://localhost:%d/metrics", v1alpha1.PortTiProxyAPI),
			fmt.Sprintf("--delay=%ds", stop.delay), fmt.Sprintf("--within=%ds", stop.drain),
		}}}}
	case stop.delay > 0:
		m.Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: stop.delay}}}
	}
	template, more := workload.Template(g, m)
	return template, files, append(problems, more...)
}

// config renders tiproxy.toml: the user's, and what the operator sets.
func config(g *v1alpha1.TiProxyGroup) (map[string]string, []string) {
	return tomlconfig.File(statusport.File, g.Spec.Config, ownedKeys(), map[string]any{
		"workdir":        workDir,
		"api.addr":       workload.ListenAddress(g, v1alpha1.PortTiProxyAPI),
		"proxy.addr":     workload.ListenAddress(g, v1alpha1.PortTiProxy),
		"proxy.pd-addrs": names.HostPort(names.ServiceHost(g.PDGroupName(), g.Namespace, g.Spec.ClusterDomain), v1alpha1.PortPDClient),
		// Before it is told to stop, load balancers have noticed.
		"proxy.graceful-wait-before-shutdown": int64(0),
		"proxy.graceful-close-conn-timeout":   shutdown(g).closing,
	})
}

// ownedKeys returns the configuration keys that the operator sets.
func ownedKeys() []string {
	return []string{"workdir", "api.addr", "proxy.addr", "proxy.pd-addrs", "proxy.graceful-wait-before-shutdown", "proxy.graceful-close-conn-timeout"}
}

// times are those that a stop takes, in seconds.
type times struct{ delay, drain, closing int64 }

// shutdown returns for how long a proxy that has left the Service still takes connections,
// for how long it then waits for its clients, and for their transactions.
func shutdown(g *v1alpha1.TiProxyGroup) times {
	s := ptr.Deref(g.Spec.Shutdown, v1alpha1.TiProxyShutdown{})
	return times{delay: ptr.Deref(s.DelaySeconds, 10), drain: ptr.Deref(s.DrainSeconds, 60), closing: ptr.Deref(s.CloseSeconds, 15)}
}
