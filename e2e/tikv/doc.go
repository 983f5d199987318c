// Package tikv is a test double of TiKV that replicates: a store that a real PD
// schedules and a real TiDB answers SQL from, built with Go alone. It keeps what it
// acknowledged when processes are killed, stores come and go, and leaders move.
//
// Program: package ./cmd/tikv-server of this module, which stands on its own since
// it needs TiDB's requirements. Build it in this folder with
//
//	GOWORK=off CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -checklinkname=0 -X main.version=8.5.0" ./cmd/tikv-server
//
// TiDB reaches into the Go runtime, so the linker refuses it without -checklinkname=0.
// The version is what the store tells PD; the environment variable STANDIN_VERSION
// overrides it. What the packages do:
//
//   - engine: the data on disk, and what is read from
//   - raftstore: one Raft group per region, splits, changes of peers, snapshots
//   - transport: messages between stores
//   - service: TiKV's gRPC service over TiDB's own test engine for transactions and
//     coprocessor (unistore)
//   - placement: PD
//   - security: TLS, by the files that [security] names
//   - settings: command line, configuration file, /config
//
// On the status port are /status, /ready, /metrics, /config and /debug/regions: each
// region here with its leader, applied index and a checksum of its data. Replicas
// that have applied the same index have the same checksum.
//
// What it is not: it does not sync to the disk, so it survives the loss of a process
// and not that of power. All data is also kept in what is read from, so a store is
// for some hundred megabytes. Regions are split and never merged; PD hears that each
// has 64 MiB at least, so that it does not ask. Asynchronous and one-phase commits
// are answered as TiKV answers when it can't do them, so TiDB falls back to two
// phases. Deadlocks between keys that are led by different stores are not detected:
// the lock wait timeout ends them. Follower and stale reads are as new as others.
// There are no raw keys, backup, import, CDC, flashback or TiFlash replicas.
// The messages between stores are understood only by stores of this kind.
package tikv
