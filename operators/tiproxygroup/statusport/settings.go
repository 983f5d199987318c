package statusport

import (
	"context"
	"fmt"
	"strconv"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/settings"
	"github.com/tidb-groups/tidb-groups/shared/tomlconfig"
)

// File of TiProxy's configuration.
const File = "tiproxy.toml"

// port is where TiProxy answers about itself.
const port = settings.Port(v1alpha1.PortTiProxyAPI)

// path of the configuration in TiProxy's HTTP API.
const path = "/api/admin/config/"

// SettingsTable returns the items of tiproxy.toml that TiProxy takes while it runs, by its
// documentation of the configuration file ("Support hot-reload: yes", v1.3). Left out are
// the items of TLS, and labels, whose names a user chooses.
func SettingsTable() settings.Table {
	return settings.Table{File: File, HidesZero: true, Items: []settings.Item{
		{Key: "log.level", Kind: settings.Text},
		{Key: "log.log-file.filename", Kind: settings.Text},
		{Key: "log.log-file.max-size", Kind: settings.Number},
		{Key: "log.log-file.max-days", Kind: settings.Number},
		{Key: "log.log-file.max-backups", Kind: settings.Number},
		{Key: "proxy.max-connections", Kind: settings.Number},
		{Key: "proxy.conn-buffer-size", Kind: settings.Number},
		{Key: "proxy.proxy-protocol", Kind: settings.Text},
		{Key: "balance.label-name", Kind: settings.Text},
		{Key: "balance.policy", Kind: settings.Text},
		{Key: "security.require-backend-tls", Kind: settings.Bool},
	}}
}

// Settings is what TiProxy's HTTP API says of its configuration.
type Settings struct{}

var _ settings.API = Settings{}

// Show implements settings.API: GET /api/admin/config/ as JSON. Items that are 0, false or
// empty are not in it.
func (Settings) Show(ctx context.Context, host string) (map[string]any, error) {
	return port.Get(ctx, host, path+"?format=json")
}

// Take implements settings.API: PUT /api/admin/config/, a part of the file; what it does
// not name stays as it is.
func (Settings) Take(ctx context.Context, host string, items map[string]string) (string, error) {
	typed := map[string]any{}
	for key, text := range items {
		typed[key] = parseValue(key, text)
	}
	return putConfig(ctx, host, typed)
}

// PutLabels gives a running proxy labels. It keeps its others, and these until it restarts: a
// file that it reads again, or items that it takes, leave alone what they do not name.
func PutLabels(ctx context.Context, host string, labels map[string]string) error {
	table := map[string]any{}
	for key, value := range labels {
		table[key] = value
	}
	refusal, err := putConfig(ctx, host, map[string]any{"labels": table})
	if err == nil && refusal != "" {
		return fmt.Errorf("put to %s: %s", port.URL(ctx, host, path), refusal)
	}
	return err
}

// putConfig has a running proxy take a part of the file, and returns what it answers if it refuses.
func putConfig(ctx context.Context, host string, part map[string]any) (refusal string, err error) {
	body, err := tomlconfig.Render(tomlconfig.Merge(nil, part))
	if err != nil {
		return "", fmt.Errorf("write a part of the file as TOML: %w", err)
	}
	return port.Put(ctx, host, path, "application/toml", body)
}

// parseValue gives a text the type that its item has in the file. What is no value of the kind
// stays a text: TiProxy will say what it thinks of it.
func parseValue(key, text string) any {
	item, _ := SettingsTable().Item(key)
	switch item.Kind {
	case settings.Number:
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return n
		}
	case settings.Bool:
		if b, err := strconv.ParseBool(text); err == nil {
			return b
		}
	case settings.Fraction, settings.Text, settings.LogLevel, settings.Size, settings.Duration:
	}
	return text
}
