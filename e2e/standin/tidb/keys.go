package tidb

import (
	_ "embed"
	"encoding/json"
	"fmt"

	"github.com/tidb-groups/tidb-groups/e2e/standin/process"
)

// defaults are the settings of a TiDB that was told nothing, as its /settings
// answers them; they also are the list of keys that it knows.
//
//go:embed settings.json
var defaults []byte

// Defaults returns a fresh copy of the default settings.
func Defaults() (map[string]any, error) {
	doc := map[string]any{}
	if err := json.Unmarshal(defaults, &doc); err != nil {
		return nil, fmt.Errorf("read default settings: %w", err)
	}
	return doc, nil
}

// Keys returns the keys that the configuration file may have: those of the
// settings, and those that TiDB still reads without showing them.
func Keys() (process.Keys, error) {
	doc, err := Defaults()
	if err != nil {
		return nil, err
	}
	return process.KeysOf(doc).Merge(process.ParseKeys(`
.: enable-dynamic-config enable-streaming lower-case-table-names compatible-kill-query store-limit keyspace-activate mem-quota-query oom-use-tmp-storage
log: enable-slow-log slow-query-file general-log-file disable-timestamp
log.file: filename log-rotate
instance: tidb_enable_slow_log max_connections plugin_audit_log_buffer_size plugin_audit_log_flush_interval tidb_stmt_summary_enable_persistent
security: require-secure-transport enable-sem ssl-cert
performance: query-feedback-limit feedback-probability max-procs mem-profile-interval advertise-address
binlog: enable ignore-error write-timeout binlog-socket strategy
txn-local-latches: enabled capacity
tikv-client: copr-cache
`)), nil
}
