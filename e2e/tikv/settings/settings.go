// Package settings reads tikv-server's command line and configuration file, and
// answers for the configuration on the status port.
package settings

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/tidb-groups/tidb-groups/e2e/tikv/raftstore"
	"github.com/tidb-groups/tidb-groups/e2e/tikv/security"
)

// ErrDone says that there is nothing left to run: a version or a check was asked for.
var ErrDone = errors.New("nothing to run")

// Settings is what a store needs to know. Addresses are host:port.
type Settings struct {
	Addr, AdvertiseAddr             string
	StatusAddr, AdvertiseStatusAddr string
	DataDir                         string
	PD                              []string
	Labels                          map[string]string
	Capacity                        uint64 // bytes; 0 means that of the file system
	StoreHeartbeat                  time.Duration
	Raft                            raftstore.Config
	LogLevel, LogFile               string
	// Security has the files of TLS.
	Security security.Files
	// Online is the configuration as the status port shows and changes it.
	Online *Online
}

// Parse reads the command line and the file that it names. Anything that it does not
// know is an error. Help and version, and the outcome of a check, go to out.
func Parse(args []string, version string, out io.Writer) (*Settings, error) {
	fs := pflag.NewFlagSet("tikv-server", pflag.ContinueOnError)
	fs.SetOutput(out)
	fs.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "pd" || name == "pd-endpoint" {
			name = "pd-endpoints"
		}
		return pflag.NormalizedName(name)
	})
	file := fs.StringP("config", "C", "", "configuration file")
	check := fs.Bool("config-check", false, "check the configuration file and exit")
	tell := fs.BoolP("version", "V", false, "print the version")
	flags := map[string]string{
		"log-level": "log.level", "log-file": "log.file.filename", "addr": "server.addr",
		"advertise-addr": "server.advertise-addr", "status-addr": "server.status-addr",
		"advertise-status-addr": "server.advertise-status-addr", "data-dir": "storage.data-dir", "capacity": "raftstore.capacity",
	}
	short := map[string]string{"log-level": "L", "log-file": "f", "addr": "A", "data-dir": "s"}
	for _, name := range slices.Sorted(maps.Keys(flags)) {
		fs.StringP(name, short[name], "", "as "+flags[name]+" in the configuration file")
	}
	endpoints := fs.StringSlice("pd-endpoints", nil, "endpoints of PD")
	labels := fs.StringSlice("labels", nil, "labels of the store, key=value")
	if err := fs.Parse(args); errors.Is(err, pflag.ErrHelp) {
		return nil, ErrDone
	} else if err != nil {
		return nil, fmt.Errorf("parse the command line: %w", err)
	}
	if fs.NArg() > 0 {
		return nil, fmt.Errorf("parse the command line: unexpected argument %q", fs.Arg(0))
	}
	if *tell {
		_, err := fmt.Fprintf(out, "a test double of TiKV\nRelease Version:   %s\n", version)
		return nil, errors.Join(ErrDone, err)
	}
	doc, err := readTOML(*file)
	if err != nil {
		return nil, err
	}
	for name, key := range flags {
		if fs.Changed(name) {
			setKey(doc, key, fs.Lookup(name).Value.String())
		}
	}
	if len(*endpoints) > 0 {
		list := make([]any, len(*endpoints))
		for i, e := range *endpoints {
			list[i] = strings.TrimSpace(e)
		}
		setKey(doc, "pd.endpoints", list)
	}
	for _, pair := range *labels {
		key, value, ok := strings.Cut(pair, "=")
		if !ok || key == "" {
			return nil, fmt.Errorf("parse the command line: label %q is not key=value", pair)
		}
		setKey(doc, "server.labels."+key, value)
	}
	s, err := fromDocument(doc)
	if err == nil && *check {
		_, err = fmt.Fprintln(out, "config check successful")
		return nil, errors.Join(ErrDone, err)
	}
	return s, err
}

// defaults are TiKV's own, but for Raft's: a leader that is gone is replaced in 2 to
// 4 s, not in 10 to 20, and regions are small. PD hears of regions more often.
var defaults = map[string]any{
	"log.level": "info", "server.addr": "127.0.0.1:20160", "server.status-addr": "127.0.0.1:20180", "storage.data-dir": "./",
	"raftstore.capacity": "0KiB", "raftstore.pd-store-heartbeat-tick-interval": "10s", "raftstore.pd-heartbeat-tick-interval": "10s",
	"raftstore.raft-base-tick-interval": "200ms", "raftstore.raft-election-timeout-ticks": int64(10), "raftstore.raft-heartbeat-ticks": int64(2),
	"raftstore.max-peer-down-duration": "10m", "raftstore.max-leader-missing-duration": "1m", "raftstore.raft-log-gc-count-limit": int64(2048),
	"raftstore.split-region-check-tick-interval": "10s", "coprocessor.region-split-size": "32MiB",
	"pd.endpoints": []any{"127.0.0.1:2379"},
}

func fromDocument(doc map[string]any) (*Settings, error) {
	for key, value := range defaults {
		if _, there := findKey(doc, key); !there {
			setKey(doc, key, value)
		}
	}
	for key, from := range map[string]string{"server.advertise-addr": "server.addr", "server.advertise-status-addr": "server.status-addr"} {
		if text, _ := findKey(doc, key); text == nil || text == "" {
			value, _ := findKey(doc, from)
			setKey(doc, key, value)
		}
	}
	r := reader{doc: doc}
	s := &Settings{
		Addr: r.text("server.addr"), AdvertiseAddr: r.text("server.advertise-addr"),
		StatusAddr: r.text("server.status-addr"), AdvertiseStatusAddr: r.text("server.advertise-status-addr"),
		LogLevel: r.text("log.level"), Labels: map[string]string{}, Capacity: r.size("raftstore.capacity"),
		StoreHeartbeat: r.duration("raftstore.pd-store-heartbeat-tick-interval"),
		Raft: raftstore.Config{
			Tick:          r.duration("raftstore.raft-base-tick-interval"),
			ElectionTicks: r.count("raftstore.raft-election-timeout-ticks"), HeartbeatTicks: r.count("raftstore.raft-heartbeat-ticks"),
			RegionHeartbeat: r.duration("raftstore.pd-heartbeat-tick-interval"),
			MaxDown:         r.duration("raftstore.max-peer-down-duration"), MaxLeaderMissing: r.duration("raftstore.max-leader-missing-duration"),
			SplitSize: int(r.size("coprocessor.region-split-size")), SplitCheck: r.duration("raftstore.split-region-check-tick-interval"),
			KeepEntries: r.count("raftstore.raft-log-gc-count-limit"),
		},
	}
	if _, there := findKey(doc, "log.file.filename"); there {
		s.LogFile = r.text("log.file.filename")
	}
	if r.err != nil {
		return nil, r.err
	}
	for _, host := range []string{"0.0.0.0:", "[::]:"} {
		if strings.HasPrefix(s.AdvertiseAddr, host) {
			return nil, fmt.Errorf("invalid advertise-addr %q: others can't reach it", s.AdvertiseAddr)
		}
	}
	if s.Raft.ElectionTicks <= s.Raft.HeartbeatTicks {
		return nil, fmt.Errorf("raftstore.raft-election-timeout-ticks is %d: it must be more than raft-heartbeat-ticks, %d",
			s.Raft.ElectionTicks, s.Raft.HeartbeatTicks)
	}
	value, _ := findKey(doc, "server.labels")
	labels, _ := value.(map[string]any)
	for key, value := range labels {
		text, ok := value.(string)
		if !ok {
			return nil, fmt.Errorf("label %q is not text", key)
		}
		s.Labels[key] = text
	}
	value, _ = findKey(doc, "pd.endpoints")
	endpoints, ok := value.([]any)
	if !ok || len(endpoints) == 0 {
		return nil, errors.New("pd.endpoints is not a list of endpoints")
	}
	for _, e := range endpoints {
		s.PD = append(s.PD, fmt.Sprint(e))
	}
	for key, into := range map[string]*string{"security.ca-path": &s.Security.CA, "security.cert-path": &s.Security.Cert, "security.key-path": &s.Security.Key} {
		if _, there := findKey(doc, key); there {
			*into = r.text(key)
		}
	}
	if err := errors.Join(r.err, s.Security.Check()); err != nil {
		return nil, err
	}
	var err error
	if s.DataDir, err = filepath.Abs(r.text("storage.data-dir")); err != nil {
		return nil, fmt.Errorf("read storage.data-dir: %w", err)
	}
	s.Online, err = newOnline(doc)
	return s, err
}

// reader reads values and keeps the first thing that is wrong.
type reader struct {
	doc map[string]any
	err error
}

func (r *reader) fail(key string, err error) {
	if r.err == nil {
		r.err = fmt.Errorf("read %s: %w", key, err)
	}
}

func (r *reader) text(key string) string {
	value, _ := findKey(r.doc, key)
	text, ok := value.(string)
	if !ok {
		r.fail(key, fmt.Errorf("%v is not text", value))
	}
	return text
}

func (r *reader) duration(key string) time.Duration {
	d, err := parseDuration(r.text(key))
	if err != nil {
		r.fail(key, err)
	} else if d < time.Millisecond {
		r.fail(key, fmt.Errorf("%s is too short", d))
	}
	return d
}

// parseDuration reads what TiKV writes: Go's form, and days.
func parseDuration(text string) (time.Duration, error) {
	total := time.Duration(0)
	if days, rest, ok := strings.Cut(text, "d"); ok {
		n, err := strconv.Atoi(days)
		if err != nil {
			return 0, fmt.Errorf("invalid duration %q", text)
		}
		total, text = time.Duration(n)*24*time.Hour, rest
		if text == "" {
			return total, nil
		}
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("invalid duration %q", text)
	}
	return total + d, nil
}

func (r *reader) count(key string) int {
	value, _ := findKey(r.doc, key)
	n, ok := value.(int64)
	if !ok || n < 1 {
		r.fail(key, fmt.Errorf("%v is not a number above 0", value))
	}
	return int(n)
}

func (r *reader) size(key string) uint64 {
	value, _ := findKey(r.doc, key)
	n, err := bytesOf(fmt.Sprint(value))
	if err != nil {
		r.fail(key, err)
	}
	return n
}

// bytesOf reads a size as TiKV writes it; all its units are powers of 1024.
func bytesOf(text string) (uint64, error) {
	number := strings.TrimRight(text, "KMGTPBib ")
	n, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return 0, fmt.Errorf("invalid size %q", text)
	}
	unit := strings.TrimSpace(strings.TrimPrefix(text, number))
	power := 0
	if unit != "" {
		rest := strings.TrimPrefix(strings.TrimSuffix(unit[1:], "B"), "i")
		if power = strings.Index("BKMGTP", unit[:1]); power < 0 || rest != "" {
			return 0, fmt.Errorf("size %q has an unknown unit", text)
		}
	}
	for range power {
		n *= 1024
	}
	return uint64(n), nil
}
