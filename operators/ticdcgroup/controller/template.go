package controller

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/names"
	"github.com/tidb-groups/tidb-groups/shared/rollout"
	"github.com/tidb-groups/tidb-groups/shared/tomlconfig"
	"github.com/tidb-groups/tidb-groups/shared/workload"
)

const (
	configDir  = "/etc/ticdc"
	configFile = "ticdc.toml"
	dataDir    = "/var/lib/ticdc"
	dataVolume = "tidb-groups-data"
	secretsDir = "/var/lib/sink-secrets" //nolint:gosec // no secret
	// closing is how long a capture that has handed over may take to end, in seconds.
	closing = 30
	// defaultDrain is how long it may take to hand over by default, in seconds.
	defaultDrain = 600
)

// renderPorts returns TiCDC's port.
func renderPorts() []workload.Port {
	return []workload.Port{{Name: "ticdc", Number: v1alpha1.PortTiCDC}}
}

// renderServices returns the group's Service, which gives every capture its name.
func renderServices(g *v1alpha1.TiCDCGroup) []*corev1.Service {
	return []*corev1.Service{workload.PeerService(g, renderPorts())}
}

// collectInputs returns the part of the spec that a capture is rendered from.
func collectInputs(g *v1alpha1.TiCDCGroup) any {
	inputs := map[string]any{"sinkSecrets": g.Spec.SinkSecrets, "drainSeconds": g.Spec.DrainSeconds}
	maps.Copy(inputs, workload.TLSInputs(g))
	return rollout.Inputs(g, inputs)
}

// ownedKeys returns the configuration keys that the operator sets by flag.
func ownedKeys() []string {
	return []string{"addr", "advertise-addr", "data-dir", "log-file"}
}

// buildTemplate renders the pod and the configuration file of a capture. image is the operator's,
// which has the program that hands over; empty if the operator does not know it.
func buildTemplate(g *v1alpha1.TiCDCGroup, image string) (corev1.PodTemplateSpec, map[string]string, []string) {
	files, problems := renderConfig(g)
	configMap, err := rollout.ConfigMapName(g.Name, files)
	if err != nil {
		problems = append(problems, err.Error())
	}
	drain := ptr.Deref(g.Spec.DrainSeconds, defaultDrain)
	m := workload.Main{
		Repository: "pingcap/ticdc",
		Command:    []string{"/cdc", "server"},
		Args: []string{
			"--addr=" + workload.ListenAddress(g, v1alpha1.PortTiCDC),
			"--advertise-addr=" + names.HostPort(names.PodHost("$(POD_NAME)", g.Name, g.Namespace, g.Spec.ClusterDomain), v1alpha1.PortTiCDC),
			"--pd=" + names.PDURL(v1alpha1.SpecScheme(g), g.PDGroupName(), g.Namespace, g.Spec.ClusterDomain, v1alpha1.PortPDClient),
			"--data-dir=" + dataDir,
			"--config=" + configDir + "/" + configFile,
		},
		Ports:        renderPorts(),
		ConfigDir:    configDir,
		ConfigMap:    configMap,
		Readiness:    workload.ReadinessProbe(workload.StatusPort(g, "/status", "ticdc")),
		GraceSeconds: drain + closing,
		MetricsPort:  v1alpha1.PortTiCDC,
	}
	if g.GetTLS() != nil {
		files := workload.FilesIn(workload.TLSDir(g))
		m.Args = append(m.Args, "--ca="+files.CA, "--cert="+files.Cert, "--key="+files.Key)
		if allowed := v1alpha1.CommonNames(g); len(allowed) > 0 {
			m.Args = append(m.Args, "--cert-allowed-cn="+strings.Join(allowed, ","))
		}
	}
	workload.MountTLS(g, &m)
	if !mountsData(g) {
		m.Mounts = append(m.Mounts, corev1.VolumeMount{Name: dataVolume, MountPath: dataDir})
		m.Volumes = append(m.Volumes, corev1.Volume{Name: dataVolume, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
	}
	for n, secret := range slices.Sorted(slices.Values(g.Spec.SinkSecrets)) {
		volume := fmt.Sprintf("tidb-groups-sink-%d", n)
		m.Mounts = append(m.Mounts, corev1.VolumeMount{Name: volume, MountPath: secretsDir + "/" + secret, ReadOnly: true})
		m.Volumes = append(m.Volumes, corev1.Volume{Name: volume, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: secret}}})
	}
	// A capture that was drained still has to stop by itself, within a grace of the user's, too.
	drain = max(min(drain, int64(m.Grace(g).Seconds())-closing), 0)
	if image != "" && drain > 0 {
		program := workload.BringProgram(g, &m, image, "drain-capture")
		m.Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: append([]string{
			program, "stop", fmt.Sprintf("--api=%s://localhost:%d", v1alpha1.SpecScheme(g), v1alpha1.PortTiCDC), fmt.Sprintf("--within=%ds", drain),
		}, workload.LocalFlags(g)...)}}}
	}
	template, more := workload.Template(g, m)
	return template, files, append(problems, more...)
}

// mountsData reports whether the spec mounts a volume at the data directory itself.
func mountsData(g *v1alpha1.TiCDCGroup) bool {
	return slices.ContainsFunc(g.Spec.Volumes, func(v v1alpha1.Volume) bool {
		return slices.ContainsFunc(v.Mounts, func(m v1alpha1.VolumeMount) bool { return m.MountPath == dataDir })
	})
}

// renderConfig renders ticdc.toml: the user's.
func renderConfig(g *v1alpha1.TiCDCGroup) (map[string]string, []string) {
	return tomlconfig.File(configFile, g.Spec.Config, ownedKeys(), nil)
}
