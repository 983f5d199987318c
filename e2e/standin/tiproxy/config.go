package tiproxy

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"

	"github.com/tidb-groups/tidb-groups/e2e/standin/process"
)

// Config is the part of tiproxy.toml that this stand-in reads.
type Config struct {
	Proxy struct {
		Addr  string `toml:"addr"`
		PD    string `toml:"pd-addrs"`
		Close int    `toml:"graceful-close-conn-timeout"`
	} `toml:"proxy"`
	API struct {
		Addr string `toml:"addr"`
	} `toml:"api"`
	Security struct {
		API     Section `toml:"server-http-tls"`
		Cluster Section `toml:"cluster-tls"`
		Clients Section `toml:"server-tls"`
		Servers Section `toml:"sql-tls"`
	} `toml:"security"`
	// Document is the whole file.
	Document map[string]any `toml:"-"`
}

// Section is TLS of one kind of connections.
type Section struct {
	CA   string `toml:"ca"`
	Cert string `toml:"cert"`
	Key  string `toml:"key"`
}

func (s Section) files() process.Files { return process.Files{CA: s.CA, Cert: s.Cert, Key: s.Key} }

// closing is for how long transactions may end when the proxy stops.
func (c *Config) closing() time.Duration { return time.Duration(c.Proxy.Close) * time.Second }

// ParseArgs reads TiProxy's command line and the file that it names.
func ParseArgs(args []string, out io.Writer) (*Config, error) {
	set := flag.NewFlagSet("tiproxy", flag.ContinueOnError)
	set.SetOutput(out)
	file := set.String("config", "", "configuration file")
	set.String("advertise-addr", "", "host that others know the proxy by") // which this one registers nowhere
	if err := set.Parse(args); err != nil {
		return nil, fmt.Errorf("read flags: %w", err)
	}
	text, err := os.ReadFile(*file)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	c := &Config{}
	c.Proxy.Close = 15
	if err := errors.Join(toml.Unmarshal(text, c), toml.Unmarshal(text, &c.Document)); err != nil {
		return nil, fmt.Errorf("read %s: %w", *file, err)
	}
	if c.Proxy.Addr == "" || c.API.Addr == "" || strings.TrimSpace(c.Proxy.PD) == "" {
		return nil, fmt.Errorf("%s names no proxy.addr, api.addr or proxy.pd-addrs", *file)
	}
	return c, nil
}
