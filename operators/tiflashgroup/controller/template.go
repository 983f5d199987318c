package controller

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/names"
	"github.com/tidb-groups/tidb-groups/shared/placement"
	"github.com/tidb-groups/tidb-groups/shared/rollout"
	"github.com/tidb-groups/tidb-groups/shared/tomlconfig"
	"github.com/tidb-groups/tidb-groups/shared/workload"
)

const (
	configDir = "/etc/tiflash"
	// graceSeconds is long enough for TiFlash to wait for its queries, for which it has
	// half of it, and then to close its files.
	graceSeconds = 60
	// waitForQueries is for how many seconds TiFlash lets queries run before it stops, from
	// v8.5.4 on: 600 by default. Versions before do not read it.
	waitForQueries = "flash.graceful_wait_shutdown_timeout"
)

// renderPorts returns TiFlash's ports.
func renderPorts() []workload.Port {
	return []workload.Port{
		{Name: "flash", Number: v1alpha1.PortTiFlash}, {Name: "proxy", Number: v1alpha1.PortTiFlashProxy},
		{Name: "metrics", Number: v1alpha1.PortTiFlashMetrics}, {Name: "proxy-status", Number: v1alpha1.PortTiFlashProxyState},
	}
}

// renderServices returns the group's only Service, which gives the stores their
// names: whatever talks to TiFlash learns its address from PD.
func renderServices(g *v1alpha1.TiFlashGroup) []*corev1.Service {
	return []*corev1.Service{workload.PeerService(g, renderPorts())}
}

// collectInputs returns the part of the spec that a member is rendered from.
func collectInputs(g *v1alpha1.TiFlashGroup) any {
	inputs := map[string]any{"proxyConfig": g.Spec.ProxyConfig, "logTailer": g.Spec.LogTailer}
	maps.Copy(inputs, workload.TLSInputs(g))
	return rollout.Inputs(g, inputs)
}

// dataPath returns where the n-th data volume is mounted.
func dataPath(n int) string { return fmt.Sprintf("/data%d", n) }

// buildTemplate renders the pod and the configuration files of a member.
func buildTemplate(g *v1alpha1.TiFlashGroup) (corev1.PodTemplateSpec, map[string]string, []string) {
	c, problems := renderConfig(g)
	problems = append(problems, placement.CheckLabels(g.Spec.StoreLabels)...)
	tailers, more := logTailers(g, c.logs)
	problems = append(problems, more...)
	configMap, err := rollout.ConfigMapName(g.Name, c.files)
	if err != nil {
		problems = append(problems, err.Error())
	}
	host := names.PodHost("$(POD_NAME)", g.Name, g.Namespace, g.Spec.ClusterDomain)
	m := workload.Main{
		Repository: "pingcap/tiflash",
		Command:    []string{"/tiflash/tiflash"},
		Args: []string{
			"server",
			"--config-file=" + configDir + "/" + configFile,
			// What differs between members overrides the file, which they share.
			"--",
			fmt.Sprintf("--flash.proxy.engine-addr=%s:%d", host, v1alpha1.PortTiFlash),
			fmt.Sprintf("--flash.proxy.advertise-addr=%s:%d", host, v1alpha1.PortTiFlashProxy),
			fmt.Sprintf("--flash.proxy.advertise-status-addr=%s:%d", host, v1alpha1.PortTiFlashProxyState),
		},
		Ports:     renderPorts(),
		DataPath:  dataPath,
		ConfigDir: configDir,
		ConfigMap: configMap,
		// The proxy's status port answers 200 as soon as TiFlash runs. Whether
		// its store serves is for the gates Joined and Healthy, which PD
		// answers.
		Readiness: &corev1.Probe{
			ProbeHandler:  workload.StatusPort(g, "/tiflash/store-status", "proxy-status"),
			PeriodSeconds: 1, TimeoutSeconds: 1, FailureThreshold: 3, SuccessThreshold: 1,
		},
		GraceSeconds: graceSeconds,
		MetricsPort:  v1alpha1.PortTiFlashMetrics,
		Sidecars:     tailers,
	}
	workload.MountTLS(g, &m)
	template, more := workload.Template(g, m)
	return template, c.files, append(problems, more...)
}

// logTailers returns the sidecars that print TiFlash's log files, which it
// writes nowhere else.
func logTailers(g *v1alpha1.TiFlashGroup, logs []logFile) ([]corev1.Container, []string) {
	tailer := g.Spec.LogTailer
	if tailer == nil {
		tailer = &v1alpha1.Sidecar{}
	}
	if tailer.Disabled {
		return nil, nil
	}
	var out []corev1.Container
	var problems []string
	for _, log := range logs {
		mount, found := mountOf(g, log.path)
		if !found {
			problems = append(problems, fmt.Sprintf("spec.config: %s is %q, which is on no data volume (%s), so that no sidecar can print it: put it on one, or set spec.logTailer.disabled to true",
				log.key, log.path, strings.Join(dataPaths(g), ", ")))
			continue
		}
		out = append(out, workload.Tailer(log.container, tailer, []corev1.VolumeMount{mount}, log.path))
	}
	return out, problems
}

// mountOf returns the mount of the data volume that a file lies on.
func mountOf(g *v1alpha1.TiFlashGroup, file string) (corev1.VolumeMount, bool) {
	n := 0
	for _, v := range g.Spec.Volumes {
		if len(v.Mounts) > 0 {
			continue
		}
		if dir := dataPath(n); strings.HasPrefix(path.Clean(file), dir+"/") {
			return corev1.VolumeMount{Name: v.Name, MountPath: dir, ReadOnly: true}, true
		}
		n++
	}
	return corev1.VolumeMount{}, false
}

func dataPaths(g *v1alpha1.TiFlashGroup) []string {
	return workload.DataPaths(g.GetComponentSpec(), dataPath)
}

const (
	configFile = "tiflash.toml"
	proxyFile  = "proxy.toml"
	logDir     = "/data0/logs"
)

// ownedKeys returns the keys of tiflash.toml that the operator sets, in the
// file or on the command line.
func ownedKeys() []string {
	return []string{
		"path", "tmp_path", "storage.main.dir", "raft.pd_addr", "status.metrics_port",
		"flash.service_addr", "flash.proxy.config", "flash.proxy.data-dir", "flash.proxy.addr", "flash.proxy.advertise-addr",
		"flash.proxy.status-addr", "flash.proxy.advertise-status-addr", "flash.proxy.engine-addr",
		"flash.proxy.pd-endpoints",
	}
}

// ownedProxyKeys returns the keys of proxy.toml that the operator sets in
// tiflash.toml, on the command line, or in PD.
func ownedProxyKeys() []string {
	return []string{
		"server.addr", "server.advertise-addr", "server.status-addr", "server.advertise-status-addr", "server.engine-addr",
		"server.labels", "storage.data-dir", "pd.endpoints",
	}
}

// logFile is a log that TiFlash writes into a file.
type logFile struct {
	// container that prints it.
	container string
	// key of tiflash.toml that names it.
	key string
	// path of the file.
	path string
}

// configuration is the rendered files and what the pod needs to know of them.
type configuration struct {
	files map[string]string
	logs  []logFile
}

// renderConfig renders tiflash.toml and proxy.toml: the user's with the operator's
// keys put in. All members share them.
func renderConfig(g *v1alpha1.TiFlashGroup) (configuration, []string) {
	secured, proxySecured := renderSecurity(g)
	flash, problems := tomlconfig.ParseUser("spec.config", g.Spec.Config, slices.Concat(ownedKeys(), slices.Sorted(maps.Keys(secured))))
	proxy, more := tomlconfig.ParseUser("spec.proxyConfig", g.Spec.ProxyConfig, slices.Concat(ownedProxyKeys(), slices.Sorted(maps.Keys(proxySecured))))
	if problems = append(problems, more...); len(problems) > 0 {
		return configuration{}, problems
	}
	problems = checkCapacities(g, flash)
	c := configuration{files: map[string]string{}}
	operator := map[string]any{
		"tmp_path":            dataPath(0) + "/tmp",
		"storage.main.dir":    storageDirs(g),
		"raft.pd_addr":        fmt.Sprintf("%s:%d", names.ServiceHost(g.PDGroupName(), g.Namespace, g.Spec.ClusterDomain), v1alpha1.PortPDClient),
		"status.metrics_port": v1alpha1.PortTiFlashMetrics,
		// By name it would be looked up before DNS knows a pod's new address, and TiFlash would end.
		"flash.service_addr":      workload.ListenAddress(g, v1alpha1.PortTiFlash),
		"flash.proxy.config":      configDir + "/" + proxyFile,
		"flash.proxy.data-dir":    dataPath(0) + "/proxy",
		"flash.proxy.addr":        workload.ListenAddress(g, v1alpha1.PortTiFlashProxy),
		"flash.proxy.status-addr": workload.ListenAddress(g, v1alpha1.PortTiFlashProxyState),
	}
	maps.Copy(operator, secured)
	if _, own := flash.Leaves()[waitForQueries]; !own {
		operator[waitForQueries] = int64(workload.Main{GraceSeconds: graceSeconds}.Grace(g) / 2 / time.Second)
	}
	if _, own := flash["listen_host"]; g.Spec.PreferIPv6 && !own {
		// Its default is 0.0.0.0. Metrics are served there; TiFlash adds the brackets.
		operator["listen_host"] = workload.ListenHost(g)
	}
	for _, log := range []logFile{
		{container: "serverlog", key: "logger.log", path: logDir + "/server.log"},
		{container: "errorlog", key: "logger.errorlog", path: logDir + "/error.log"},
	} {
		switch own := loggerValue(flash, log.key).(type) {
		case nil:
			operator[log.key] = log.path
		case string:
			log.path = own
		default:
			problems = append(problems, fmt.Sprintf("spec.config: %s is %v: it must be the path of a file, in quotes", log.key, own))
		}
		c.logs = append(c.logs, log)
	}
	for _, f := range []struct {
		name, field string
		tree        tomlconfig.Tree
	}{{configFile, "spec.config", tomlconfig.Merge(flash, operator)}, {proxyFile, "spec.proxyConfig", tomlconfig.Merge(proxy, proxySecured)}} {
		text, err := tomlconfig.Render(f.tree)
		if err != nil {
			problems = append(problems, f.field+": "+err.Error())
			continue
		}
		c.files[f.name] = text
	}
	return c, problems
}

// renderSecurity is what tiflash.toml and proxy.toml have of TLS, none without: the one is for
// TiFlash's own port and that of its metrics, the other for those of the proxy.
func renderSecurity(g *v1alpha1.TiFlashGroup) (flash, proxy map[string]any) {
	if g.GetTLS() == nil {
		return nil, nil
	}
	files := workload.FilesIn(workload.TLSDir(g))
	flash = map[string]any{"security.ca_path": files.CA, "security.cert_path": files.Cert, "security.key_path": files.Key}
	proxy = map[string]any{"security.ca-path": files.CA, "security.cert-path": files.Cert, "security.key-path": files.Key}
	if allowed := v1alpha1.CommonNames(g); len(allowed) > 0 {
		flash["security.cert_allowed_cn"], proxy["security.cert-allowed-cn"] = allowed, allowed
	}
	return flash, proxy
}

// loggerValue returns what the user says of a key of the table logger, nil if
// nothing.
func loggerValue(flash tomlconfig.Tree, key string) any {
	table, ok := flash["logger"].(map[string]any)
	if !ok {
		return nil
	}
	return table[strings.TrimPrefix(key, "logger.")]
}

// checkCapacities names the lists of capacities that do not match their directories: TiFlash
// ends at its start then. It ignores what is no list of whole numbers, and storage.latest
// without directories.
func checkCapacities(g *v1alpha1.TiFlashGroup, flash tomlconfig.Tree) (problems []string) {
	leaves := flash.Leaves()
	if count := countNumbers(leaves["storage.main.capacity"]); count > 0 && count != len(storageDirs(g)) {
		problems = append(problems, fmt.Sprintf("spec.config: storage.main.capacity has %d numbers, but there are %d directories of storage.main.dir, one for each data volume (%s): give one number for each, 0 for no limit",
			count, len(storageDirs(g)), strings.Join(dataPaths(g), ", ")))
	}
	dirs, _ := leaves["storage.latest.dir"].([]any)
	if count := countNumbers(leaves["storage.latest.capacity"]); count > 0 && len(dirs) > 0 && count != len(dirs) {
		problems = append(problems, fmt.Sprintf("spec.config: storage.latest.capacity has %d numbers, but storage.latest.dir has %d directories: give one number for each, 0 for no limit",
			count, len(dirs)))
	}
	return problems
}

// countNumbers returns how many whole numbers a list has, 0 if it has anything else.
func countNumbers(value any) int {
	list, _ := value.([]any)
	for _, one := range list {
		if _, whole := one.(int64); !whole {
			return 0
		}
	}
	return len(list)
}

// storageDirs returns where the data lies, one directory on each data volume.
func storageDirs(g *v1alpha1.TiFlashGroup) []string {
	var out []string
	for _, dir := range dataPaths(g) {
		out = append(out, dir+"/db")
	}
	return out
}
