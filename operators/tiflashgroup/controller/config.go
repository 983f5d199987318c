package controller

import (
	"fmt"
	"strings"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/names"
	"github.com/tidb-groups/tidb-groups/shared/tomlconfig"
)

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

// config renders tiflash.toml and proxy.toml: the user's with the operator's
// keys put in. All members share them.
func config(g *v1alpha1.TiFlashGroup) (configuration, []string) {
	flash, problems := parse("spec.config", g.Spec.Config, ownedKeys())
	proxy, more := parse("spec.proxyConfig", g.Spec.ProxyConfig, ownedProxyKeys())
	if problems = append(problems, more...); len(problems) > 0 {
		return configuration{}, problems
	}
	c := configuration{files: map[string]string{}}
	operator := map[string]any{
		"tmp_path":                dataPath(0) + "/tmp",
		"storage.main.dir":        storageDirs(g),
		"raft.pd_addr":            fmt.Sprintf("%s:%d", names.ServiceHost(g.PDGroupName(), g.Namespace), v1alpha1.PortPDClient),
		"status.metrics_port":     v1alpha1.PortTiFlashMetrics,
		"flash.proxy.config":      configDir + "/" + proxyFile,
		"flash.proxy.data-dir":    dataPath(0) + "/proxy",
		"flash.proxy.addr":        fmt.Sprintf("0.0.0.0:%d", v1alpha1.PortTiFlashProxy),
		"flash.proxy.status-addr": fmt.Sprintf("0.0.0.0:%d", v1alpha1.PortTiFlashProxyState),
	}
	for _, log := range []logFile{
		{container: "serverlog", key: "logger.log", path: logDir + "/server.log"},
		{container: "errorlog", key: "logger.errorlog", path: logDir + "/error.log"},
	} {
		switch own := logger(flash, log.key).(type) {
		case nil:
			operator[log.key] = log.path
		case string:
			log.path = own
		default:
			problems = append(problems, fmt.Sprintf("spec.config: %s is %v: it must be the path of a file, in quotes", log.key, own))
		}
		c.logs = append(c.logs, log)
	}
	for name, tree := range map[string]tomlconfig.Tree{configFile: tomlconfig.Merge(flash, operator), proxyFile: proxy} {
		text, err := tomlconfig.Render(tree)
		if err != nil {
			problems = append(problems, fmt.Sprintf("render %s: %v", name, err))
			continue
		}
		c.files[name] = text
	}
	return c, problems
}

// logger returns what the user says of a key of the table logger, nil if
// nothing.
func logger(flash tomlconfig.Tree, key string) any {
	table, ok := flash["logger"].(map[string]any)
	if !ok {
		return nil
	}
	return table[strings.TrimPrefix(key, "logger.")]
}

// parse reads one of the user's files and refuses keys that are not his.
func parse(field, text string, owned []string) (tomlconfig.Tree, []string) {
	tree, err := tomlconfig.Parse(field, text)
	if err != nil {
		return nil, []string{err.Error()}
	}
	var problems []string
	for _, key := range tomlconfig.Conflicts(tree, owned) {
		problems = append(problems, tomlconfig.OwnedMessage(field, key))
	}
	return tree, problems
}

// storageDirs returns where the data lies, one directory on each data volume.
func storageDirs(g *v1alpha1.TiFlashGroup) []string {
	var out []string
	for _, dir := range dataPaths(g) {
		out = append(out, dir+"/db")
	}
	return out
}
