package tiflash

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/tidb-groups/tidb-groups/e2e/standin/process"
	"github.com/tidb-groups/tidb-groups/e2e/standin/tikv"
)

// Config is what a TiFlash needs to know.
type Config struct {
	// Proxy is the part that is a TiKV: addresses, PD, data directory.
	Proxy *tikv.Config
	// ServiceAddr is listened at, host:port. TiDB dials the proxy's engine-addr, and this without one.
	ServiceAddr, ListenHost string
	MetricsPort             int
	DataDirs                []string // the first one holds the store's identity
	TmpPath                 string
	LogLevel, LogFile       string
	// Files of TLS for its own ports; those of the proxy are in Proxy.
	Files process.Files
}

// Keys returns the keys that tiflash.toml may have.
func Keys() process.Keys {
	return process.ParseKeys(`
.: path path_realtime_mode tmp_path listen_host tcp_port tcp_port_secure http_port https_port interserver_http_port mark_cache_size minmax_index_cache_size delta_index_cache_size vector_index_cache_size vector_cache_entities local_index_cache_size display_name default_profile users_config uncompressed_cache_size max_connections keep_alive_timeout timezone umask core_dump default_database delta_column_cache_size
application: runAsDaemon
flash: tidb_status_addr service_addr overlap_threshold compact_log_min_gap compact_log_min_rows compact_log_min_bytes compact_log_min_period disaggregated_mode use_autoscaler use_autoscaler_without_s3 graceful_wait_shutdown_timeout use_columnar log_path region_table
flash.flash_cluster: cluster_manager_path log master_ttl refresh_interval update_rule_interval
flash.proxy: addr advertise-addr status-addr advertise-status-addr engine-addr data-dir config log-file log-level
logger: level log errorlog size count console count_rotate
raft: pd_addr kvstore_path storage_engine storage_engine_lazily ignore_databases disable_bg_flush
raft.snapshot: method
status: metrics_port metrics_prefix metrics_addr metrics_interval
profiles: readonly
profiles.default: *
profiles.readonly: *
quotas: *
users: *
security: ca_path cert_path key_path cert_allowed_cn redact_info_log redact-info-log spilled_file_encryption_method tidb_cert_allowed_cn
storage: format_version bg_task_io_rate_limit lazily_init_store api_version api-version
storage.main: dir capacity
storage.latest: dir capacity
storage.raft: dir
storage.io_rate_limit: max_bytes_per_sec max_read_bytes_per_sec max_write_bytes_per_sec foreground_write_weight background_write_weight foreground_read_weight background_read_weight auto_tune_sec min_bytes_per_sec emergency_pct high_pct medium_pct tune_base
storage.s3: *
storage.remote: *
mark_cache: *
`)
}

// ProxyKeys returns the keys that the proxy's file may have: TiKV's and a few
// of its own.
func ProxyKeys() process.Keys {
	return tikv.Keys().Merge(process.ParseKeys(`
.: readonly
server: engine-addr engine-store-version engine-store-git-hash
raftstore: snap-handle-pool-size store-batch-retry-recv-timeout apply-low-priority-pool-size
proxy: *
engine-store: *
`))
}

// ParseArgs reads "server --config-file=F [-- --key=value …]" and the files.
// What comes after the double dash overrides tiflash.toml and is checked like
// it. Anything unknown is an error.
func ParseArgs(args []string, getenv func(string) string, out io.Writer) (*Config, error) {
	release := getenv(tikv.VersionEnv)
	if release == "" {
		release = tikv.DefaultVersion
	}
	if len(args) > 0 && (args[0] == "version" || args[0] == "--version") {
		_, err := fmt.Fprintf(out, "stand-in for TiFlash\nRelease Version: %s\n", release)
		return nil, errors.Join(process.ErrHelp, err)
	}
	if len(args) == 0 || args[0] != "server" {
		return nil, errors.New("the first argument has to be: server")
	}
	file, overrides, err := splitArguments(args[1:])
	if err != nil {
		return nil, err
	}
	doc, err := process.ReadTOML(file, Keys())
	if err != nil {
		return nil, err
	}
	for _, pair := range overrides {
		process.Set(doc, pair[0], pair[1])
	}
	if bad := Keys().Unknown(doc); len(bad) > 0 {
		return nil, fmt.Errorf("unknown keys on the command line: %s", strings.Join(bad, ", "))
	}
	proxy, err := process.ReadTOML(process.LookupText(doc, "flash.proxy.config", ""), ProxyKeys())
	if err != nil {
		return nil, err
	}
	return mergeConfig(doc, proxy, release, getenv)
}

func splitArguments(args []string) (file string, overrides [][2]string, err error) {
	for i := 0; i < len(args); i++ {
		arg := args[i]
		name, value, hasValue := strings.Cut(arg, "=")
		switch {
		case arg == "--":
			for _, over := range args[i+1:] {
				key, value, ok := strings.Cut(strings.TrimPrefix(over, "--"), "=")
				if !ok || !strings.HasPrefix(over, "--") {
					return "", nil, fmt.Errorf("override %q is not --key=value", over)
				}
				overrides = append(overrides, [2]string{key, value})
			}
			i = len(args)
		case (name == "--config-file" || name == "--config" || name == "-C") && hasValue:
			file = value
		case (arg == "--config-file" || arg == "--config" || arg == "-C") && i+1 < len(args):
			i++
			file = args[i]
		default:
			return "", nil, fmt.Errorf("unknown argument %q", arg)
		}
	}
	if file == "" {
		return "", nil, errors.New("--config-file is missing")
	}
	return file, overrides, nil
}

// mergeConfig makes the Config of both documents; what flash.proxy says goes over
// the proxy's file.
func mergeConfig(doc, proxy map[string]any, release string, getenv func(string) string) (*Config, error) {
	c := &Config{
		ListenHost: process.LookupText(doc, "listen_host", "0.0.0.0"),
		TmpPath:    process.LookupText(doc, "tmp_path", ""),
		LogLevel:   process.LookupText(doc, "logger.level", "info"), LogFile: process.LookupText(doc, "logger.log", ""),
		MetricsPort: 8234,
	}
	if process.Lookup(proxy, "server.labels.engine") != nil {
		return nil, errors.New("the label engine is TiFlash's own and can't be configured")
	}
	var err error
	if c.Files, err = process.FilesOf(doc, "security.ca_path", "security.cert_path", "security.key_path"); err != nil {
		return nil, err
	}
	for _, key := range []string{"storage.main.dir", "storage.latest.dir", "path"} {
		dirs, err := parseList(process.Lookup(doc, key))
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", key, err)
		}
		if key == "path" && len(c.DataDirs) > 0 {
			break // storage.main.dir wins over path, as in the real one
		}
		capacity := strings.TrimSuffix(key, "dir") + "capacity"
		if list, _ := process.Lookup(doc, capacity).([]any); len(list) > 0 && len(dirs) > 0 && len(list) != len(dirs) {
			return nil, fmt.Errorf("%s has another length than %s", capacity, key)
		}
		c.DataDirs = append(c.DataDirs, dirs...)
	}
	if len(c.DataDirs) == 0 {
		return nil, errors.New("neither storage.main.dir nor path is set")
	}
	process.Set(proxy, "server.addr", process.LookupText(doc, "flash.proxy.addr", "127.0.0.1:20170"))
	process.Set(proxy, "server.status-addr", process.LookupText(doc, "flash.proxy.status-addr", "127.0.0.1:20292"))
	process.Set(proxy, "storage.data-dir", process.LookupText(doc, "flash.proxy.data-dir", filepath.Join(c.DataDirs[0], "flash")))
	for from, to := range map[string]string{
		"flash.proxy.advertise-addr": "server.advertise-addr", "flash.proxy.advertise-status-addr": "server.advertise-status-addr",
	} {
		if text := process.LookupText(doc, from, ""); text != "" {
			process.Set(proxy, to, text)
		}
	}
	process.Set(proxy, "server.labels.engine", "tiflash")
	pd := process.LookupText(doc, "raft.pd_addr", "")
	if pd == "" {
		return nil, errors.New("raft.pd_addr is not set")
	}
	process.Set(proxy, "pd.endpoints", []any{pd})
	if c.Proxy, err = tikv.FromDocument(proxy); err != nil {
		return nil, err
	}
	c.Proxy.Version = release
	if text := getenv(tikv.HeartbeatEnv); text != "" {
		if c.Proxy.Heartbeat, err = time.ParseDuration(text); err != nil {
			return nil, fmt.Errorf("read %s: %w", tikv.HeartbeatEnv, err)
		}
	}
	engine := process.LookupText(proxy, "server.engine-addr", process.LookupText(doc, "flash.proxy.engine-addr", ""))
	c.ServiceAddr = process.LookupText(doc, "flash.service_addr", engine)
	if engine == "" {
		engine = c.ServiceAddr
	}
	if _, _, ok := strings.Cut(c.ServiceAddr, ":"); !ok {
		return nil, fmt.Errorf("flash.service_addr %q is not host:port", c.ServiceAddr)
	}
	process.Set(c.Proxy.Document, "server.engine-addr", engine)
	if c.MetricsPort, err = parsePort(process.Lookup(doc, "status.metrics_port"), c.MetricsPort); err != nil {
		return nil, fmt.Errorf("read status.metrics_port: %w", err)
	}
	return c, nil
}

// parseList reads a list of text, or text with commas.
func parseList(value any) ([]string, error) {
	var out []string
	switch v := value.(type) {
	case nil:
	case string:
		for one := range strings.SplitSeq(strings.Trim(v, "[]"), ",") {
			if one = strings.Trim(strings.TrimSpace(one), `"'`); one != "" {
				out = append(out, one)
			}
		}
	case []any:
		for _, one := range v {
			text, ok := one.(string)
			if !ok {
				return nil, fmt.Errorf("%v is not text", one)
			}
			out = append(out, text)
		}
	default:
		return nil, fmt.Errorf("%v is no list of text", value)
	}
	return out, nil
}

func parsePort(value any, fallback int) (int, error) {
	switch v := value.(type) {
	case nil:
		return fallback, nil
	case int64:
		return int(v), nil
	case string:
		n, err := strconv.Atoi(v)
		if err != nil {
			return 0, fmt.Errorf("port %q: %w", v, err)
		}
		return n, nil
	default:
		return 0, fmt.Errorf("port %v is no number", value)
	}
}

// makeDirs makes every directory that the files name.
func (c *Config) makeDirs() error {
	dirs := c.DataDirs
	if c.TmpPath != "" {
		dirs = append(dirs[:len(dirs):len(dirs)], c.TmpPath)
	}
	for _, dir := range dirs {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("make data directory: %w", err)
		}
	}
	return nil
}
