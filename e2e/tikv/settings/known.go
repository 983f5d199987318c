package settings

// cf are the keys of every column family's section.
const cf = `block-size block-cache-size disable-block-cache cache-index-and-filter-blocks pin-l0-filter-and-index-blocks
 use-bloom-filter optimize-filters-for-hits optimize-filters-for-memory whole-key-filtering bloom-filter-bits-per-key
 block-based-bloom-filter ribbon-filter-above-level read-amp-bytes-per-bit compression-per-level write-buffer-size
 write-buffer-limit max-write-buffer-number min-write-buffer-number-to-merge max-bytes-for-level-base target-file-size-base
 level0-file-num-compaction-trigger level0-slowdown-writes-trigger level0-stop-writes-trigger max-compaction-bytes
 compaction-pri dynamic-level-bytes num-levels max-bytes-for-level-multiplier compaction-style disable-auto-compactions
 disable-write-stall soft-pending-compaction-bytes-limit hard-pending-compaction-bytes-limit force-consistency-checks
 prop-size-index-distance prop-keys-index-distance enable-doubly-skiplist enable-compaction-guard
 compaction-guard-min-output-file-size compaction-guard-max-output-file-size bottommost-level-compression
 bottommost-zstd-compression-dict-size bottommost-zstd-compression-sample-size prepopulate-block-cache format-version
 checksum max-compactions ttl periodic-compaction-seconds titan`

// db are the keys that the sections of both RocksDB engines have.
const db = `wal-recovery-mode wal-dir wal-ttl-seconds wal-size-limit max-total-wal-size max-background-jobs
 max-background-flushes max-manifest-file-size create-if-missing max-open-files enable-statistics stats-dump-period
 compaction-readahead-size info-log-max-size info-log-roll-time info-log-keep-log-file-num info-log-dir info-log-level
 max-sub-compactions writable-file-max-buffer-size use-direct-io-for-flush-and-compaction enable-pipelined-write
 enable-multi-batch-write enable-unordered-write allow-concurrent-memtable-write bytes-per-sync wal-bytes-per-sync
 rate-bytes-per-sec rate-limiter-refill-period rate-limiter-mode rate-limiter-auto-tuned paranoid-checks
 allow-mmap-reads allow-mmap-writes write-buffer-limit write-buffer-stall-ratio write-buffer-flush-oldest-first
 track-and-verify-wals-in-manifest titan`

// pool are the keys of a read pool.
const pool = `use-unified-pool high-concurrency normal-concurrency low-concurrency max-tasks-per-worker-high
 max-tasks-per-worker-normal max-tasks-per-worker-low stack-size`

// knownKeys returns the keys that the configuration file of TiKV 8.5 may have.
// The top level and the first level below it are listed; what lies deeper is
// taken as it is where it is not known for certain.
func knownKeys() keys {
	return parseKeys(oneLine(`
.: slow-log-file slow-log-threshold panic-when-unexpected-key-or-data abort-on-panic memory-usage-limit memory-usage-high-water cfg-path log-level log-file log-format log-rotation-timespan log-rotation-size enable-io-snoop raft-engine-enabled prefer-apply-voters
log: level format enable-timestamp
log.file: filename max-size max-backups max-days
memory: enable-heap-profiling profiling-sample-per-bytes enable-thread-exclusive-arena
quota: foreground-cpu-time foreground-write-bandwidth foreground-read-bandwidth max-delay-duration background-cpu-time background-write-bandwidth background-read-bandwidth enable-auto-tune
readpool.unified: min-thread-count max-thread-count stack-size max-tasks-per-worker auto-adjust-pool-size cpu-threshold
readpool.storage: ` + pool + `
readpool.coprocessor: ` + pool + `
server: addr advertise-addr status-addr advertise-status-addr status-thread-pool-size max-grpc-send-msg-len raft-client-grpc-send-msg-buffer raft-client-queue-size raft-client-max-backoff raft-client-initial-reconnect-backoff raft-msg-max-batch-size grpc-compression-type grpc-gzip-compression-level grpc-min-message-size-to-compress grpc-concurrency grpc-concurrent-stream grpc-raft-conn-num grpc-memory-pool-quota grpc-stream-initial-window-size grpc-keepalive-time grpc-keepalive-timeout concurrent-send-snap-limit concurrent-recv-snap-limit end-point-recursion-limit end-point-stream-channel-size end-point-batch-row-limit end-point-stream-batch-row-limit end-point-enable-batch-if-possible end-point-request-max-handle-duration end-point-max-concurrency end-point-perf-level end-point-slow-log-threshold end-point-memory-quota snap-io-max-bytes-per-sec snap-max-write-bytes-per-sec snap-max-total-size snap-min-ingest-size snap-min-ingest-cf-limit stats-concurrency heavy-load-threshold heavy-load-wait-duration enable-request-batch background-thread-count forward-max-connections-per-address simplify-metrics reject-messages-on-memory-ratio health-feedback-interval inspect-network-interval graceful-shutdown-timeout
server.labels: *
storage: data-dir engine gc-ratio-threshold max-key-size scheduler-concurrency scheduler-worker-pool-size scheduler-pending-write-threshold reserve-space reserve-raft-space enable-async-apply-prewrite api-version enable-ttl background-error-recovery-window ttl-check-poll-interval txn-status-cache-capacity memory-quota
storage.flow-control: enable soft-pending-compaction-bytes-limit hard-pending-compaction-bytes-limit memtables-threshold l0-files-threshold
storage.block-cache: shared capacity num-shard-bits strict-capacity-limit high-pri-pool-ratio low-pri-pool-ratio memory-allocator
storage.io-rate-limit: max-bytes-per-sec mode strict foreground-read-priority foreground-write-priority flush-priority level-zero-compaction-priority compaction-priority replication-priority load-balance-priority gc-priority import-priority export-priority other-priority
storage.max-ts: *
pd: endpoints retry-interval retry-max-count retry-log-every update-interval enable-forwarding
metric: interval address job
raftstore: prevote raftdb-path capacity raft-base-tick-interval raft-heartbeat-ticks raft-election-timeout-ticks raft-min-election-timeout-ticks raft-max-election-timeout-ticks raft-max-size-per-msg raft-max-inflight-msgs raft-entry-max-size raft-log-compact-sync-interval raft-log-gc-tick-interval request-voter-replicated-index-interval raft-log-gc-threshold raft-log-gc-count-limit raft-log-gc-size-limit raft-log-reserve-max-ticks raft-engine-purge-interval max-manual-flush-rate raft-entry-cache-life-time raft-reject-transfer-leader-duration split-region-check-tick-interval region-split-check-diff region-compact-check-interval region-compact-check-step region-compact-min-tombstones region-compact-tombstones-percent region-compact-min-redundant-rows region-compact-redundant-rows-percent pd-heartbeat-tick-interval pd-store-heartbeat-tick-interval pd-report-min-resolved-ts-interval snap-mgr-gc-tick-interval snap-gc-timeout lock-cf-compact-interval lock-cf-compact-bytes-threshold notify-capacity messages-per-tick max-peer-down-duration max-leader-missing-duration abnormal-leader-missing-duration peer-stale-state-check-interval leader-transfer-max-log-lag snap-apply-batch-size snap-apply-copy-symlink snap-handle-pool-size consistency-check-interval report-region-flow-interval raft-store-max-leader-lease check-leader-lease-interval renew-leader-lease-advance-duration allow-unsafe-vote-after-start right-derive-when-split merge-max-log-gap merge-check-tick-interval use-delete-range cleanup-import-sst-interval local-read-batch-size apply-max-batch-size apply-pool-size apply-reschedule-duration apply-low-priority-pool-size store-max-batch-size store-pool-size store-reschedule-duration store-low-priority-pool-size store-io-pool-size store-io-notify-capacity future-poll-size hibernate-regions dev-assert apply-yield-duration apply-yield-write-size perf-level evict-cache-on-memory-ratio cmd-batch cmd-batch-concurrent-ready-max-count raft-write-size-limit raft-write-batch-size-hint raft-write-wait-duration waterfall-metrics io-reschedule-concurrent-max-count io-reschedule-hotpot-duration raft-msg-flush-interval reactive-memory-lock-tick-interval reactive-memory-lock-timeout-tick report-min-resolved-ts-interval report-region-buckets-tick-interval gc-peer-check-interval inspect-interval inspect-cpu-util-thd inspect-kvdb-interval slow-trend-unsensitive-cause slow-trend-unsensitive-result slow-trend-network-io-factor unreachable-backoff max-snapshot-file-raw-size check-peers-availability-interval check-request-snapshot-interval check-long-uncommitted-interval long-uncommitted-base-threshold check-then-compact-top-n check-then-compact-force-bottommost-level min-pending-apply-region-count pin-compact-region-ratio follower-read-max-log-gap region-sampling-bucket-size disable-kv-wal io-rate-limit skip-manual-compaction-in-clean-up-worker enable-v2-compatible-learner unsafe-disable-check-quorum periodic-full-compact-start-times periodic-full-compact-start-max-cpu region-worker-tick-interval region-max-size region-split-size clean-stale-ranges-tick-interval sync-log snap-generator-pool-size apply-batch-system store-batch-system
coprocessor: split-region-on-table batch-split-limit region-max-size region-split-size region-max-keys region-split-keys consistency-check-method perf-level enable-region-bucket region-bucket-size region-size-threshold-for-approximate prefer-approximate-bucket region-bucket-merge-size-ratio
coprocessor-v2: coprocessor-plugin-directory
rocksdb: ` + db + `
rocksdb.titan: *
rocksdb.defaultcf: ` + cf + `
rocksdb.defaultcf.titan: *
rocksdb.writecf: ` + cf + `
rocksdb.writecf.titan: *
rocksdb.lockcf: ` + cf + `
rocksdb.lockcf.titan: *
rocksdb.raftcf: ` + cf + `
rocksdb.raftcf.titan: *
raftdb: ` + db + `
raftdb.titan: *
raftdb.defaultcf: ` + cf + `
raftdb.defaultcf.titan: *
raft-engine: enable dir spill-dir recovery-mode recovery-read-block-size recovery-threads batch-compression-threshold compression-level bytes-per-sync target-file-size purge-threshold purge-rewrite-threshold purge-rewrite-garbage-ratio memory-limit format-version enable-log-recycle prefill-for-recycle prefill-limit
security: ca-path cert-path key-path cert-allowed-cn redact-info-log override-ssl-target
security.encryption: data-encryption-method data-key-rotation-period enable-file-dictionary-log file-dictionary-rewrite-threshold
security.encryption.master-key: *
security.encryption.previous-master-key: *
import: num-threads stream-channel-window import-mode-timeout memory-use-ratio
backup: num-threads batch-size sst-max-size enable-auto-tune auto-tune-remain-threads auto-tune-refresh-interval io-thread-size s3-multi-part-size
backup.hadoop: home linux-user
log-backup: enable num-threads max-flush-interval io-threads initial-scan-pending-memory-quota initial-scan-rate-limit initial-scan-concurrency min-ts-interval file-size-limit temp-path temp-file-memory-quota
backup-stream: enable num-threads max-flush-interval io-threads initial-scan-pending-memory-quota initial-scan-rate-limit file-size-limit temp-path temp-file-memory-quota
pessimistic-txn: wait-for-lock-timeout wake-up-delay-duration pipelined in-memory in-memory-peer-size-limit in-memory-instance-size-limit
gc: ratio-threshold batch-keys max-write-bytes-per-sec enable-compaction-filter compaction-filter-skip-version-check num-threads
gc.auto-compaction: *
split: qps-threshold byte-threshold region-cpu-overload-threshold-ratio split-balance-score split-contained-score detect-times sample-num sample-threshold grpc-thread-cpu-overload-threshold-ratio unified-read-pool-thread-cpu-overload-threshold-ratio
cdc: min-ts-interval hibernate-regions-compatible incremental-scan-threads incremental-scan-concurrency incremental-scan-concurrency-limit incremental-scan-speed-limit incremental-fetch-speed-limit incremental-scan-ts-filter-ratio tso-worker-threads sink-memory-quota old-value-cache-memory-quota old-value-cache-size raw-min-ts-outlier-threshold
resolved-ts: enable advance-ts-interval scan-lock-pool-size memory-quota incremental-scan-concurrency
resource-metering: receiver-address report-receiver-interval max-resource-groups precision
resource-control: enabled priority-ctl-strategy
causal-ts: renew-interval renew-batch-min-size renew-batch-max-size alloc-ahead-buffer
range-cache-engine: *
in-memory-engine: *
`))
}

// oneLine joins lines that begin with a space to the one before, as the texts
// above are wrapped.
func oneLine(text string) string {
	out := make([]byte, 0, len(text))
	for i := range len(text) {
		if text[i] == '\n' && i+1 < len(text) && text[i+1] == ' ' {
			continue
		}
		out = append(out, text[i])
	}
	return string(out)
}
