package controller

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/pdgroup/bootstrap"
	"github.com/tidb-groups/tidb-groups/operators/pdgroup/persisted"
	"github.com/tidb-groups/tidb-groups/shared/names"
	"github.com/tidb-groups/tidb-groups/shared/rollout"
	"github.com/tidb-groups/tidb-groups/shared/tomlconfig"
	"github.com/tidb-groups/tidb-groups/shared/workload"
)

const (
	configDir = "/etc/pd"
	dataDir   = "/var/lib/pd"
	// graceSeconds is long enough for PD to hand its leadership over and close
	// its files.
	graceSeconds = 30
)

// ownedKeys returns the configuration keys that the operator sets, by flag or
// in the file.
func ownedKeys() []string {
	return []string{
		"name", "data-dir", "client-urls", "peer-urls", "advertise-client-urls", "advertise-peer-urls",
		"initial-cluster", "initial-cluster-state", "initial-cluster-token", "join", "force-new-cluster",
	}
}

// renderPorts returns PD's ports.
func renderPorts() []workload.Port {
	return []workload.Port{{Name: "client", Number: v1alpha1.PortPDClient}, {Name: "peer", Number: v1alpha1.PortPDPeer}}
}

// renderServices returns the group's Services: clients use the first, members the
// headless one.
func renderServices(g *v1alpha1.PDGroup) []*corev1.Service {
	return []*corev1.Service{workload.ClientService(g, g.Spec.Service, renderPorts()[:1]), workload.PeerService(g, renderPorts())}
}

// collectInputs returns the part of the spec that a member is rendered from.
func collectInputs(g *v1alpha1.PDGroup) any {
	return rollout.Inputs(g, workload.TLSInputs(g))
}

// buildTemplate renders the pod and the configuration file of a member that joins. image is
// that of the operator.
func buildTemplate(g *v1alpha1.PDGroup, image string) (corev1.PodTemplateSpec, map[string]string, []string) {
	files, problems := renderConfig(g)
	configMap, err := rollout.ConfigMapName(g.Name, files)
	if err != nil {
		problems = append(problems, err.Error())
	}
	host, scheme := names.PodHost("$(POD_NAME)", g.Name, g.Namespace, g.Spec.ClusterDomain), v1alpha1.SpecScheme(g)
	m := workload.Main{
		Repository: "pingcap/pd",
		Command:    []string{"/pd-server"},
		Args: append(logLevel(g), []string{
			"--name=$(POD_NAME)",
			"--data-dir=" + dataDir,
			"--client-urls=" + scheme + "://" + workload.ListenAddress(g, v1alpha1.PortPDClient),
			"--peer-urls=" + scheme + "://" + workload.ListenAddress(g, v1alpha1.PortPDPeer),
			fmt.Sprintf("--advertise-client-urls=%s://%s:%d", scheme, host, v1alpha1.PortPDClient),
			fmt.Sprintf("--advertise-peer-urls=%s://%s:%d", scheme, host, v1alpha1.PortPDPeer),
			"--config=" + configDir + "/" + persisted.File,
			bootstrap.JoinFlag + names.PDURL(v1alpha1.SpecScheme(g), g.Name, g.Namespace, g.Spec.ClusterDomain, v1alpha1.PortPDClient),
		}...),
		Ports:     renderPorts(),
		DataPath:  func(int) string { return dataDir },
		ConfigDir: configDir,
		ConfigMap: configMap,
		// PD's own ready call is no probe: it answers 200 without a quorum and
		// 500 before the first store has registered. Whether a member is
		// healthy is for the gates Joined and Healthy, which PD answers; the
		// kubelet only asks whether it listens.
		Readiness: &corev1.Probe{
			ProbeHandler:  corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromString("client")}},
			PeriodSeconds: 1, TimeoutSeconds: 1, FailureThreshold: 3, SuccessThreshold: 1,
		},
		GraceSeconds: graceSeconds,
		MetricsPort:  v1alpha1.PortPDClient,
	}
	workload.MountTLS(g, &m)
	if image != "" {
		handOver(g, &m, image)
	}
	template, more := workload.Template(g, m)
	return template, files, append(problems, more...)
}

// handOver has a member that leads PD hand over before it is stopped, whatever stops it,
// so that SQL does not wait for an election and the lease of the one that is gone. It is
// done in the pod, so that no operator has to run, and has half of the grace period.
func handOver(g *v1alpha1.PDGroup, m *workload.Main, image string) {
	within := m.Grace(g) / 2
	if within <= 0 {
		return // it is killed at once
	}
	resign := workload.BringProgram(g, m, image, "resign")
	command := []string{resign, "stop", fmt.Sprintf("--pd=%s://localhost:%d", v1alpha1.SpecScheme(g), v1alpha1.PortPDClient), "--name=$(POD_NAME)", "--within=" + within.String()}
	m.Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: append(command, workload.LocalFlags(g)...)}}}
}

// logLevel returns log.level of the user's configuration as a flag: without one,
// the flag's default, info, wins over the file (AdjustCommandLineString of PD v8.1).
func logLevel(g *v1alpha1.PDGroup) []string {
	user, err := tomlconfig.Parse("spec.config", g.Spec.Config)
	if err != nil {
		return nil // config says so
	}
	if log, ok := user["log"].(map[string]any); ok {
		if level, ok := log["level"].(string); ok && level != "" {
			return []string{"--log-level=" + level}
		}
	}
	return nil
}

// allowedNames is what PD demands of the certificates of its members.
const allowedNames = "security.cert-allowed-cn"

// tooManyNames says that PD takes one common name before v8.4; empty if it takes those of the
// spec. What is no version is taken for a later one.
func tooManyNames(g *v1alpha1.PDGroup) []string {
	v, err := version.ParseSemantic(g.Spec.Version)
	if len(v1alpha1.CommonNames(g)) < 2 || err != nil || v.AtLeast(version.MajorMinor(8, 4)) {
		return nil
	}
	return []string{fmt.Sprintf("spec.tls.allowedCommonNames: PD %s takes one name, and has %d: leave one", g.Spec.Version, len(v1alpha1.CommonNames(g)))}
}

// refuseStrictLabels refuses replication.strictly-match-label: PD then registers no store without
// its labels, and the operators set them when it has registered. It is empty if that is off.
func refuseStrictLabels(g *v1alpha1.PDGroup) []string {
	user, err := tomlconfig.Parse("spec.config", g.Spec.Config)
	if err != nil {
		return nil // renderConfig says so
	}
	if user.Leaves()["replication.strictly-match-label"] == true {
		return []string{"spec.config: replication.strictly-match-label: stores get their labels when they have registered, and PD would register none without: set it to false"}
	}
	return nil
}

// renderConfig renders pd.toml: the user's, and the token that keeps the members of
// different groups from ever bootstrapping one cluster together.
func renderConfig(g *v1alpha1.PDGroup) (map[string]string, []string) {
	own, owned := map[string]any{"initial-cluster-token": string(g.UID)}, ownedKeys()
	if g.GetTLS() != nil {
		files := workload.FilesIn(workload.TLSDir(g))
		for key, value := range map[string]string{"security.cacert-path": files.CA, "security.cert-path": files.Cert, "security.key-path": files.Key} {
			own[key], owned = value, append(owned, key)
		}
		if allowed := v1alpha1.CommonNames(g); len(allowed) > 0 {
			own[allowedNames], owned = allowed, append(owned, allowedNames)
		}
		slices.Sort(owned)
	}
	files, problems := tomlconfig.File(persisted.File, g.Spec.Config, owned, own)
	return files, slices.Concat(problems, tooManyNames(g), refuseStrictLabels(g))
}
