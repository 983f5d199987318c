package ticdc

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"

	"github.com/tidb-groups/tidb-groups/e2e/standin/process"
)

// Config is what a capture is told by flags and by its file.
type Config struct {
	// Addr is listened on, Advertise told to the others.
	Addr, Advertise string
	// PD are the endpoints.
	PD []string
	// LogLevel of the file, or the flag.
	LogLevel string
	TLS      process.Files
}

// configKeys are those of the file, as TiCDC's documentation of its server lists them.
func configKeys() process.Keys {
	return process.ParseKeys(`.: addr advertise-addr log-level log-file data-dir gc-ttl tz cluster-id capture-session-ttl owner-flush-interval processor-flush-interval per-table-memory-quota max-memory-percentage newarch
log: error-output
log.file: max-size max-days max-backups
sorter: sorter-dir cache-size-in-mb max-memory-percentage max-memory-consumption num-concurrent-worker num-workerpool-goroutine chunk-size-limit
security: ca-path cert-path key-path cert-allowed-cn mtls client-user-required client-allowed-user
kv-client: enable-multiplexing worker-concurrent worker-pool-size grpc-stream-concurrent region-scan-limit region-retry-duration
debug: *`)
}

// ParseArgs reads the command line of "cdc server" and the file that it names.
func ParseArgs(args []string, out io.Writer) (*Config, error) {
	if len(args) == 0 || args[0] != "server" {
		return nil, errors.New("the only command is server")
	}
	set := flag.NewFlagSet("cdc server", flag.ContinueOnError)
	set.SetOutput(out)
	c, pd, file := &Config{}, "", ""
	for name, into := range map[string]*string{
		"addr": &c.Addr, "advertise-addr": &c.Advertise, "pd": &pd, "config": &file, "log-level": &c.LogLevel,
		"ca": &c.TLS.CA, "cert": &c.TLS.Cert, "key": &c.TLS.Key,
	} {
		set.StringVar(into, name, "", "as TiCDC's")
	}
	for _, unused := range []string{"data-dir", "log-file", "tz", "gc-ttl", "cluster-id", "cert-allowed-cn"} {
		set.String(unused, "", "as TiCDC's; taken and not used")
	}
	if err := set.Parse(args[1:]); err != nil {
		return nil, fmt.Errorf("read flags: %w", err)
	}
	document, err := process.ReadTOML(file, configKeys())
	if err != nil {
		return nil, err
	}
	if c.LogLevel == "" {
		c.LogLevel = process.LookupText(document, "log-level", "info")
	}
	c.PD = strings.Split(pd, ",")
	if c.Addr == "" || c.Advertise == "" || pd == "" {
		return nil, errors.New("flags --addr, --advertise-addr and --pd are needed")
	}
	return c, nil
}
