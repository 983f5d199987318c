package statusport

import (
	"slices"
	"strings"

	"github.com/tidb-groups/tidb-groups/shared/settings"
)

// File of TiKV's configuration.
const File = "tikv.toml"

// columnFamilies are the column families of the key-value engine.
func columnFamilies() []string { return []string{"defaultcf", "writecf", "lockcf", "raftcf"} }

// SettingsTable returns the items of tikv.toml that TiKV takes while it runs, from the list
// in TiDB's documents ("Modify Configuration Dynamically", v8.5). Left out are:
// store-io-pool-size, which must not be changed from or to 0, as the periodic works, and
// consistency-check-interval, which is 0 by default; what TiKV shows and does not use:
// import.num-threads before v8.1.2 (tikv/tikv#14934), server.grpc-memory-pool-quota in v7.5
// and later (tikv/tikv#19104); the items of Titan and of raftdb;
// block-cache-size of the column families, which TiKV refuses where the cache is shared,
// as it is; raftstore.region-compact-*, in the place of which v7.5.7 and v8.5.4 have
// gc.auto-compaction; and what v8.5 does not know any more.
func SettingsTable() settings.Table {
	items := slices.Concat(
		listItems("log", settings.LogLevel, "level"),
		listItems("raftstore", settings.Number, `raft-max-inflight-msgs raft-log-gc-threshold raft-log-gc-count-limit messages-per-tick
			local-read-batch-size apply-pool-size store-pool-size apply-max-batch-size store-max-batch-size`),
		listItems("raftstore", settings.Fraction, "periodic-full-compact-start-max-cpu"),
		listItems("raftstore", settings.Size, `raft-log-gc-size-limit raft-max-size-per-msg raft-entry-max-size region-split-check-diff
			lock-cf-compact-bytes-threshold apply-yield-write-size`),
		listItems("raftstore", settings.Duration, `raft-entry-cache-life-time snap-gc-timeout max-peer-down-duration max-leader-missing-duration
			abnormal-leader-missing-duration raft-store-max-leader-lease`),
		listPeriods("raftstore", `raft-log-gc-tick-interval split-region-check-tick-interval
			pd-heartbeat-tick-interval pd-store-heartbeat-tick-interval snap-mgr-gc-tick-interval lock-cf-compact-interval
			peer-stale-state-check-interval merge-check-tick-interval cleanup-import-sst-interval`),
		listItems("readpool.unified", settings.Number, "max-thread-count max-tasks-per-worker"),
		listItems("readpool.unified", settings.Bool, "auto-adjust-pool-size"),
		listItems("coprocessor", settings.Bool, "split-region-on-table"),
		listItems("coprocessor", settings.Number, "batch-split-limit region-max-keys region-split-keys"),
		listItems("coprocessor", settings.Size, "region-max-size region-split-size"),
		listItems("pessimistic-txn", settings.Duration, "wait-for-lock-timeout wake-up-delay-duration"),
		listItems("pessimistic-txn", settings.Bool, "pipelined in-memory"),
		listItems("quota", settings.Number, "foreground-cpu-time background-cpu-time"),
		listItems("quota", settings.Size, "foreground-write-bandwidth foreground-read-bandwidth background-write-bandwidth background-read-bandwidth"),
		listItems("quota", settings.Bool, "enable-auto-tune"),
		listItems("quota", settings.Duration, "max-delay-duration"),
		listItems("gc", settings.Number, "batch-keys"),
		listItems("gc", settings.Fraction, "ratio-threshold"),
		listItems("gc", settings.Size, "max-write-bytes-per-sec"),
		listItems("gc", settings.Bool, "enable-compaction-filter compaction-filter-skip-version-check"),
		listItems("rocksdb", settings.Size, "max-total-wal-size compaction-readahead-size bytes-per-sync wal-bytes-per-sync writable-file-max-buffer-size"),
		listItems("rocksdb", settings.Number, "max-background-jobs max-background-flushes max-open-files"),
		listItems("server", settings.Size, "snap-io-max-bytes-per-sec"),
		listItems("server", settings.Number, "max-grpc-send-msg-len concurrent-send-snap-limit concurrent-recv-snap-limit raft-msg-max-batch-size"),
		listItems("server", settings.Bool, "simplify-metrics"),
		listItems("storage", settings.Number, "scheduler-worker-pool-size"),
		listItems("storage.block-cache", settings.Size, "capacity"),
		listItems("backup", settings.Number, "num-threads"),
		listItems("split", settings.Number, "qps-threshold byte-threshold"),
		listItems("split", settings.Fraction, "region-cpu-overload-threshold-ratio split-balance-score split-contained-score"),
		listItems("cdc", settings.Duration, "min-ts-interval"),
		listItems("cdc", settings.Size, "sink-memory-quota incremental-scan-speed-limit"),
		listItems("cdc", settings.Number, "incremental-scan-concurrency"),
	)
	for _, family := range columnFamilies() {
		items = append(items, listItems("rocksdb."+family, settings.Size, `write-buffer-size max-bytes-for-level-base target-file-size-base
			max-compaction-bytes soft-pending-compaction-bytes-limit hard-pending-compaction-bytes-limit`)...)
		items = append(items, listItems("rocksdb."+family, settings.Number, `max-write-buffer-number level0-file-num-compaction-trigger
			level0-slowdown-writes-trigger level0-stop-writes-trigger max-bytes-for-level-multiplier`)...)
		items = append(items, listItems("rocksdb."+family, settings.Bool, "disable-auto-compactions")...)
	}
	return settings.Table{File: File, Items: items}
}

// listPeriods returns items of one table of the file that say how often something is done.
// TiKV looks at one for when to do it next, each time that it does it: after 0 never.
func listPeriods(table, names string) []settings.Item {
	out := listItems(table, settings.Duration, names)
	for i := range out {
		out[i].ZeroStops = true
	}
	return out
}

// listItems returns items of one table of the file.
func listItems(table string, kind settings.Kind, names string) []settings.Item {
	var out []settings.Item
	for name := range strings.FieldsSeq(names) {
		out = append(out, settings.Item{Key: table + "." + name, Kind: kind})
	}
	return out
}
