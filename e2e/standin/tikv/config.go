package tikv

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/tidb-groups/tidb-groups/e2e/standin/process"
)

// DefaultVersion is the release that the stand-ins speak of when not told
// another by VersionEnv.
const DefaultVersion = "v8.5.7"

// Environment variables that no real program knows, for images and tests.
const (
	// VersionEnv is the release that the stand-in claims to be.
	VersionEnv = "STANDIN_VERSION"
	// HeartbeatEnv is the interval of store heartbeats, as Go writes durations.
	HeartbeatEnv = "STANDIN_HEARTBEAT"
)

// Config is what a store needs to know. Addresses are host:port.
type Config struct {
	Addr, AdvertiseAddr             string
	StatusAddr, AdvertiseStatusAddr string
	DataDir                         string
	PD                              []string
	Labels                          map[string]string
	Capacity                        uint64        // bytes; 0 means that of the file system
	Heartbeat                       time.Duration // between store heartbeats
	RegionHeartbeat                 time.Duration // between heartbeats of a region that does not change
	LogLevel, LogFile               string
	// Files of TLS.
	Files   process.Files
	Version string
	// Document is the configuration in effect, as /config shows it.
	Document map[string]any
}

// ParseArgs reads the command line and the configuration file that it names.
// Anything that it does not know is an error. Version and help go to out, with
// process.ErrHelp.
func ParseArgs(args []string, getenv func(string) string, out io.Writer) (*Config, error) {
	fs := pflag.NewFlagSet("tikv-server", pflag.ContinueOnError)
	fs.SetOutput(out)
	fs.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "pd" || name == "pd-endpoint" {
			name = "pd-endpoints"
		}
		return pflag.NormalizedName(name)
	})
	file := fs.StringP("config", "C", "", "configuration file")
	fs.Bool("config-check", false, "check the configuration file and exit")
	version := fs.BoolP("version", "V", false, "print the version")
	fs.StringP("log-level", "L", "", "log level")
	fs.StringP("log-file", "f", "", "log file; empty means the standard error")
	fs.StringP("addr", "A", "", "listening address")
	fs.String("advertise-addr", "", "address told to others")
	fs.String("status-addr", "", "status port")
	fs.String("advertise-status-addr", "", "status port told to others")
	fs.StringP("data-dir", "s", "", "data directory")
	fs.String("capacity", "", "capacity of the store")
	fs.StringArray("pd-endpoints", nil, "endpoints of PD")
	fs.StringArray("labels", nil, "labels of the store, key=value")
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, pflag.ErrHelp) {
			return nil, process.ErrHelp
		}
		return nil, fmt.Errorf("parse the command line: %w", err)
	}
	if fs.NArg() > 0 {
		return nil, fmt.Errorf("parse the command line: unexpected argument %q", fs.Arg(0))
	}
	release := getenv(VersionEnv)
	if release == "" {
		release = DefaultVersion
	}
	if *version {
		_, err := fmt.Fprintf(out, "stand-in for TiKV\nRelease Version:   %s\n", strings.TrimPrefix(release, "v"))
		return nil, errors.Join(process.ErrHelp, err)
	}
	doc, err := process.ReadTOML(*file, Keys())
	if err != nil {
		return nil, err
	}
	for flag, key := range map[string]string{
		"log-level": "log.level", "log-file": "log.file.filename", "addr": "server.addr",
		"advertise-addr": "server.advertise-addr", "status-addr": "server.status-addr",
		"advertise-status-addr": "server.advertise-status-addr", "data-dir": "storage.data-dir", "capacity": "raftstore.capacity",
	} {
		if fs.Changed(flag) {
			process.Set(doc, key, fs.Lookup(flag).Value.String())
		}
	}
	lists, err := fs.GetStringArray("pd-endpoints")
	if err != nil {
		return nil, fmt.Errorf("parse the command line: %w", err)
	}
	if len(lists) > 0 {
		process.Set(doc, "pd.endpoints", anySlice(splitLists(lists)))
	}
	labels, err := fs.GetStringArray("labels")
	if err != nil {
		return nil, fmt.Errorf("parse the command line: %w", err)
	}
	for _, pair := range splitLists(labels) {
		key, value, ok := strings.Cut(pair, "=")
		if !ok || key == "" {
			return nil, fmt.Errorf("parse the command line: label %q is not key=value", pair)
		}
		process.Set(doc, "server.labels."+key, value)
	}
	cfg, err := FromDocument(doc)
	if err != nil {
		return nil, err
	}
	cfg.Version = release
	if text := getenv(HeartbeatEnv); text != "" {
		if cfg.Heartbeat, err = time.ParseDuration(text); err != nil {
			return nil, fmt.Errorf("read %s: %w", HeartbeatEnv, err)
		}
	}
	if check, err := fs.GetBool("config-check"); err == nil && check {
		_, err := fmt.Fprintln(out, "config check successful")
		return nil, errors.Join(process.ErrHelp, err)
	}
	return cfg, nil
}

// FromDocument makes a Config of a document with the keys of TiKV, filling in
// what TiKV's defaults would be.
func FromDocument(doc map[string]any) (*Config, error) {
	full := map[string]any{
		"log": map[string]any{"level": "info"},
		"server": map[string]any{
			"addr": "127.0.0.1:20160", "status-addr": "127.0.0.1:20180", "labels": map[string]any{},
		},
		"storage":   map[string]any{"data-dir": "./"},
		"raftstore": map[string]any{"capacity": "0KiB", "pd-store-heartbeat-tick-interval": "10s", "pd-heartbeat-tick-interval": "60s"},
		"pd":        map[string]any{"endpoints": []any{"127.0.0.1:2379"}},
	}
	process.Overlay(full, doc)
	c := &Config{
		Addr: process.LookupText(full, "server.addr", ""), StatusAddr: process.LookupText(full, "server.status-addr", ""),
		DataDir:  process.LookupText(full, "storage.data-dir", ""),
		LogLevel: process.LookupText(full, "log.level", ""), LogFile: process.LookupText(full, "log.file.filename", ""),
		Labels: map[string]string{}, Version: DefaultVersion, Document: full,
	}
	c.AdvertiseAddr = process.LookupText(full, "server.advertise-addr", c.Addr)
	c.AdvertiseStatusAddr = process.LookupText(full, "server.advertise-status-addr", c.StatusAddr)
	process.Set(full, "server.advertise-addr", c.AdvertiseAddr)
	process.Set(full, "server.advertise-status-addr", c.AdvertiseStatusAddr)
	for _, host := range []string{"0.0.0.0:", "[::]:"} {
		if strings.HasPrefix(c.AdvertiseAddr, host) {
			return nil, fmt.Errorf("invalid advertise-addr %q: others can't reach it", c.AdvertiseAddr)
		}
	}
	labels, _ := process.Lookup(full, "server.labels").(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		value, ok := labels[key].(string)
		if !ok {
			return nil, fmt.Errorf("label %q is not text", key)
		}
		c.Labels[key] = value
	}
	switch e := process.Lookup(full, "pd.endpoints").(type) {
	case []any:
		for _, one := range e {
			c.PD = append(c.PD, fmt.Sprint(one))
		}
	default:
		return nil, errors.New("pd.endpoints is not a list")
	}
	var err error
	if c.Capacity, err = ParseSize(process.Lookup(full, "raftstore.capacity")); err != nil {
		return nil, fmt.Errorf("read raftstore.capacity: %w", err)
	}
	if c.Heartbeat, err = time.ParseDuration(process.LookupText(full, "raftstore.pd-store-heartbeat-tick-interval", "")); err != nil {
		return nil, fmt.Errorf("read raftstore.pd-store-heartbeat-tick-interval: %w", err)
	}
	if c.RegionHeartbeat, err = time.ParseDuration(process.LookupText(full, "raftstore.pd-heartbeat-tick-interval", "")); err != nil {
		return nil, fmt.Errorf("read raftstore.pd-heartbeat-tick-interval: %w", err)
	}
	if c.DataDir, err = filepath.Abs(c.DataDir); err != nil {
		return nil, fmt.Errorf("read storage.data-dir: %w", err)
	}
	c.Files, err = process.FilesOf(full, "security.ca-path", "security.cert-path", "security.key-path")
	return c, err
}

// ParseSize reads a number of bytes as TiKV writes it: a number, or text with a
// unit (B, KB, MB, GB, TB, PB, KiB …), all of them powers of 1024.
func ParseSize(value any) (uint64, error) {
	switch v := value.(type) {
	case nil:
		return 0, nil
	case int64:
		if v < 0 {
			return 0, fmt.Errorf("size %d is negative", v)
		}
		return uint64(v), nil
	case string:
		return parseSizeText(v)
	default:
		return 0, fmt.Errorf("size %v is neither number nor text", value)
	}
}

func parseSizeText(text string) (uint64, error) {
	unit := strings.TrimLeft(text, "0123456789.")
	var n float64
	if _, err := fmt.Sscanf(strings.TrimSuffix(text, unit), "%g", &n); err != nil {
		return 0, fmt.Errorf("size %q: %w", text, err)
	}
	power := strings.Index("BKMGTP", strings.ToUpper(strings.TrimSpace(unit + "B")[:1]))
	rest := strings.TrimPrefix(strings.ToUpper(strings.TrimSpace(unit)), strings.ToUpper("BKMGTP"[max(power, 0):max(power, 0)+1]))
	if power < 0 || (rest != "" && rest != "B" && rest != "IB") {
		return 0, fmt.Errorf("size %q has an unknown unit", text)
	}
	for range power {
		n *= 1024
	}
	return uint64(n), nil
}

func splitLists(lists []string) []string {
	var out []string
	for _, list := range lists {
		for one := range strings.SplitSeq(list, ",") {
			if one = strings.TrimSpace(one); one != "" {
				out = append(out, one)
			}
		}
	}
	return out
}

func anySlice(list []string) []any {
	out := make([]any, len(list))
	for i, s := range list {
		out[i] = s
	}
	return out
}
