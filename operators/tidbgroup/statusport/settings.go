package statusport

import (
	"context"
	"net/url"

	"github.com/tidb-groups/tidb-groups/shared/settings"
)

// File of TiDB's configuration.
const File = "tidb.toml"

const (
	generalLog = "tidb_general_log"
	checkMb4   = "check_mb4_value_in_utf8"
)

// SettingsTable returns the items of tidb.toml that TiDB takes while it runs through POST
// /settings of its status port, from that handler of TiDB v8.5. The others that it
// takes are no items of the file, but variables of the cluster. It does not show
// what it logs.
func SettingsTable() settings.Table {
	return settings.Table{File: File, Items: []settings.Item{
		{Key: "log.level", Name: "log_level", Kind: settings.Text},
		{Key: "instance.tidb_general_log", Name: generalLog, Kind: settings.Bool, Blind: true},
		{Key: "instance.ddl_slow_threshold", Name: "ddl_slow_threshold", Kind: settings.Number, Blind: true, Ignored: "0"},
		{Key: "instance.tidb_check_mb4_value_in_utf8", Name: checkMb4, Kind: settings.Bool},
		{Key: "pessimistic-txn.deadlock-history-capacity", Name: "deadlock_history_capacity", Kind: settings.Number},
		{Key: "pessimistic-txn.deadlock-history-collect-retryable", Name: "deadlock_history_collect_retryable", Kind: settings.Bool},
	}}
}

// Settings is what TiDB's status port says of its configuration.
type Settings struct{}

var _ settings.API = Settings{}

// Show implements settings.API: GET /settings.
func (Settings) Show(ctx context.Context, host string) (map[string]any, error) {
	return port.Get(ctx, host, "/settings")
}

// Take implements settings.API: POST /settings, a form. TiDB takes the items one
// after the other, up to the first that it refuses.
func (Settings) Take(ctx context.Context, host string, items map[string]string) (string, error) {
	form := url.Values{}
	for name, text := range items {
		if name == generalLog || name == checkMb4 {
			text = map[string]string{"true": "1", "false": "0"}[text]
		}
		form.Set(name, text)
	}
	return port.Post(ctx, host, "/settings", "application/x-www-form-urlencoded", form.Encode())
}
