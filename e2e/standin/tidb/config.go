package tidb

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/tidb-groups/tidb-groups/e2e/standin/process"
	"github.com/tidb-groups/tidb-groups/e2e/standin/tikv"
)

// Config is what a TiDB server needs to know.
type Config struct {
	Host, Advertise   string
	Port, StatusPort  int
	StatusHost        string
	ReportStatus      bool
	PD                []string
	Lease             string
	Version           string        // the release, as in v8.5.7
	SlowLog           string        // file; empty means none
	SlowThreshold     time.Duration // statements that take longer are logged
	GracefulWait      time.Duration // between the first signal and closing the port
	InitSQLFile       string
	Secure            bool // start without root@'%', as --initialize-secure does
	LogLevel, LogFile string
	Labels            map[string]string
	// Files of TLS with the cluster and on the status port, and MySQL's of TLS with MySQL
	// clients. Those alone are verified that clients show.
	Files, MySQL process.Files
	// Document is the settings in effect, as /settings shows them.
	Document map[string]any
}

// ServerVersion is what clients see: 8.0.11-TiDB-v8.5.7.
func (c *Config) ServerVersion() string {
	return process.LookupText(c.Document, "server-version", "8.0.11-TiDB-"+c.Version)
}

// settingOf names the setting that a flag goes over.
var settingOf = map[string]string{
	"store": "store", "path": "path", "host": "host", "advertise-address": "advertise-address", "P": "port", "cors": "cors",
	"socket": "socket", "run-ddl": "instance.tidb_enable_ddl", "lease": "lease", "token-limit": "token-limit",
	"plugin-dir": "instance.plugin_dir", "plugin-load": "instance.plugin_load", "repair-mode": "repair-mode",
	"temp-dir": "temp-dir", "L": "log.level", "log-file": "log.file.filename", "log-general": "log.general-log-file",
	"log-slow-query": "log.slow-query-file", "report-status": "status.report-status", "status-host": "status.status-host",
	"status": "status.status-port", "metrics-addr": "status.metrics-addr", "metrics-interval": "status.metrics-interval",
	"proxy-protocol-networks": "proxy-protocol.networks", "proxy-protocol-header-timeout": "proxy-protocol.header-timeout",
	"proxy-protocol-fallbackable": "proxy-protocol.fallbackable", "initialize-sql-file": "initialize-sql-file",
	"disconnect-on-expired-password": "security.disconnect-on-expired-password", "keyspace-name": "keyspace-name",
	"tidb-service-scope": "instance.tidb_service_scope",
}

// declareFlags declares what tidb-server takes. The defaults are not used: only flags
// that are given go over the configuration file.
func declareFlags(out io.Writer) *flag.FlagSet {
	fs := flag.NewFlagSet("tidb-server", flag.ContinueOnError)
	fs.SetOutput(out)
	for _, name := range []string{
		"store", "path", "host", "advertise-address", "cors", "socket", "lease", "plugin-dir", "plugin-load", "temp-dir", "L",
		"log-file", "log-general", "log-slow-query", "status-host", "metrics-addr", "proxy-protocol-networks",
		"initialize-sql-file", "keyspace-name", "tidb-service-scope", "config", "repair-list", "affinity-cpus",
	} {
		fs.String(name, "", "as tidb-server's")
	}
	for _, name := range []string{"P", "status", "token-limit", "metrics-interval", "proxy-protocol-header-timeout"} {
		fs.Uint(name, 0, "as tidb-server's")
	}
	for _, name := range []string{
		"enable-binlog", "run-ddl", "repair-mode", "report-status", "proxy-protocol-fallbackable", "initialize-insecure",
		"initialize-secure", "disconnect-on-expired-password", "V", "config-check", "config-strict", "require-secure-transport",
	} {
		fs.Bool(name, false, "as tidb-server's")
	}
	return fs
}

// ParseArgs reads the command line and the configuration file that it names.
// Anything that it does not know is an error, also without --config-strict:
// the real one only warns then, but here a mistake shall be seen.
func ParseArgs(args []string, getenv func(string) string, out io.Writer) (*Config, error) {
	fs := declareFlags(out)
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil, process.ErrHelp
		}
		return nil, fmt.Errorf("parse the command line: %w", err)
	}
	if fs.NArg() > 0 {
		return nil, fmt.Errorf("parse the command line: unexpected argument %q", fs.Arg(0))
	}
	given := map[string]any{}
	fs.Visit(func(f *flag.Flag) {
		if g, ok := f.Value.(flag.Getter); ok {
			given[f.Name] = g.Get()
		}
	})
	release := getenv(tikv.VersionEnv)
	if release == "" {
		release = tikv.DefaultVersion
	}
	if given["V"] == true {
		_, err := fmt.Fprint(out, tidbVersion(release))
		return nil, errors.Join(process.ErrHelp, err)
	}
	known, err := Keys()
	if err != nil {
		return nil, err
	}
	file, _ := given["config"].(string)
	if file == "" && given["config-check"] == true {
		return nil, errors.New("config check failed: no configuration file is given")
	}
	doc, err := process.ReadTOML(file, known)
	if err != nil {
		return nil, err
	}
	for name, value := range given {
		if setting, ok := settingOf[name]; ok {
			process.Set(doc, setting, value)
		}
	}
	cfg, err := fromDocument(doc)
	if err != nil {
		return nil, err
	}
	cfg.Version = release
	cfg.Secure = given["initialize-secure"] == true
	if _, ok := given["log-slow-query"]; !ok && process.Lookup(doc, "log.slow-query-file") == nil {
		cfg.SlowLog = ""
	}
	if given["config-check"] == true {
		_, err := fmt.Fprintln(out, "config check successful")
		return nil, errors.Join(process.ErrHelp, err)
	}
	return cfg, nil
}

// fromDocument lays what was given over the defaults.
func fromDocument(given map[string]any) (*Config, error) {
	doc, err := Defaults()
	if err != nil {
		return nil, err
	}
	process.Overlay(doc, given)
	c := &Config{
		Host: process.LookupText(doc, "host", ""), StatusHost: process.LookupText(doc, "status.status-host", ""),
		Lease: process.LookupText(doc, "lease", "45s"), SlowLog: process.LookupText(doc, "log.slow-query-file", ""),
		InitSQLFile: process.LookupText(doc, "initialize-sql-file", ""),
		LogLevel:    process.LookupText(doc, "log.level", ""), LogFile: process.LookupText(doc, "log.file.filename", ""),
		Labels: map[string]string{}, Document: doc, Version: tikv.DefaultVersion,
		ReportStatus: process.Lookup(doc, "status.report-status") == true,
	}
	if store := process.LookupText(doc, "store", ""); store != "tikv" {
		return nil, fmt.Errorf("store %q: the stand-in needs PD, so only tikv will do", store)
	}
	if c.Files, err = process.FilesOf(doc, "security.cluster-ssl-ca", "security.cluster-ssl-cert", "security.cluster-ssl-key"); err != nil {
		return nil, err
	}
	c.MySQL = process.Files{CA: process.LookupText(doc, "security.ssl-ca", ""), Cert: process.LookupText(doc, "security.ssl-cert", ""), Key: process.LookupText(doc, "security.ssl-key", "")}
	c.PD = []string{process.LookupText(doc, "path", "")}
	c.Advertise = process.LookupText(doc, "advertise-address", c.Host)
	process.Set(doc, "advertise-address", c.Advertise)
	if text := process.LookupText(doc, "initialize-sql-file", ""); text != "" && process.Lookup(doc, "security.skip-grant-table") == true {
		return nil, errors.New("initialize-sql-file and skip-grant-table exclude each other")
	}
	labels, _ := process.Lookup(doc, "labels").(map[string]any)
	for key, value := range labels {
		c.Labels[key] = fmt.Sprint(value)
	}
	for path, into := range map[string]*int{"port": &c.Port, "status.status-port": &c.StatusPort} {
		n, err := parseNumber(process.Lookup(doc, path))
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
		if n < 0 || n > 65535 {
			return nil, fmt.Errorf("read %s: %v is no port", path, n)
		}
		*into = int(n)
	}
	slow := process.Lookup(doc, "instance.tidb_slow_log_threshold")
	if old := process.Lookup(given, "log.slow-threshold"); old != nil {
		slow = old
	}
	for what, into := range map[string]struct {
		value any
		unit  time.Duration
		to    *time.Duration
	}{
		"the slow log's threshold":      {slow, time.Millisecond, &c.SlowThreshold},
		"graceful-wait-before-shutdown": {process.Lookup(doc, "graceful-wait-before-shutdown"), time.Second, &c.GracefulWait},
	} {
		n, err := parseNumber(into.value)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", what, err)
		}
		*into.to = time.Duration(n * float64(into.unit))
	}
	return c, nil
}

func parseNumber(value any) (float64, error) {
	switch v := value.(type) {
	case float64:
		return v, nil
	case int64:
		return float64(v), nil
	case uint:
		return float64(v), nil
	case string:
		n, err := strconv.ParseFloat(v, 64)
		if err != nil {
			return 0, fmt.Errorf("%q is no number: %w", v, err)
		}
		return n, nil
	default:
		return 0, fmt.Errorf("%v is no number", value)
	}
}

// tidbVersion is the answer to SELECT tidb_version() and -V.
func tidbVersion(release string) string {
	return strings.Join([]string{
		"Release Version: " + release, "Edition: Community", "Git Commit Hash: " + gitHash, "Git Branch: stand-in",
		"UTC Build Time: None", "GoVersion: None", "Race Enabled: false",
		"Check Table Before Drop: false", "Store: tikv", "",
	}, "\n")
}

// gitHash is 40 digits long as a real one, and recognisably of no commit.
const gitHash = "57a4d1575746000000000000000000000000057a"
