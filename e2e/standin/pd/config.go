package pd

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"

	"github.com/tidb-groups/tidb-groups/e2e/model"
	"github.com/tidb-groups/tidb-groups/e2e/model/pdapi"
)

// Config is what a PD is started with: the flags and the file of the real one,
// and a few settings that only tests use.
type Config struct {
	Name                string
	DataDir             string
	ClientURLs          string
	PeerURLs            string
	AdvertiseClientURLs string
	AdvertisePeerURLs   string
	InitialCluster      string
	InitialClusterState string
	InitialClusterToken string
	Join                string
	ForceNewCluster     bool

	// LeaderLease is how long a leader that renews nothing goes on being the leader.
	LeaderLease      time.Duration
	TickInterval     time.Duration
	ElectionInterval time.Duration

	CACert, Cert, Key string
	LogLevel          string
	LogFile           string
	MetricsAddr       string

	// Sections are the tables of the configuration file.
	Sections map[string]any

	// Build is what the server says it is.
	Build pdapi.Build
	// Clock is where the stores' half takes the time from; nil means the wall clock.
	Clock model.Clock
	// Timing is how fast stores change; the zero value means the model's default.
	Timing model.Timing
	// Regions is how many regions there are; 0 means the model's default.
	Regions int
	// PriorityInterval is how often leader priorities are looked at.
	PriorityInterval time.Duration
}

// DefaultConfig is what the real server does without flags and file, but for
// etcd's own quicker elections.
func DefaultConfig() Config {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	return Config{
		Name: "pd-" + host, ClientURLs: "http://127.0.0.1:2379", PeerURLs: "http://127.0.0.1:2380",
		InitialClusterState: "new", InitialClusterToken: "pd-cluster",
		LeaderLease: 3 * time.Second, TickInterval: 100 * time.Millisecond, ElectionInterval: time.Second,
		LogLevel: "info", PriorityInterval: time.Second, Build: pdapi.DefaultBuild(),
	}
}

// memberKeys are keys of the file that PD's configuration API does not show or
// shows as a member's own.
func memberKeys() map[string]any {
	return map[string]any{
		"name": "", "data-dir": "", "client-urls": "", "peer-urls": "", "advertise-client-urls": "",
		"advertise-peer-urls": "", "initial-cluster": "", "initial-cluster-state": "", "initial-cluster-token": "",
		"join": "", "force-new-cluster": false, "auto-compaction-retention": "", "leader-lease": float64(3),
		"log-file": "", "log-level": "", "disable-strict-reconfig-check": false,
	}
}

// free are the tables whose keys the user makes up.
var free = []string{"labels", "label-property", "schedule.store-limit", "schedule.schedulers-v2", "schedule.schedulers"}

// LoadFile reads a configuration file. A key that PD does not know is an error.
func (c *Config) LoadFile(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read configuration: %w", err)
	}
	tables := map[string]any{}
	if err := toml.Unmarshal(data, &tables); err != nil {
		return fmt.Errorf("parse configuration %s: %w", path, err)
	}
	known, err := model.ConfigKeys()
	if err != nil {
		return err
	}
	maps.Copy(known, memberKeys())
	if unknown := unknownKeys("", tables, known); len(unknown) > 0 {
		return fmt.Errorf("config contains undefined item: %s", strings.Join(unknown, ", "))
	}
	c.Sections = tables
	return c.apply(tables)
}

func unknownKeys(prefix string, have, known map[string]any) []string {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(have)) {
		path := prefix + key
		want, ok := known[key]
		if !ok {
			if !slices.Contains(free, path) {
				out = append(out, path)
			}
			continue
		}
		table, isTable := have[key].(map[string]any)
		sub, wantsTable := want.(map[string]any)
		switch {
		case slices.Contains(free, path):
		case isTable && wantsTable:
			out = append(out, unknownKeys(path+".", table, sub)...)
		case isTable:
			out = append(out, path)
		default:
		}
	}
	return out
}

// apply takes over what the server itself needs from the file.
func (c *Config) apply(t map[string]any) error {
	for key, into := range map[string]*string{
		"name": &c.Name, "data-dir": &c.DataDir, "client-urls": &c.ClientURLs, "peer-urls": &c.PeerURLs,
		"advertise-client-urls": &c.AdvertiseClientURLs, "advertise-peer-urls": &c.AdvertisePeerURLs,
		"initial-cluster": &c.InitialCluster, "initial-cluster-state": &c.InitialClusterState,
		"initial-cluster-token": &c.InitialClusterToken, "join": &c.Join,
	} {
		v, ok := t[key]
		if !ok {
			continue
		}
		text, isText := v.(string)
		if !isText {
			return fmt.Errorf("configuration item %s: want a string, have %v", key, v)
		}
		*into = text
	}
	for key, into := range map[string]*time.Duration{
		"tick-interval": &c.TickInterval, "election-interval": &c.ElectionInterval,
	} {
		if v, ok := t[key]; ok {
			d, err := time.ParseDuration(fmt.Sprint(v))
			if err != nil {
				return fmt.Errorf("configuration item %s: %w", key, err)
			}
			*into = d
		}
	}
	for _, key := range []string{"lease", "leader-lease"} {
		if v, ok := t[key].(int64); ok {
			c.LeaderLease = time.Duration(v) * time.Second
		}
	}
	if log, ok := t["log"].(map[string]any); ok {
		if level, ok := log["level"].(string); ok {
			c.LogLevel = level
		}
		if file, ok := log["file"].(map[string]any); ok {
			if name, ok := file["filename"].(string); ok {
				c.LogFile = name
			}
		}
	}
	if sec, ok := t["security"].(map[string]any); ok {
		for key, into := range map[string]*string{"cacert-path": &c.CACert, "cert-path": &c.Cert, "key-path": &c.Key} {
			if v, ok := sec[key].(string); ok {
				*into = v
			}
		}
	}
	return nil
}

// Complete fills in what follows from other settings and checks the rest.
func (c *Config) Complete() error {
	if c.Name == "" {
		return errors.New("name is empty")
	}
	if c.DataDir == "" {
		c.DataDir = "default." + c.Name
	}
	if c.AdvertiseClientURLs == "" {
		c.AdvertiseClientURLs = c.ClientURLs
	}
	if c.AdvertisePeerURLs == "" {
		c.AdvertisePeerURLs = c.PeerURLs
	}
	if c.InitialCluster != "" && c.Join != "" {
		return errors.New("-initial-cluster and -join can not be provided at the same time")
	}
	// One URL: a list of them is none, as the real one finds.
	if _, err := url.Parse(c.Join); err != nil {
		return fmt.Errorf("failed to parse join addr:%s, err:%w", c.Join, err)
	}
	if c.InitialCluster == "" && c.Join == "" {
		var parts []string
		for _, u := range strings.Split(c.AdvertisePeerURLs, ",") {
			parts = append(parts, c.Name+"="+u)
		}
		c.InitialCluster = strings.Join(parts, ",")
	}
	// What is wrong in a section must be known before anything starts.
	_, err := model.NewCluster(model.Options{Config: c.Sections})
	return err
}

// local is the member's own part of what the configuration API shows.
func (c *Config) local() map[string]any {
	return map[string]any{
		"client-urls": c.ClientURLs, "peer-urls": c.PeerURLs, "advertise-client-urls": c.AdvertiseClientURLs,
		"advertise-peer-urls": c.AdvertisePeerURLs, "name": c.Name, "data-dir": c.DataDir,
		"force-new-cluster": c.ForceNewCluster, "initial-cluster": c.InitialCluster,
		"initial-cluster-state": c.InitialClusterState, "initial-cluster-token": c.InitialClusterToken, "join": c.Join,
	}
}
