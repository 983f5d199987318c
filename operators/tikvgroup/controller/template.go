package controller

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/tikvgroup/statusport"
	"github.com/tidb-groups/tidb-groups/shared/names"
	"github.com/tidb-groups/tidb-groups/shared/placement"
	"github.com/tidb-groups/tidb-groups/shared/rollout"
	"github.com/tidb-groups/tidb-groups/shared/tomlconfig"
	"github.com/tidb-groups/tidb-groups/shared/workload"
)

const (
	configDir  = "/etc/tikv"
	configFile = statusport.File
	dataDir    = "/var/lib/tikv"
	// graceSeconds is long enough for TiKV to give its leaders away, for which it has
	// half of it, and then to flush and close its files.
	graceSeconds = 120
)

// ownedKeys returns the configuration keys that the operator sets by flag, or
// in PD.
func ownedKeys() []string {
	return []string{
		"server.addr", "server.advertise-addr", "server.status-addr", "server.advertise-status-addr", "server.labels",
		"storage.data-dir", "pd.endpoints",
	}
}

// renderPorts returns TiKV's ports.
func renderPorts() []workload.Port {
	return []workload.Port{{Name: "server", Number: v1alpha1.PortTiKV}, {Name: "status", Number: v1alpha1.PortTiKVStatus}}
}

// renderServices returns the group's only Service, which gives the stores their
// names: whatever talks to TiKV learns its address from PD.
func renderServices(g *v1alpha1.TiKVGroup) []*corev1.Service {
	return []*corev1.Service{workload.PeerService(g, renderPorts())}
}

// collectInputs returns the part of the spec that a member is rendered from.
func collectInputs(g *v1alpha1.TiKVGroup) any {
	return rollout.Inputs(g, workload.TLSInputs(g))
}

// buildTemplate renders the pod and the configuration file of a member. image is that of the
// operator.
func buildTemplate(g *v1alpha1.TiKVGroup, image string) (corev1.PodTemplateSpec, map[string]string, []string) {
	files, problems := renderConfig(g)
	problems = append(problems, placement.CheckLabels(g.Spec.StoreLabels)...)
	configMap, err := rollout.ConfigMapName(g.Name, files)
	if err != nil {
		problems = append(problems, err.Error())
	}
	host := names.PodHost("$(POD_NAME)", g.Name, g.Namespace, g.Spec.ClusterDomain)
	m := workload.Main{
		Repository: "pingcap/tikv",
		Command:    []string{"/tikv-server"},
		Args: []string{
			fmt.Sprintf("--pd-endpoints=%s:%d", names.ServiceHost(g.PDGroupName(), g.Namespace, g.Spec.ClusterDomain), v1alpha1.PortPDClient),
			"--addr=" + workload.ListenAddress(g, v1alpha1.PortTiKV),
			fmt.Sprintf("--advertise-addr=%s:%d", host, v1alpha1.PortTiKV),
			"--status-addr=" + workload.ListenAddress(g, v1alpha1.PortTiKVStatus),
			fmt.Sprintf("--advertise-status-addr=%s:%d", host, v1alpha1.PortTiKVStatus),
			"--data-dir=" + dataDir,
			"--config=" + configDir + "/" + configFile,
		},
		Ports:     renderPorts(),
		DataPath:  func(int) string { return dataDir },
		ConfigDir: configDir,
		ConfigMap: configMap,
		Readiness: &corev1.Probe{
			// It answers 200 as soon as TiKV runs. Whether its store serves is for the gates
			// Joined and Healthy, which PD answers.
			ProbeHandler:  workload.StatusPort(g, "/status", "status"),
			PeriodSeconds: 1, TimeoutSeconds: 1, FailureThreshold: 3, SuccessThreshold: 1,
		},
		GraceSeconds: graceSeconds,
		MetricsPort:  v1alpha1.PortTiKVStatus,
	}
	workload.MountTLS(g, &m)
	if image != "" {
		handOver(g, &m, image)
	}
	template, more := workload.Template(g, m)
	return template, files, append(problems, more...)
}

// renderConfig renders tikv.toml: the user's, less what the operator sets by flag, and the
// files of TLS.
func renderConfig(g *v1alpha1.TiKVGroup) (map[string]string, []string) {
	if g.GetTLS() == nil {
		return tomlconfig.File(configFile, g.Spec.Config, ownedKeys(), nil)
	}
	files := workload.FilesIn(workload.TLSDir(g))
	own := map[string]any{"security.ca-path": files.CA, "security.cert-path": files.Cert, "security.key-path": files.Key}
	if allowed := v1alpha1.CommonNames(g); len(allowed) > 0 {
		own["security.cert-allowed-cn"] = allowed
	}
	return tomlconfig.File(configFile, g.Spec.Config, append(ownedKeys(), slices.Sorted(maps.Keys(own))...), own)
}

const (
	// handoverRecord is the file that records what it has ordered PD. TiKV leaves
	// files that it does not know alone.
	handoverRecord = dataDir + "/.tidb-groups-handover"
	// restoreSeconds is for how long a store that has just been started may not get
	// through to PD before it is started again. Without PD it does not serve anyway.
	restoreSeconds = 60
)

// handOver has a store give its leaders away before it is stopped, whatever stops it,
// and lets it lead again afterwards (KV-16). Both are done in the pod, so that no
// operator has to run. It has half of the grace period for it; the rest is TiKV's own.
func handOver(g *v1alpha1.TiKVGroup, m *workload.Main, image string) {
	within := m.Grace(g) / 2
	if within <= 0 {
		return // it is killed at once
	}
	pd := "--pd=" + names.PDURL(v1alpha1.SpecScheme(g), g.PDGroupName(), g.Namespace, g.Spec.ClusterDomain, v1alpha1.PortPDClient)
	handover := workload.BringProgram(g, m, image, "handover")
	hook := func(command ...string) *corev1.LifecycleHandler {
		return &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: append(append([]string{handover}, command...), workload.HookFlags(g)...)}}
	}
	m.Lifecycle = &corev1.Lifecycle{
		PostStart: hook("start", pd, "--record="+handoverRecord, fmt.Sprintf("--within=%ds", restoreSeconds)),
		PreStop: hook("stop", pd, "--record="+handoverRecord, "--within="+within.String(),
			fmt.Sprintf("--address=%s:%d", names.PodHost("$(POD_NAME)", g.Name, g.Namespace, g.Spec.ClusterDomain), v1alpha1.PortTiKV)),
	}
}
